"""Every figure of chapter 5 of Cloutier's thesis (1995): the printed numbers, those of jdyn, and their deviation.

    python benchmarks/thesis.py --pictures FOLDER

The operation counts of its section 3.4 follow. Takes some four minutes. Figure 5.1 is a drawing. Figures 5.3 to 5.5,
5.7 and 5.8 are printed as curves: their table has what the text says of them and where their axes end.
"""

import argparse
import dataclasses
import math
import pathlib
from typing import NamedTuple

import jax
import numpy as np
from operation_counts import print_counts

import jdyn
from jdyn.studies.cloutier1995 import (
    CHAINS,
    ENERGY_5_8,
    EVALUATIONS,
    FIGURE_5_2,
    Link,
    Session,
    fall,
    four_links,
    long_chain,
    roundings,
    simulated,
    static_sweep,
    statistics,
    turn,
    two_links,
    two_links_of_one,
)

ABM, CRBM, BAD = jdyn.ABA(), jdyn.CRBA(), jdyn.studies.MatrixABA("cancelling")
METHODS = {"ABM": ABM, "CRBM": CRBM}
STARTS = 1001


class Row(NamedTuple):
    """One printed number: the figure, what it is, the number of the thesis and that of jdyn; None if there is none."""

    figure: str
    what: str
    printed: float | None
    found: float | None

    @property
    def deviation(self) -> float | None:
        """Of what was found from what was printed [%]."""
        if not self.printed or self.found is None:
            return None
        return 100 * (self.found / self.printed - 1)


def session() -> list[Row]:
    """Figure 5.2, run as printed, and among starts that differ by rounding."""
    outcome = simulated(Session())
    found = {
        "average energy [J]": outcome.average_energy,
        "successful steps": outcome.steps.good_steps,
        "bad steps": outcome.steps.bad_steps,
        "function evaluations": outcome.steps.recipe_evaluations,
        "steps saved": len(outcome.statistics.ts),
    }
    rows = [Row("5.2", name, number, found[name]) for name, number in FIGURE_5_2.items()]
    runs, (energy, *counts) = roundings(Session(), STARTS), FIGURE_5_2
    for name in counts:
        rows.append(
            Row("5.2", f"{name}, most frequent of {STARTS} roundings", FIGURE_5_2[name], runs.most_frequent(name))
        )
    nearest = runs.nearest_energy(tuple(counts))
    rows.append(Row("5.2", f"{energy}, nearest of those with all four counts", FIGURE_5_2[energy], nearest))
    rows.append(Row("5.2", "share of roundings with all four counts", None, runs.share(tuple(counts))))
    return rows


def configuration() -> list[Row]:
    """Figures 5.3 and 5.4, of which the text prints powers of ten; 5.4 varies the second link by `static_sweep`."""
    found = turn(two_links(100.0), (ABM, CRBM))
    difference = found.difference(CRBM, ABM)[:, 0]
    rows = [
        Row("5.3", "largest condition number, power of ten", 4, math.log10(max(found.condition))),
        Row("5.3", "largest difference of CRBM, power of ten", -12, math.log10(max(difference))),
        Row(
            "5.3",
            "joint angle of the largest condition number [rad]",
            0,
            found.values[np.argmax(found.condition)] % math.pi,
        ),
    ]
    for power in range(7):
        found = turn(two_links(10.0**power), (ABM, CRBM))
        worst = np.max(found.difference(CRBM, ABM)[:, 0])
        # Equation 5.1: the difference is of the size of the condition number times the rounding of a number, 1e-16.
        rows.append(Row("5.4", f"l2 = m2 = 1e{power}: condition number", None, max(found.condition)))
        rows.append(Row("5.4", f"l2 = m2 = 1e{power}: difference of CRBM", 1e-16 * max(found.condition), worst))
    return rows


