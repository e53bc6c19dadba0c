"""Underactuated pendulum with two links."""

import dataclasses

import numpy as np

from jdyn.model import Builder, Continuous, Model


@dataclasses.dataclass(frozen=True)
class _Parameters:
    """Entries for links 1 and 2; inertia is about the centre of mass and an axis normal to the plane of motion."""

    mass: tuple[float, float]
    length: tuple[float, float]
    com: tuple[float, float]
    inertia: tuple[float, float]
    damping: float
    torque: float
    velocity: tuple[float, float]


_PARAMETERS = {
    "spong": _Parameters((1, 1), (1, 2), (0.5, 1), (0.083, 0.33), 0.1, np.inf, (np.inf, np.inf)),
    "sutton": _Parameters((1, 1), (1, 1), (0.5, 0.5), (1, 1), 0.0, 1.0, (4 * np.pi, 9 * np.pi)),
}


def acrobot(parameters: str = "spong", *, dtype=None) -> Model:
    """A double pendulum in the x-z plane, driven only at the elbow.

    q = 0 hangs straight down; q[0] is measured from the vertical, q[1] from the first link; positive angles move the
    free end, frame `tip`, towards +x. The effort limit of the shoulder is 0, since it is not driven.

    The two published sets of parameters differ. `"spong"`: lengths 1 m and 2 m, link inertias of uniform rods, and
    the joint damping of 0.1 N m s/rad that Drake adds. `"sutton"`: lengths 1 m, no damping, elbow torque ±1 N m and
    speed limits 4π and 9π rad/s; its inertias of 1 kg m² about the centres of mass are twelve times those of uniform
    rods, and its g is 9.8 m/s². Neither gives the inertia about a link's own axis, which does not affect motion in the
    plane; it is set to 2 % of the transverse inertia.

    Args:
        parameters: `"spong"` or `"sutton"`.
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if there is no such set of parameters.

    Source: Spong, Swing up control of the Acrobot, ICRA 1994, as in Drake's `acrobot_params`; Sutton, Generalization
    in reinforcement learning, NIPS 1996, as in Farama Gymnasium, `envs/classic_control/acrobot.py`.
    """
    if parameters not in _PARAMETERS:
        raise ValueError(f"parameters: expected {' or '.join(map(repr, _PARAMETERS))}, got {parameters!r}")
    chosen = _PARAMETERS[parameters]
    builder = Builder("acrobot")
    parent, end = "world", np.zeros(3)
    for i, (link, joint, effort) in enumerate((("upper", "shoulder", 0.0), ("lower", "elbow", chosen.torque))):
        across = chosen.inertia[i]
        builder.add_link(
            link,
            Continuous((0, -1, 0)),  # type: ignore[arg-type]
            parent=parent,
            placement=end,
            mass=chosen.mass[i],
            com=(0, 0, -chosen.com[i]),
            inertia=(across, across, 0.02 * across),
            joint_name=joint,
            damping=chosen.damping,
            velocity=chosen.velocity[i],
            effort=effort,
        )
        parent, end = link, np.array([0, 0, -chosen.length[i]])
    builder.add_frame("tip", parent, end)
    return builder.build(dtype=dtype)
