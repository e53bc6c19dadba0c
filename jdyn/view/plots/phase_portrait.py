"""Velocity over position."""

import numpy as np
from matplotlib.axes import Axes

from jdyn.simulation import Trajectory
from jdyn.simulation.result import succeeded
from jdyn.simulation.to_xarray import labelled
from jdyn.view.plots.one_motion import a_motion
from jdyn.view.plots.picture import axes_or_new


def phase_portrait(trajectory: Trajectory, joint: str | int = 0, *, axes: Axes | None = None) -> Axes:
    """Velocity of one joint over its position: a circle where a motion starts, a square where it ends, a cross where
    it failed.

    >>> model = jdyn.load("pendulum")
    >>> motion = jdyn.simulate(model, jnp.array([1.0]), jnp.zeros(1), 1.0)
    >>> jdyn.plots.phase_portrait(motion, "joint1").get_xlabel()
    'joint1 [rad]'

    Args:
        trajectory: One motion, or a batch, a line for each lane.
        joint: Name or number of a joint with one coordinate.
        axes: Where to draw; a new figure if left out.

    Raises:
        ValueError: if there is no such joint, or it has several coordinates, as a ball joint has.
    """
    a_motion("trajectory", trajectory)
    model = trajectory.system.model
    name = _name(model, joint)
    data = labelled(trajectory, model)
    if name not in data["q_coordinate"] or name not in data["v_coordinate"]:
        single = sorted(set(data["q_coordinate"].values) & set(data["v_coordinate"].values))
        raise ValueError(f"joint: expected one with a coordinate of its own, got {name!r}; those are {single}")
    q, v = data["q"].sel(q_coordinate=name), data["v"].sel(v_coordinate=name)
    axes = axes_or_new(axes, 5.5, 4.5)
    lanes = [np.reshape(x.values, (-1, x.sizes["time"])) for x in (q, v)]
    for x, y, failed in zip(*lanes, np.ravel(~np.asarray(succeeded(trajectory.result))), strict=True):
        _draw(axes, x, y, failed)
    axes.set(xlabel=f"{name} [{q['q_unit'].item()}]", ylabel=f"velocity [{v['v_unit'].item()}]")
    axes.grid(alpha=0.3)
    return axes


def _name(model, joint):
    """A joint's name; a ValueError that lists them."""
    if isinstance(joint, str):
        model.topology.joint(joint)
        return joint
    names = model.joint_names
    if not 0 <= joint < len(names):
        raise ValueError(f"joint: expected a number below {len(names)}, got {joint}")
    return names[joint]


def _draw(axes, x, y, failed):
    here = np.isfinite(x) & np.isfinite(y)
    x, y = x[here], y[here]
    axes.plot(x, y, color="0.3", linewidth=1)
    if len(x):
        axes.plot(x[0], y[0], "o", color="black", markersize=5)
        axes.plot(x[-1], y[-1], "x" if failed else "s", color="black", markersize=5)
