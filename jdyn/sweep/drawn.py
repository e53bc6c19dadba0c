"""Designs whose lanes fill intervals evenly: fewer of them say as much as independent random ones."""

from __future__ import annotations

import abc
from typing import NamedTuple

import numpy as np

from jdyn.sweep.design import Samples
from jdyn.terminal.messages import short


class Log(NamedTuple):
    """An interval in which every factor is as likely as any other: `jdyn.designs.Log(1e-3, 10.0)`.

    >>> kp = jdyn.designs.LatinHypercube(2, kp=jdyn.designs.Log(1.0, 100.0)).values["kp"]  # one below 10, one above
    >>> bool(min(kp) < 10 < max(kp))
    True

    Attributes:
        low, high: Ends, 0 < low < high.
    """

    low: float
    high: float


class Drawn(Samples):
    """Lanes that fill intervals, one for each parameter.

    Attributes:
        n: How many.
        seed: Of the draw.
        intervals: Of the parameters, by name.
    """

    def __init__(self, n: int, /, *, seed: int = 0, **intervals: tuple[float, float] | Log):
        name = type(self).__name__
        if not intervals:
            raise ValueError(f"{name}: no parameter is given, as in {name}({n}, mass=(0.5, 2.0))")
        for parameter, interval in intervals.items():
            _check_interval(f"{name} parameter {short(parameter)}", interval)
        self.n, self.seed, self.intervals = n, seed, intervals
        points = self._points(n, len(intervals), seed)
        super().__init__(**{
            parameter: _at(points[:, i], interval) for i, (parameter, interval) in enumerate(intervals.items())
        })  # fmt: skip

    def _recipe(self):
        ends = {
            name: {"log": list(map(float, ends))} if isinstance(ends, Log) else list(map(float, ends))
            for name, ends in self.intervals.items()
        }
        return {"kind": type(self).__name__, "n": int(self.n), "seed": int(self.seed), "intervals": ends}

    @classmethod
    def _made(cls, recipe):
        ends = {name: Log(*x["log"]) if isinstance(x, dict) else tuple(x) for name, x in recipe["intervals"].items()}
        return cls(recipe["n"], seed=recipe["seed"], **ends)

    def __repr__(self):
        listed = "".join(f", {name}={interval}" for name, interval in self.intervals.items())
        return f"{type(self).__name__}({self.n}, seed={self.seed}{listed})"

    @abc.abstractmethod
    def _points(self, n: int, dimensions: int, seed: int) -> np.ndarray:
        """In the unit cube, shape (lanes, dimensions)."""


def _check_interval(what, interval):
    ends = np.asarray(interval, float)
    if ends.shape != (2,) or not (np.all(np.isfinite(ends)) and ends[0] < ends[1]):
        raise ValueError(
            f"{what}: expected (low, high) or jdyn.designs.Log(low, high) with low < high, got {interval!r}"
        )
    if isinstance(interval, Log) and interval.low <= 0:
        raise ValueError(f"{what}: the logarithm needs low > 0, got {interval!r}")


def _at(points, interval):
    low, high = interval
    return low * (high / low) ** points if isinstance(interval, Log) else low + (high - low) * points


class LatinHypercube(Drawn):
    """n lanes, of which each n-th of every parameter's interval has one: `jdyn.designs.LatinHypercube(100, mass=(0.5,
    2.0), kp=jdyn.designs.Log(10.0, 1000.0))`, along the axis `sample`.

    >>> design = jdyn.designs.LatinHypercube(4, mass=(0.0, 4.0))
    >>> sorted(np.floor(design.values["mass"]).astype(int).tolist())
    [0, 1, 2, 3]

    Args:
        n: Number of lanes.
        seed: Of the draw.
        **intervals: (low, high) of each parameter, or `jdyn.designs.Log(low, high)`.

    Raises:
        ValueError: if there is no parameter, an interval is none, or n is not positive.

    Source: McKay, Beckman and Conover 1979; by SciPy.
    """

    def _points(self, n, dimensions, seed):
        from scipy.stats import qmc  # it takes a second to import

        if n < 1:
            raise ValueError(f"LatinHypercube: expected a positive number of lanes, got {n}")
        return qmc.LatinHypercube(dimensions, rng=np.random.default_rng(seed)).random(n)


class Sobol(Drawn):
    """n lanes of a scrambled Sobol sequence: `jdyn.designs.Sobol(128, mass=(0.5, 2.0), kp=jdyn.designs.Log(10.0,
    1000.0))`, along the axis `sample`. The first lanes of a larger design with the same seed are those of a smaller
    one.

    >>> design = jdyn.designs.Sobol(8, mass=(0.5, 2.0), kp=jdyn.designs.Log(10.0, 1000.0))
    >>> design.size, sorted(design.values)
    (8, ['kp', 'mass'])

    Args:
        n: Number of lanes, a power of 2, without which the sequence is not balanced.
        seed: Of the scrambling.
        **intervals: (low, high) of each parameter, or `jdyn.designs.Log(low, high)`.

    Raises:
        ValueError: if there is no parameter, an interval is none, or n is not a power of 2.

    Source: Sobol 1967; Owen 1998 for the scrambling; by SciPy.
    """

    def _points(self, n, dimensions, seed):
        from scipy.stats import qmc  # it takes a second to import

        if n < 1 or n & (n - 1):
            more = 1 << max(int(n), 1).bit_length()
            raise ValueError(f"Sobol: expected a power of 2 lanes, got {n}; take {more // 2} or {more}")
        return qmc.Sobol(dimensions, rng=np.random.default_rng(seed)).random(n)