def accelerations() -> list[Row]:
    """Figures 5.5 and 5.7: where the axes of the accelerations end, and the curves."""
    rows = []
    for figure, ratio, method, lowest in (
        ("5.5 a", 4e4, CRBM, -9.8001), ("5.5 b", 5e4, CRBM, -9.80007), ("5.5 c", 1e5, CRBM, None),
        ("5.7", 1e5, BAD, -9.80004),
    ):  # fmt: skip
        found = turn(two_links(ratio), (ABM, method), samples=721)
        smooth, rough = (found.accelerations[m][:, 0] for m in (ABM, method))
        rows.append(Row(figure, "lowest acceleration of joint 1, noise included [rad/s²]", lowest, min(rough)))
        rows.append(Row(figure, "the same, ABM", lowest, min(smooth)))
        noise = np.ptp(rough - smooth)
        rows.append(Row(figure, f"noise of {method} [rad/s²]", None, noise))
        rows.append(
            Row(figure, "largest bend of ABM between neighbours [rad/s²]", None, np.max(np.abs(np.diff(smooth, 2))))
        )
    return rows


def evaluations() -> list[Row]:
    """Figure 5.6."""
    rows = []
    for row in EVALUATIONS:
        model = two_links_of_one(row.share)
        falls = {name: fall(model, 10.0, method=method) for name, method in METHODS.items()}
        case = f"l1 / (l1 + l2) = {row.share:g}"
        motion = falls["ABM"].steps.thinned(0.01, 1001)
        along = statistics(dataclasses.replace(motion, system=jdyn.System(model, method=CRBM)))
        rows.append(Row("5.6", f"{case}: κ, power of ten", math.log10(row.condition), math.log10(max(along.condition))))
        largest = np.max(along.difference[:, 0])
        rows.append(Row("5.6", f"{case}: Δr, power of ten", math.log10(row.difference), math.log10(largest)))
        for name, printed in (("ABM", row.abm), ("CRBM", row.crbm)):
            done = falls[name].evaluations if falls[name].result == jdyn.Result.success else None
            rows.append(Row("5.6", f"{case}: n {name}", printed, done))
        ratio = None if done is None else done / falls["ABM"].evaluations
        rows.append(Row("5.6", f"{case}: r CRBM", row.crbm and round(row.crbm / row.abm, 2), ratio))
    return rows


def energy() -> list[Row]:
    """Figure 5.8: the energy of four links in 20 s, whose axis has five decimals."""
    rows = []
    for name, method in METHODS.items():
        found = fall(four_links(), 20.0, method=method, tolerance=1e-5, energy=ENERGY_5_8)
        total = energies_of(found.steps)
        rows.append(Row("5.8", f"{name}: energy at the start [J]", ENERGY_5_8, total[0]))
        rows.append(Row("5.8", f"{name}: lowest energy [J]", 3304.65, min(total)))
        rows.append(Row("5.8", f"{name}: highest energy [J]", 3304.85, max(total)))
    return rows


def energies_of(steps):
    found = statistics(steps)
    return found.energy - found.energy[0] + ENERGY_5_8


def chains() -> list[Row]:
    """Figures 5.9 and 5.10."""
    rows = []
    for row in CHAINS:
        model = long_chain(row.n)
        lowest = -9.8 * 10 * row.n * 10 * row.n
        start = float(jdyn.potential_energy(model, model.neutral())) - lowest
        rows.append(Row("5.9", f"n = {row.n}: energy at the start [J]", row.energy, start))
        for name, printed, deviation, seconds in (
            ("ABM", row.abm, row.abm_deviation, row.abm_seconds),
            ("CRBM", row.crbm, row.crbm_deviation, row.crbm_seconds),
        ):
            found = fall(model, 60.0, method=METHODS[name], tolerance=1e-4, energy=row.energy)
            case = f"n = {row.n}, {name}"
            rows.append(Row("5.9", f"{case}: evaluations", printed, found.evaluations))
            rows.append(Row("5.9", f"{case}: deviation of the mean energy [%]", deviation, found.energy_deviation))
            rows.append(Row("5.9", f"{case}: time, SUN 4/75 and here [s]", seconds, found.seconds))
    return rows


FIGURES = (session, configuration, accelerations, evaluations, energy, chains)


