"""Samples at equal steps, from logs whose time stamps are not."""

import itertools
import warnings
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from jdyn.terminal.messages import enumerated

# Longer gaps are not filled [steps].
LONGEST_GAP = 10
# Time stamps that differ less from equal steps are rounded ones, or as good as these [steps].
ROUNDED = 0.01
# A step that is longer has missing samples [steps].
SKIPPED = 1.5


class LogWarning(UserWarning):
    """Warning about a log that was changed or is doubtful.

    >>> print(issubclass(jdyn.identification.LogWarning, UserWarning))
    True
    """


class EvenSamples(NamedTuple):
    """Samples at equal steps.

    Attributes:
        times: [s], shape (samples,).
        columns: By name of the quantity, shape (samples, coordinates).
        notes: What was done to get them, in sentences.
    """

    times: Float[np.ndarray, " samples"]
    columns: dict[str, Float[np.ndarray, "samples coordinates"]]
    notes: tuple[str, ...]


def increasing(times) -> Float[np.ndarray, " samples"]:
    """Times as they are.

    Raises:
        ValueError: if they do not increase, or are not finite.
    """
    times = np.asarray(times, float)
    bad = np.flatnonzero(~np.isfinite(np.diff(times)) | (np.diff(times) <= 0))
    if len(bad):
        before, after = times[bad[0] : bad[0] + 2]
        raise ValueError(f"times: expected increasing numbers, got {after} after {before} at sample {bad[0] + 1}")
    return times


def even_samples(
    times: Float[np.ndarray, " samples"],
    columns: Mapping[str, Float[np.ndarray, "samples coordinates"]],
    names: Mapping[str, tuple[str, ...]],
) -> EvenSamples:
    """Samples at equal steps of the median length, by cubic splines where some are missing or steps differ.

    Args:
        times: [s].
        columns: By name of the quantity. NaN is a sample that is missing.
        names: Those of the coordinates of each quantity.

    Raises:
        ValueError: if times do not increase, or a gap is longer than 10 steps.

    Warns:
        LogWarning: if samples are filled in, or steps differ by more than rounding.
    """
    times = increasing(times)
    whole = [np.all(np.isfinite(x), axis=1) for x in columns.values()]
    complete = np.flatnonzero(np.all(whole, axis=0))
    if len(complete) < 2:
        raise ValueError(f"dataset: expected samples of {', '.join(columns)} at the same times, got {len(complete)}")
    inner = slice(complete[0], complete[-1] + 1)
    times, columns = times[inner], {name: x[inner] for name, x in columns.items()}
    step = float(np.median(np.diff(times)))
    # Of each sample, the number of its step; jitter does not add up.
    number = np.cumsum([0, *np.maximum(np.round(np.diff(times) / step), 1)])
    step, count = float(times[-1] - times[0]) / number[-1], int(number[-1])
    notes = _missing_rows(times, step)
    for name, x in columns.items():
        notes += _missing_numbers(times, x, [f"{name}_{joint}" for joint in names[name]], step)
    shift = float(np.max(np.abs((times - times[0]) / step - number)))
    if shift > ROUNDED:
        notes.append(f"samples are up to {shift:.1%} of {step:.4g} s away from equal steps; resampled by cubic splines")
    for note in notes:
        warnings.warn(f"dataset: {note}", LogWarning, stacklevel=4)
    even = times[0] + (times[-1] - times[0]) * np.arange(count + 1) / count
    if notes:
        columns = {name: _interpolated(times, x, even) for name, x in columns.items()}
    return EvenSamples(even, dict(columns), tuple(notes))


def _missing_rows(times, step) -> list[str]:
    lengths = np.diff(times) / step
    skipped = np.flatnonzero(lengths > SKIPPED)
    for k in skipped:
        _check_gap("samples", times[k], times[k + 1], step)
    lost = np.sum(np.round(lengths[skipped]) - 1)
    return [f"{lost:.0f} samples are missing after {_instants(times[skipped])}, filled in by splines"] if lost else []


def _missing_numbers(times, x, names, step) -> list[str]:
    notes = []
    for name, column in zip(names, x.T, strict=True):
        known = np.flatnonzero(np.isfinite(column))
        for before, after in itertools.pairwise(known):
            if after > before + 1:
                _check_gap(name, times[before], times[after], step)
        if lost := len(column) - len(known):
            where = times[np.flatnonzero(~np.isfinite(column))]
            notes.append(f"{lost} numbers of {name} are missing at {_instants(where)}, filled in by splines")
    return notes


def _check_gap(what, before, after, step):
    if after - before > (LONGEST_GAP + 1.5) * step:
        raise ValueError(
            f"dataset: expected {what} every {step:.4g} s, got none between {before:.6g} and {after:.6g} s; "
            "identify from the longer part alone"
        )


def _instants(times) -> str:
    return f"{enumerated([f'{t:.6g}' for t in times])} s"


def _interpolated(times, x, even):
    from scipy.interpolate import CubicSpline  # it takes long to import, and few need it

    columns = []
    for column in x.T:
        known = np.isfinite(column)
        columns.append(CubicSpline(times[known], column[known])(even))
    return np.stack(columns, axis=1)
