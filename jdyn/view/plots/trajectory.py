"""Coordinates of a motion."""

from typing import Literal

import numpy as np
from matplotlib.axes import Axes

from jdyn.simulation import Trajectory
from jdyn.simulation.to_xarray import labelled
from jdyn.view.plots import styles
from jdyn.view.plots.curves import curves
from jdyn.view.plots.one_motion import one_motion
from jdyn.view.plots.picture import axes_or_new

# In words that say what the coordinates of a rotation are.
_UNITS = {"1": "quaternion"}


def trajectory(motion: Trajectory, variable: Literal["q", "v"] = "q", *, axes: Axes | None = None) -> Axes:
    """Coordinates or velocities of one motion over time, a line for each, named by its joint.

    >>> model = jdyn.load("double_pendulum")
    >>> motion = jdyn.simulate(model, jnp.ones(2), jnp.zeros(2), 1.0)
    >>> [line.get_label() for line in jdyn.plots.trajectory(motion).lines]
    ['joint1', 'joint2']

    Args:
        motion: One motion, not a batch.
        variable: `"q"`, configurations [rad, m, or quaternion], or `"v"`, velocities [rad/s or m/s].
        axes: Where to draw; a new figure if left out.

    Raises:
        ValueError: if `motion` is a batch, or there is no such variable.
    """
    one_motion("motion", motion)
    if variable not in ("q", "v"):
        raise ValueError(f"variable: expected 'q' or 'v', got {variable!r}")
    rows = labelled(motion, motion.system.model)[variable]
    units = dict.fromkeys(_UNITS.get(str(unit), str(unit)) for unit in rows[f"{variable}_unit"].values)
    names = [str(name) for name in rows[f"{variable}_coordinate"].values]
    axes = axes_or_new(axes)
    before = len(axes.lines)
    named = dict(zip(names, rows.values.T, strict=True))
    curves(np.asarray(motion.ts), named, "time [s]", f"{variable} [{', '.join(units)}]", axes=axes)
    _join_quaternions(axes.lines[before:], rows[f"{variable}_unit"].values == "1")
    styles.legend(axes)
    return axes


def _join_quaternions(lines, turning):
    """One name in the legend for the four numbers of each quaternion, which say little one by one."""
    four = [line for line, turns in zip(lines, turning, strict=True) if turns]
    for first, *others in zip(*[iter(four)] * 4, strict=True):
        first.set_label(f"{first.get_label().rpartition('[')[0]}, quaternion")
        for line in (first, *others):
            line.set(color=styles.FAINT, linewidth=1, marker="")
        for line in others:
            line.set_label("_")
