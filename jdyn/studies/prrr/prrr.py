"""`jdyn prrr`: the off-line simulator of Cloutier's thesis."""

from jdyn.simulation import MESSAGES, Result, SimulationError
from jdyn.studies.cloutier1995 import Session, roundings, simulated
from jdyn.studies.prrr.files import print_summary, write_statistics
from jdyn.studies.prrr.options import session_of
from jdyn.studies.prrr.questions import asked

# Runs of the session of figure 5.2 that differ by rounding.
STARTS = 201


def prrr(options):
    """Run a session, and write its statistics."""
    name, session = options.id, session_of(options)
    if options.interactive:
        name, session = asked(name, session)
        print("Working ...", flush=True)
    outcome = simulated(session)
    runs = roundings(session, STARTS) if session == Session() else None
    print_summary(outcome, runs)
    for path in write_statistics(outcome, runs, options.output, name, options.statistics):
        print(f"file:  {path}")
    if outcome.steps.result != Result.success:
        raise SimulationError(f"stopped at t = {outcome.steps.ts[-1]:.6g} s: {MESSAGES[outcome.steps.result]}")
