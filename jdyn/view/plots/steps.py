"""Sizes of steps."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from jdyn.simulation import Trajectory
from jdyn.view.plots import styles
from jdyn.view.plots.one_motion import one_motion
from jdyn.view.plots.picture import axes_or_new


def steps(trajectory: Trajectory, *, axes: Axes | None = None) -> Axes:
    """Size of each accepted step over the time at which it begins: circles for explicit steps, squares for those in
    which the default solver was implicit in the forces of joints. A cross at the bottom stands where the steps before
    were rejected.

    ```
    motion = jdyn.simulate(model, q0, v0, 2.0, saveat=diffrax.SaveAt(t0=True, steps=True), max_steps=1000)
    jdyn.plots.steps(motion)
    ```

    >>> import diffrax
    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> rows = diffrax.SaveAt(t0=True, steps=True)
    >>> motion = jdyn.simulate(model, q, v, 1.0, saveat=rows, max_steps=100)
    >>> axes = jdyn.plots.steps(motion)

    Args:
        trajectory: One motion, with a row at its start and after every step.
        axes: Where to draw; a new figure if left out.

    Raises:
        ValueError: if `trajectory` is a batch, or its rows are others.
    """
    one_motion("trajectory", trajectory)
    found = _steps(trajectory)
    axes = axes_or_new(axes)
    axes.step(found.starts, found.sizes, where="post", color="0.7", linewidth=1)
    rejected = int(np.sum(found.rejected))
    for name, these, mark, face in _kinds(found):
        axes.plot(
            found.starts[these], found.sizes[these], mark, color="black", markerfacecolor=face, markersize=4,
            label=f"{name} ({np.sum(these)})",
        )  # fmt: skip
    after = found.starts[found.rejected > 0]
    axes.plot(
        after, np.full(len(after), 0.02), "x", color="black", transform=axes.get_xaxis_transform(),
        label=f"rejected before ({rejected})",
    )  # fmt: skip
    return styles.finished(axes, xlabel="time [s]", ylabel="step [s]", yscale="log")


class _Steps(NamedTuple):
    """Accepted steps.

    Attributes:
        starts, sizes: [s].
        rejected: How many were rejected before each.
        implicit: Whether each was.
    """

    starts: np.ndarray
    sizes: np.ndarray
    rejected: np.ndarray
    implicit: np.ndarray


def _steps(trajectory) -> _Steps:
    ts = np.asarray(trajectory.ts)
    ts = ts[np.isfinite(ts)]
    tries = trajectory.stats.get("row_tries")
    if tries is None:
        raise ValueError(_EXPECTED.format("rows at given times"))
    if len(ts) != int(trajectory.stats["accepted_steps"]) + 1:
        raise ValueError(_EXPECTED.format(f"{len(ts)} rows of {int(trajectory.stats['accepted_steps'])} steps"))
    implicit = trajectory.stats.get("row_implicit_steps")
    of_these = np.zeros(len(ts) - 1, int) if implicit is None else np.diff(np.asarray(implicit)[: len(ts)])
    return _Steps(ts[:-1], np.abs(np.diff(ts)), np.diff(np.asarray(tries)[: len(ts)]) - 1, of_these > 0)


_EXPECTED = (
    "trajectory: expected a row at the start and after every step, got {}; simulate it with "
    "saveat=diffrax.SaveAt(t0=True, steps=True)"
)


def _kinds(found):
    if not np.any(found.implicit):
        return [("steps", ~found.implicit, "o", "white")]
    return [("explicit", ~found.implicit, "o", "white"), ("implicit", found.implicit, "s", "black")]
