"""`jdyn prrr`: the off-line simulator of Cloutier's thesis."""

from jdyn.cli.session_files import print_summary, write_statistics
from jdyn.cli.session_questions import asked
from jdyn.cli.session_words import session_of
from jdyn.simulation import Result, SimulationError
from jdyn.simulation.result import MESSAGES
from jdyn.stiffness import Session, roundings, simulated

# Runs of the session of figure 5.2 that differ by rounding.
STARTS = 201


def prrr(options):
    """The off-line simulator of Cloutier's thesis (1995, section 5.1.3): planar robots of rectangular links, and the
    statistics that compare forward dynamics by articulated bodies (ABM) and by composite rigid bodies (CRBM).

    Without words it runs the session of figure 5.2 and prints what the thesis prints beside what it finds. The robot
    file of that figure is not printed; its numbers ask for three links of 10 m, 1 kg and 1 m width. The robot starts
    from rest, which lets rounding decide how long the first step is, and counts differ by a few with it: the session
    is run from 201 starts that differ by units in the last place.

    With --interactive the program asks the thesis' questions, and the words are what an empty answer means.

    A robot FILE is text with a line a link, base to tip: length [m], mass [kg], width [m]. Empty lines and what
    follows a # do not count.

    Statistics are written as columns of text, the time first, one file a quantity: ID-positions.txt and so on; the
    summary is ID-summary.txt. A row is a step, the first after each save interval."""
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
