"""Effects of rounding alone on a session."""

import dataclasses
from collections import Counter

import numpy as np

from jdyn.studies.cloutier1995.fall import energies
from jdyn.studies.cloutier1995.session import FIGURE_5_2, Session, mean_but_last, steps_of
from jdyn.studies.cloutier1995.steps import Steps


@dataclasses.dataclass(frozen=True)
class Roundings:
    """Runs of one session from starts that differ by units in the last place.

    Attributes:
        first_steps: Length of each run's first step [s], shape (starts,).
        numbers: The numbers of figure 5.2 for each run, by their names there, shape (starts,).
    """

    first_steps: np.ndarray
    numbers: dict[str, np.ndarray]

    def most_frequent(self, name: str) -> int:
        """The count that most runs have."""
        return Counter(self.numbers[name].tolist()).most_common(1)[0][0]

    def share(self, names: tuple[str, ...]) -> float:
        """Share of the runs with exactly the printed numbers under all of these names."""
        return float(np.mean(self._like(names)))

    def nearest_energy(self, names: tuple[str, ...]) -> float:
        """The mean energy [J] nearest to the printed one, of the runs with the printed numbers under these names; NaN
        if there are none."""
        name = "average energy [J]"
        energies = self.numbers[name][self._like(names)]
        return float(min(energies, key=lambda energy: abs(energy - FIGURE_5_2[name]), default=np.nan))

    def _like(self, names):
        return np.all([self.numbers[name] == FIGURE_5_2[name] for name in names], axis=0)


def roundings(session: Session, starts: int = 101) -> Roundings:
    """Run a session repeatedly, and move the first angle by one more unit in the last place each time.

    This shows what rounding decides in a robot that starts from rest with angles of zero. There the step control of
    Numerical Recipes accepts no error (see `QualityControl`), so rounding decides the length of the first step, and
    with it all others. The motion is the same to the accuracy of a step.

    Args:
        session: What to run, with Runge-Kutta and adaptive steps.
        starts: Number of runs.

    Raises:
        ValueError: if the session asks for another integration.
    """
    if session.integration != "rka":
        raise ValueError(f"integration: expected 'rka', whose steps rounding decides, got {session.integration!r}")
    model, (first, *others) = session.model(), session.q0
    units = np.spacing(first) * (np.arange(starts) - starts // 2)
    runs = [steps_of(session, model, (first + unit, *others)) for unit in units]
    rows = [_numbers(session, model, steps) for steps in runs]
    numbers = {name: np.array([row[name] for row in rows]) for name in FIGURE_5_2}
    return Roundings(np.array([steps.ts[1] for steps in runs]), numbers)


def _numbers(session: Session, model, steps: Steps) -> dict[str, float]:
    saved = steps.thinned(session.interval, session.rows)
    kinetic, potential = energies(model, saved.q, saved.v)
    return {
        "average energy [J]": mean_but_last(kinetic + potential + session.depth),
        "successful steps": steps.good_steps,
        "bad steps": steps.bad_steps,
        "function evaluations": steps.recipe_evaluations,
        "steps saved": len(saved.ts),
    }