def print_rows(rows):
    def text(x):
        return "-" if x is None else f"{x:.10g}" if abs(x) >= 1000 else f"{x:.7g}" if abs(x) > 9 else f"{x:.3g}"

    for row in rows:
        deviation = "" if row.deviation is None else f"{row.deviation:.3g}"
        print(f"{row.figure:6} {row.what:66} {text(row.printed):>12} {text(row.found):>14} {deviation:>9}", flush=True)


ANGLE, ACCELERATION = "angle of joint 2 [rad]", "acceleration of joint 1 [rad/s²]"


def pictures(folder: pathlib.Path, rows: list[Row]):
    """Figures 5.3 to 5.10, as the thesis draws them."""
    figures = {"5-3": turned(), "5-4": lengthened(), "5-8": swung(), "5-6": counted(rows), "5-10": grown(rows)}
    found = turn(two_links(1e5), (CRBM, BAD, ABM), samples=721)
    for figure, method in (("5-5", CRBM), ("5-7", BAD)):
        curves = {str(m): found.accelerations[m][:, 0] for m in (method, ABM)}
        figures[figure] = jdyn.plots.curves(found.values, curves, ANGLE, ACCELERATION)
    for name, axes in figures.items():
        axes.figure.savefig(folder / f"figure-{name}.png", dpi=150)
    print(f"\npictures: {folder.resolve()}")


def turned():
    found = turn(two_links(100.0), (ABM, CRBM))
    curves = {"condition number": found.condition, "relative difference": found.difference(CRBM, ABM)[:, 0]}
    return jdyn.plots.curves(found.values, curves, ANGLE, "l2 = m2 = 100", scales=("linear", "log"))


def lengthened():
    first = Link(1.0, 1.0, 1.0)
    start = Session(links=(first, first), q0=(0.0, 0.5), v0=(0.0, 0.0), torques=(0.0, 0.0))
    found = static_sweep(start, ("length2", "mass2"), np.geomspace(1, 1e6, 61), (ABM, CRBM))
    curves = {"condition number": found.condition, "relative difference": found.difference(CRBM, ABM)[:, 0]}
    return jdyn.plots.curves(found.values, curves, "l2 = m2 [m, kg]", "at q2 = 0.5 rad", scales=("log", "log"))


def counted(rows):
    lines = {}
    for name in METHODS:
        counts = [row for row in rows if row.figure == "5.6" and row.what.endswith(f"n {name}")]
        conditions = [row.condition for row in EVALUATIONS]
        for who, numbers in (("thesis", [r.printed for r in counts]), ("jdyn", [r.found for r in counts])):
            lines[f"{name}, {who}"] = conditions, [np.nan if x is None else x for x in numbers]
    return jdyn.plots.stiffness(lines)


def swung():
    falls = {
        name: fall(four_links(), 20.0, method=m, tolerance=1e-5).steps.thinned(0.05, 401) for name, m in METHODS.items()
    }
    times = np.linspace(0, 20, 401)
    curves = {name: np.interp(times, steps.ts, energies_of(steps)) for name, steps in falls.items()}
    return jdyn.plots.curves(times, curves, "t [s]", "total energy [J]")


def grown(rows):
    curves = {}
    for name in METHODS:
        for what in ("evaluations", "time"):
            found = [row for row in rows if row.figure == "5.9" and f"{name}: {what}" in row.what]
            for who, numbers in (("thesis", [row.printed for row in found]), ("jdyn", [row.found for row in found])):
                curves[f"{name}, {what}, {who}"] = np.array(numbers)
    return jdyn.plots.curves(
        np.array([row.n for row in CHAINS]), curves, "links", "evaluations; s", scales=("linear", "log")
    )


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--pictures", type=pathlib.Path, metavar="FOLDER", help="where to draw the figures")
    options = words.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}\n")
    print(f"{'figure':6} {'':66} {'thesis':>12} {'jdyn':>14} {'%':>9}")
    rows = []
    for figure in FIGURES:
        found = figure()
        print_rows(found)
        rows += found
    print()
    print_counts()
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
        pictures(options.pictures, rows)


if __name__ == "__main__":
    main()
