"""The least time that reaches an error, and whether one curve of error against time is the best."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

LEVELS = tuple(10.0**-k for k in range(2, 10))
# What is slower than the best other curve by more is marked.
TOLERATED = 1.2


class Point(NamedTuple):
    """One run.

    Attributes:
        scene, curve: What moves, and what integrates.
        setting: Relative tolerance, or step [s].
        error: At the end, the root-mean-square of lanes.
        seconds: Of the processor, a lane.
        evaluations, jacobians, steps: Means of lanes, as far as they are counted.
        lanes: Number of lanes.
        implicit: The share of steps that were implicit, of methods that choose.
    """

    scene: str
    curve: str
    setting: float
    error: float
    seconds: float
    lanes: int
    evaluations: float | None = None
    jacobians: float | None = None
    steps: float | None = None
    implicit: float | None = None


def envelope(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of errors and times, those that no other beats in both, the smallest error first."""
    kept: list[tuple[float, float]] = []
    for error, seconds in sorted(x for x in points if x[0] > 0 and math.isfinite(x[0])):
        if not kept or seconds < kept[-1][1]:
            kept.append((error, seconds))
    return kept


def seconds_for(error: float, points: Sequence[tuple[float, float]]) -> float | None:
    """The time that reaches an error: between points of the envelope straight in logarithms, for larger errors than all
    of them the least time, for smaller ones none."""
    kept = envelope(points)
    if not kept or error < kept[0][0]:
        return None
    for (e0, s0), (e1, s1) in itertools.pairwise(kept):
        if error <= e1:
            share = math.log(error / e0) / math.log(e1 / e0)
            return s0 * (s1 / s0) ** share
    return kept[-1][1]


class Row(NamedTuple):
    """An error, the default's time, and the best other curves among our own and among the others' with theirs."""

    error: float
    default: float | None
    own: tuple[str, float] | None
    other: tuple[str, float] | None

    @property
    def ratio(self) -> float | None:
        """The default's time over that of the best other curve."""
        best = [x[1] for x in (self.own, self.other) if x]
        return self.default / min(best) if self.default is not None and best else None


def verdict(points: Sequence[Point], default: str, own: Sequence[str], levels: Sequence[float] = LEVELS) -> list[Row]:
    """A row for each error, of the points of one scene."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        curves.setdefault(point.curve, []).append((point.error, point.seconds))
    rows = []
    for level in levels:
        found = {name: seconds for name, curve in curves.items() if (seconds := seconds_for(level, curve)) is not None}
        mine = found.pop(default, None)
        halves = [{k: x for k, x in found.items() if (k in own) == ours} for ours in (True, False)]
        best = [min(half.items(), key=lambda x: x[1]) if half else None for half in halves]
        rows.append(Row(level, mine, *best))
    return rows


def table(rows: Sequence[Row]) -> list[str]:
    """Times in microseconds a lane; `!` where the default is not the best."""
    lines = [f"{'error':>7} {'default':>9}   {'best other of jdyn':32} {'best of others':30} {'ratio':>6}"]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:6.2f}" + (" !" if row.ratio > TOLERATED else "")
        if row.default is None and (row.own or row.other):
            ratio = "     - !"
        lines.append(
            f"{row.error:7.0e} {_micro(row.default):>9}   {_named(row.own):32} {_named(row.other):30} {ratio}".rstrip()
        )
    return lines


def _micro(seconds):
    return "-" if seconds is None else f"{1e6 * seconds:.4g}"


def _named(best):
    return "-" if best is None else f"{_micro(best[1])} {best[0]}"
