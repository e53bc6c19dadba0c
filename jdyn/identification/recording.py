"""Filtered motions from logs of positions and torques, or of motor currents."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from jdyn.identification.filters import band_edge, low_passed, slopes, unsettled
from jdyn.identification.measurement import column, in_radians
from jdyn.identification.sampling import even_samples
from jdyn.model import Continuous, Model, checked

if TYPE_CHECKING:
    import xarray

# Cut-off of positions by the highest frequency that stands out of their noise: its amplitude is right to 1.5e-5.
MARGIN = 4.0
# Largest cut-off, by the rate of sampling.
LARGEST_CUTOFF = 0.2
# Band of the parallel filter by the cut-off of positions: forces have faster parts than motions, such as friction.
WIDER = 2.0
# Samples that slopes lack at each end.
LACKING = 2


@dataclasses.dataclass(frozen=True)
class Recording:
    """A log at equal steps, with positions filtered and differentiated, and efforts as they were measured.

    >>> import xarray
    >>> t = np.linspace(0.0, 10.0, 1001)
    >>> q = {"q": (("time", "q_coordinate"), np.sin(t)[:, None])}
    >>> tau = {"tau": (("time", "v_coordinate"), np.cos(t)[:, None])}
    >>> log = xarray.Dataset(q | tau, {"time": t})
    >>> found = jdyn.identification.recording(jdyn.load("pendulum"), log, cutoff=5.0)
    >>> print(np.abs(found.a[:, 0] + np.sin(found.times)).max().round(2))
    0.0

    Attributes:
        times: [s], shape (samples,).
        q, v, a: Filtered positions [rad or m] and their rates [per s, s²], shape (samples, nv).
        efforts: Measured torques [N m or N], or currents [A], shape (samples, nv).
        currents: Whether efforts are currents.
        step: From one sample to the next [s].
        cutoff: Of the low pass of positions [Hz].
        notes: What was done, in sentences.
    """

    times: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples nv"]
    v: Float[np.ndarray, "samples nv"]
    a: Float[np.ndarray, "samples nv"]
    efforts: Float[np.ndarray, "samples nv"]
    currents: bool
    step: float
    cutoff: float
    notes: tuple[str, ...]


def recording(
    model: Model, dataset: xarray.Dataset, *, cutoff: float | None = None, degrees: bool = False
) -> Recording:
    """Filter the positions of a log, and differentiate them.

    Samples come to equal steps (cubic splines, where some are missing or time stamps jitter). Positions go through a
    Butterworth low pass of order 4 forth and back, which shifts nothing in time, and velocities and accelerations are
    their central differences of fourth order. Ends where the filter is not settled are cut. Angles of continuous joints
    may jump by whole turns.

    >>> import xarray
    >>> t = np.linspace(0.0, 10.0, 1001)
    >>> noise = 1e-5 * np.random.default_rng(0).normal(size=1001)
    >>> q = {"q": (("time", "q_coordinate"), (np.sin(t) + noise)[:, None])}
    >>> tau = {"tau": (("time", "v_coordinate"), np.cos(t)[:, None])}
    >>> found = jdyn.identification.recording(jdyn.load("pendulum"), xarray.Dataset(q | tau, {"time": t}))
    >>> print(np.abs(found.v[:, 0] - np.cos(found.times)).max().round(2))
    0.0

    Args:
        model: The mechanism, of joints whose coordinates are single numbers.
        dataset: As `jdyn.identification.read_log` reads it: `time` [s], `q`, and `tau` or, for currents [A], `i`. Other
            quantities are not used.
        cutoff: Of the low pass [Hz]. If left out, four times the highest frequency at which the spectrum of a position
            stands out of its noise, and at most a fifth of the rate of sampling.
        degrees: Whether angles are in degrees.

    Returns:
        The filtered motion.

    Raises:
        ValueError: if something is missing, times do not increase, a gap is long, the log is short, positions do not
            move, angles seem to be in degrees, or coordinates are not those of `model`.

    Warns:
        jdyn.identification.LogWarning: if samples were filled in or resampled.
    """
    checked(model)
    if not model.flat:
        raise ValueError(
            f"model: expected joints whose coordinates are single numbers, as positions are differentiated, got "
            f"rotations in {model.name!r}; give v and a"
        )
    missing = [name for name in ("time", "q") if name not in dataset.variables]
    if missing or not {"tau", "i"} & set(dataset.variables):
        missing += [] if {"tau", "i"} & set(dataset.variables) else ["tau or i"]
        raise ValueError(f"dataset: expected time, q, and tau or i; it lacks {', '.join(missing)}")
    dataset = in_radians(model, dataset, degrees)
    effort = "tau" if "tau" in dataset.variables else "i"
    columns = {name: column(model, dataset, name) for name in ("q", effort)}
    columns["q"] = _unwrapped(model, columns["q"])
    names = {"q": model.topology.q_names, effort: model.topology.v_names}
    even = even_samples(dataset["time"].values, columns, names)
    step = float(even.times[-1] - even.times[0]) / (len(even.times) - 1)
    notes = [f"{len(even.times)} samples at {1 / step:.4g} Hz over {even.times[-1] - even.times[0]:.4g} s", *even.notes]
    q = even.columns["q"]
    if cutoff is None:
        cutoff = _cutoff(q, step, notes)
    elif not 0 < cutoff < 0.5 / step:
        raise ValueError(f"cutoff: expected a frequency between 0 and {0.5 / step:.4g} Hz, got {cutoff}")
    filtered = low_passed(q, step, cutoff)
    v, a = slopes(filtered, step)
    ends = max(unsettled(step, cutoff), LACKING)
    inner = slice(ends, len(q) - ends)
    if len(even.times[inner]) < 2:
        raise ValueError(
            f"dataset: expected more than {2 * ends} samples for a filter of {cutoff:.4g} Hz, got {len(q)}"
        )
    notes.append(
        f"positions through a Butterworth filter of order 4 at {cutoff:.4g} Hz, forth and back; rates by central "
        f"differences of fourth order; {ends * step:.3g} s cut at each end"
    )
    sloped = slice(ends - LACKING, len(v) - (ends - LACKING))
    motion = even.times[inner], filtered[inner], v[sloped], a[sloped], even.columns[effort][inner]
    return Recording(*motion, effort == "i", step, cutoff, tuple(notes))


def _unwrapped(model, q):
    """Positions whose joints turn without limit, without the jumps of a turn that drivers make there."""
    topology, q = model.topology, q.copy()
    kinds = [kind for kind in topology.kinds for _ in range(kind.nq)]
    for i, place in enumerate(topology.independent_q):
        if issubclass(kinds[place], Continuous):
            known = np.isfinite(q[:, i])
            q[known, i] = np.unwrap(q[known, i])
    return q


def _cutoff(q, step, notes) -> float:
    edge = band_edge(q, step)
    if not edge:
        raise ValueError("dataset: expected positions that move, got none that stands out of its noise")
    cutoff = min(MARGIN * edge, LARGEST_CUTOFF / step)
    how = f"{MARGIN:.0f} times" if MARGIN * edge <= LARGEST_CUTOFF / step else "limited by the rate of sampling,"
    notes.append(f"cut-off of {cutoff:.4g} Hz: {how} the {edge:.3g} Hz up to which motions stand out of noise")
    return cutoff
