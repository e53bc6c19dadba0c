"""The frozen arrays of all cases, and what has moved since."""

import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tests.oracles import contacts, dynamics, gradients, motions, planning  # noqa: F401 (their cases)
from tests.oracles.case import CASES, Tolerance, moved

FILE = pathlib.Path(__file__).with_name("frozen.npz")


class Moved(NamedTuple):
    """An array of a case, and how far it moved; infinitely far where it was not frozen, or is no more."""

    array: str
    by: float
    tolerance: Tolerance

    @property
    def held(self) -> bool:
        return self.by <= self.tolerance.share


def frozen(file: pathlib.Path = FILE) -> dict[str, dict[str, np.ndarray]]:
    """Arrays by case and name."""
    found: dict[str, dict[str, np.ndarray]] = {}
    if file.exists():
        with np.load(file) as stored:
            for key in stored:
                case, array = key.split("/")
                found.setdefault(case, {})[array] = stored[key]
    return found


def write(arrays: dict[str, dict[str, np.ndarray]], file: pathlib.Path = FILE) -> None:
    flat = {f"{case}/{name}": x for case, named in sorted(arrays.items()) for name, x in sorted(named.items())}
    np.savez_compressed(file, allow_pickle=False, **flat)


def compared(name: str, new: dict[str, np.ndarray], old: dict[str, np.ndarray]) -> Iterator[Moved]:
    for array in sorted(new.keys() | old.keys()):
        by = moved(new[array], old[array]) if array in new and array in old else np.inf
        yield Moved(array, by, CASES[name].of(array))
