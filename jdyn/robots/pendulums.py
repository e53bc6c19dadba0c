"""Chains of uniform rods: simple pendulum, double pendulum, and chains of any length."""

from collections.abc import Sequence

import numpy as np

from jdyn.model import Ball, Builder, Continuous, Free, Joint, Model
from jdyn.robots.links import per_link, rod_inertia

# Pendulums swing in the x-z plane: x to the right, z up, positive angles counter-clockwise.
_HINGE = Continuous((0, -1, 0))  # type: ignore[arg-type]
_CHAIN_JOINTS: dict[str, Joint] = {"revolute": _HINGE, "ball": Ball()}


def pendulum(length: float = 1.0, mass: float = 1.0, *, damping: float = 0.0, dtype=None) -> Model:
    """A uniform rod that swings about its end in the x-z plane.

    q = 0 hangs straight down; positive angles move the free end, frame `tip`, towards +x. The equation of motion is
    q̈ = −(3g / 2l) sin q + 3τ / (m l²). The default size is that of Gymnasium's `Pendulum-v1`, which measures
    its angle from the upright position and uses g = 10 m/s².

    Args:
        length: Length of the rod [m].
        mass: Mass of the rod [kg].
        damping: Viscous friction of the pivot [N m s/rad].
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if the length or the mass is not a finite positive number.

    Source: Farama Gymnasium, `envs/classic_control/pendulum.py` (sizes).
    """
    rod = per_link(1, length=length, mass=mass)
    return _hanging("pendulum", rod, damping, [_HINGE], dtype)


def double_pendulum(
    lengths: float | Sequence[float] = 1.0,
    masses: float | Sequence[float] = 1.0,
    *,
    damping: float = 0.0,
    dtype=None,
) -> Model:
    """Two uniform rods, one hanging from the other, in the x-z plane.

    q = 0 hangs straight down; q[0] is measured from the vertical, q[1] from the first rod; positive angles move the
    free end, frame `tip`, towards +x. The default sizes are round numbers without a source.

    Args:
        lengths: Lengths of the rods [m], one number for both or one each.
        masses: Masses of the rods [kg], one number for both or one each.
        damping: Viscous friction of each joint [N m s/rad].
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if a length or a mass is not a finite positive number, or their count is wrong.
    """
    rods = per_link(2, lengths=lengths, masses=masses)
    return _hanging("double_pendulum", rods, damping, [_HINGE] * 2, dtype)


def chain(
    n: int = 10,
    length: float = 1.0,
    mass: float = 1.0,
    *,
    joint: str = "revolute",
    damping: float = 0.0,
    floating_base: bool = False,
    dtype=None,
) -> Model:
    """`n` equal uniform rods, each hanging from the previous one.

    q = 0 hangs straight down from the world's origin. With revolute joints, the chain moves in the x-z plane, angles
    are relative to the previous rod, and positive angles move the free end, frame `tip`, towards +x. As `n` grows,
    small swings approach those of a hanging rope: angular frequencies (j_k / 2) √(g / length), where j_k are the zeros
    of the Bessel function J₀. The default sizes are round numbers without a source.

    Args:
        n: Number of rods.
        length: Length of the whole chain [m].
        mass: Mass of the whole chain [kg].
        joint: `"revolute"` or `"ball"`.
        damping: Viscous friction of each joint [N m s/rad].
        floating_base: Whether the first rod is free to move instead of hanging from the world.
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if `n`, the length or the mass is not a finite positive number, or there is no such `joint`.
    """
    if joint not in _CHAIN_JOINTS:
        raise ValueError(f"joint: expected {' or '.join(map(repr, _CHAIN_JOINTS))}, got {joint!r}")
    lengths, masses = per_link(n, length=length, mass=mass)
    joints = [_CHAIN_JOINTS[joint]] * n
    if floating_base:
        joints[0] = Free()
    return _hanging("chain", [lengths / n, masses / n], damping, joints, dtype)


def _hanging(name: str, rods: list[np.ndarray], damping: float, joints: list[Joint], dtype) -> Model:
    """Rods hanging from each other, given by their lengths and masses."""
    builder = Builder(name)
    parent, end = "world", np.zeros(3)
    for i, (length, mass, joint) in enumerate(zip(*rods, joints, strict=True)):
        link = f"link{i + 1}"
        builder.add_link(
            link,
            joint,
            parent=parent,
            placement=end,
            mass=mass,
            com=(0, 0, -length / 2),
            inertia=rod_inertia(mass, length, (0, 0, 1)),
            joint_name=f"joint{i + 1}",
            damping=0.0 if isinstance(joint, Free) else damping,
        )
        parent, end = link, np.array([0, 0, -length])
    builder.add_frame("tip", parent, end)
    return builder.build(dtype=dtype)
