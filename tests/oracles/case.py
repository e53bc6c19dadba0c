"""Cases of the frozen results: functions that compute arrays, and how far these may move."""

import dataclasses
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """How far an array may move.

    Attributes:
        share: As a share of the array's largest entry.
        why: Where that comes from.
    """

    share: float
    why: str


def solved(share: float, why: str = "errors of steps add up, and a step more moves them") -> Tolerance:
    """Tolerance of what steps of a solver lead to."""
    return Tolerance(share, why)


def rounding(condition: float = 1e3, dtype=np.float64, why: str = "rounding times condition") -> Tolerance:
    """Tolerance of what a formula gives."""
    return Tolerance(condition * float(np.finfo(dtype).eps), why)


@dataclasses.dataclass(frozen=True)
class Case:
    """A program of a user, and what it gives.

    Attributes:
        run: Gives arrays by name.
        tolerance: How far they may move.
        others: That of arrays that may move by something else.
        slow: Whether it takes more than two seconds, most of which the compiler takes.
    """

    run: Callable[[], dict[str, np.ndarray]]
    tolerance: Tolerance
    others: dict[str, Tolerance]
    slow: bool

    @property
    def name(self) -> str:
        return self.run.__name__

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(array) for name, array in self.run().items()}

    def of(self, array: str) -> Tolerance:
        return self.others.get(array, self.tolerance)


CASES: dict[str, Case] = {}


def case(tolerance: Tolerance, *, slow: bool = True, **others: Tolerance):
    """Put a function among the cases, by its name."""

    def add(run):
        CASES[run.__name__] = Case(run, tolerance, others, slow)
        return run

    return add


def moved(new: np.ndarray, frozen: np.ndarray) -> float:
    """The largest change, as a share of the largest entry; infinite for another shape or type, for what is not a number
    in one alone, and for integers that differ."""
    if new.shape != frozen.shape or new.dtype != frozen.dtype:
        return np.inf
    if not np.issubdtype(new.dtype, np.floating):
        return 0.0 if np.array_equal(new, frozen) else np.inf
    finite = np.isfinite(frozen)
    if not np.array_equal(new[~finite], frozen[~finite], equal_nan=True) or not np.isfinite(new[finite]).all():
        return np.inf
    if not finite.any():
        return 0.0
    return float(np.abs(new[finite] - frozen[finite]).max() / (np.abs(frozen[finite]).max() or 1.0))
