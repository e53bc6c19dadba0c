"""The output of `jdyn prrr`: statistics files and a summary."""

import pathlib
from collections.abc import Sequence
from typing import TextIO

import numpy as np

from jdyn.studies.cloutier1995 import FIGURE_5_2, Outcome, Roundings
from jdyn.terminal.tables import print_table

ENERGY = "average energy [J]"

# Quantities and units in a statistics file, besides the time, by the name of the file.
QUANTITIES = {
    "positions": lambda o: _by_joint(o.statistics.q, "q", "rad"),
    "velocities": lambda o: _by_joint(o.statistics.v, "v", "rad/s"),
    "accelerations": lambda o: _by_joint(o.statistics.a, "a", "rad/s2"),
    "energy": lambda o: {"total[J]": o.energy, "kinetic[J]": o.statistics.kinetic, "potential[J]": o.potential},
    "evaluations": lambda o: {"evaluations": o.statistics.evaluations},
    "condition": lambda o: {"condition": o.statistics.condition},
    "difference": lambda o: _by_joint(o.statistics.difference, "difference", "1"),
}


def _by_joint(columns: np.ndarray, symbol: str, unit: str) -> dict[str, np.ndarray]:
    return {f"{symbol}{i}[{unit}]": column for i, column in enumerate(columns.T, start=1)}


def write_statistics(
    outcome: Outcome, runs: Roundings | None, where: pathlib.Path, name: str, wanted: Sequence[str]
) -> list[pathlib.Path]:
    """Write the wanted quantities, as far as they are known, and the summary. Returns the paths."""
    paths = []
    for quantity in wanted:
        columns = QUANTITIES[quantity](outcome)
        if any(column is None for column in columns.values()):
            continue
        paths.append(where / f"{name}-{quantity}.txt")
        table = np.column_stack([outcome.statistics.ts, *columns.values()])
        # Enough digits to read the same numbers back.
        np.savetxt(paths[-1], table, fmt="%.17g", header=" ".join(["t[s]", *columns]))
    paths.append(where / f"{name}-summary.txt")
    with paths[-1].open("w", encoding="utf-8") as file:
        print_summary(outcome, runs, file)
    return paths


def print_summary(outcome: Outcome, runs: Roundings | None = None, file: TextIO | None = None):
    """Print what the thesis' program prints at the end, and a few numbers more. For the session of figure 5.2, the
    figure's numbers and `runs` that differ by rounding alone stand beside it."""
    session = outcome.session
    robot = ", ".join(f"{link.length:g} m {link.mass:g} kg {link.width:g} m" for link in session.links)
    print(f"links (length, mass, width): {robot}", file=file)
    print(f"{session.method}, {session.integration}, {session.t0:g} s to {session.t1:g} s: "
          f"{outcome.steps.result.name}\n", file=file)  # fmt: skip
    rows = list(_summary(outcome).items())
    if runs is None:
        print_table(("", "found"), rows, file)
        return
    rows = [(name, value, *_compared(name, runs)) for name, value in rows]
    print_table(("", "found", "figure 5.2", f"{len(runs.first_steps)} roundings, most often (range)"), rows, file)
    counts = tuple(name for name in FIGURE_5_2 if name != ENERGY)
    shortest, longest = min(runs.first_steps), max(runs.first_steps)
    print(
        f"\nRounding decides the first step from rest: {shortest:.0e} s to {longest:.0e} s here. "
        f"{100 * runs.share(counts):.0f} % of the runs have all\nfour counts of the figure; of these, the mean energy "
        f"nearest to the printed one is {runs.nearest_energy(counts):.10g} J.",
        file=file,
    )


def _compared(name: str, runs: Roundings) -> tuple[str, str]:
    if name not in FIGURE_5_2:
        return "", ""
    low, high = min(runs.numbers[name]), max(runs.numbers[name])
    span = f"({low:.7g} to {high:.7g})"
    return f"{FIGURE_5_2[name]:.10g}", span if name == ENERGY else f"{runs.most_frequent(name)} {span}"


def _summary(outcome: Outcome) -> dict[str, str]:
    steps, found = outcome.steps, outcome.statistics
    counted = "-" if steps.evaluations is None else str(steps.evaluations[-1])
    as_thesis = outcome.thesis_evaluations
    single, total = outcome.operations, outcome.total_operations
    return {
        "execution time, compiling included [s]": f"{outcome.seconds:.3g}",
        ENERGY: f"{outcome.average_energy:.10g}",
        "energy at the end, less that at the start and work [J]": f"{outcome.drift:.3g}",
        "successful steps": str(steps.good_steps),
        "bad steps": str(steps.bad_steps),
        "function evaluations": counted if as_thesis is None else str(as_thesis),
        "function evaluations by jdyn, for the same steps": counted,
        "operations of one evaluation": "-" if single is None else f"{single.total:,}",
        "operations in all (n_total)": "-" if total is None else f"{total:,}",
        "steps saved": str(len(found.ts)),
        "largest condition number": f"{np.max(found.condition):.4g}",
        "largest relative difference of CRBM from ABM": f"{np.max(found.difference):.3g}",
    }
