"""Franka Emika Panda."""

import numpy as np

from jdyn.model import Builder, Fixed, Free, Model, Revolute
from jdyn.robots.dh import modified

# Modified Denavit-Hartenberg: a [m], α [rad], d [m].
_GEOMETRY = (
    (0, 0, 0.333),
    (0, -np.pi / 2, 0),
    (0, np.pi / 2, 0.316),
    (0.0825, np.pi / 2, 0),
    (-0.0825, -np.pi / 2, 0.384),
    (0, np.pi / 2, 0),
    (0.088, np.pi / 2, 0),
)
# Mass [kg], centre of mass in the link frame [m], inertia xx, yy, zz, xy, xz, yz about it [kg m²].
_LINKS = (
    (0.629769, (-0.041018, -0.00014, 0.049974), (0.00315, 0.00388, 0.004285, 8.2904e-7, 0.00015, 8.2299e-6)),
    (4.970684, (0.003875, 0.002081, -0.04762), (0.70337, 0.70661, 0.009117, -0.000139, 0.006772, 0.019169)),
    (0.646926, (-0.003141, -0.02872, 0.003495), (0.007962, 0.02811, 0.025995, -0.003925, 0.010254, 0.000704)),
    (3.228604, (0.027518, 0.039252, -0.066502), (0.037242, 0.036155, 0.01083, -0.004761, -0.011396, -0.012805)),
    (3.587895, (-0.05317, 0.104419, 0.027454), (0.025853, 0.019552, 0.028323, 0.007796, -0.001332, 0.008641)),
    (1.225946, (-0.011953, 0.041065, -0.038437), (0.035549, 0.029474, 0.008627, -0.002117, -0.004037, 0.000229)),
    (1.666555, (0.060149, -0.014117, -0.010517), (0.001964, 0.004354, 0.005433, 0.000109, -0.001158, 0.000341)),
    (0.735522, (0.010517, -0.004252, 0.061597), (0.012516, 0.010027, 0.004815, -0.000428, -0.001196, -0.000741)),
)
# Lower, upper [rad], velocity [rad/s], effort [N m].
_LIMITS = (
    (-2.8973, 2.8973, 2.175, 87),
    (-1.7628, 1.7628, 2.175, 87),
    (-2.8973, 2.8973, 2.175, 87),
    (-3.0718, -0.0698, 2.175, 87),
    (-2.8973, 2.8973, 2.61, 12),
    (-0.0175, 3.7525, 2.61, 12),
    (-2.8973, 2.8973, 2.61, 12),
)
# Friction is A / (1 + exp(-α v)) - A / 2: A [N m], α [s/rad].
_FRICTION = (
    (0.54615, 5.1181),
    (0.87224, 9.0657),
    (0.64068, 10.136),
    (1.2794, 5.5903),
    (0.83904, 8.3469),
    (0.30301, 17.133),
    (0.56489, 10.336),
)


def panda(*, floating_base: bool = False, dtype=None) -> Model:
    """Franka Emika Panda, seven revolute joints, without its hand, with identified inertias and joint friction.

    At q = 0, which is outside the limits of joint 4, the arm is upright and the flange points down. Each link's frame
    is at its own joint with z along the axis, as in Franka's documentation; tools are mounted at frame `flange`. The
    identified inertias include the rotors, so there is no armature.

    The identified friction, A / (1 + exp(−α v)) − A / 2, equals a model's smoothed Coulomb friction with `friction`
    A / 2 and `friction_speed` 2 / α. The identified velocity offset, at most 0.05 rad/s, which makes friction differ
    between directions, is left out. The inertias of link 1 about x and y are large: they have no effect while the arm
    is bolted to the world, so they could not be identified and depend on the bounds of the identification. They do
    matter on a floating base.

    Args:
        floating_base: Whether the base link is free to move instead of being bolted to the world.
        dtype: Floating type of the leaves; JAX's default if left out.

    Source: Gaz, Cognetti, Oliva, Robuffo Giordano, De Luca, Dynamic identification of the Franka Emika Panda robot
    with retrieval of feasible parameters using penalty-based optimization, RA-L 4 (2019): inertias and friction.
    Franka Control Interface documentation: geometry and limits.
    """
    builder = Builder("panda")
    mass, com, inertia = _LINKS[0]
    base = Free() if floating_base else Fixed()
    builder.add_link("link0", base, mass=mass, com=com, inertia=_matrix(inertia), joint_name="base")
    for i, (geometry, link, limits, friction) in enumerate(zip(_GEOMETRY, _LINKS[1:], _LIMITS, _FRICTION, strict=True)):
        a, alpha, d = geometry
        mass, com, inertia = link
        lower, upper, velocity, effort = limits
        height, steepness = friction
        builder.add_link(
            f"link{i + 1}",
            Revolute((0, 0, 1)),  # type: ignore[arg-type]
            parent=f"link{i}",
            placement=modified(a, alpha, d),
            mass=mass,
            com=com,
            inertia=_matrix(inertia),
            joint_name=f"joint{i + 1}",
            friction=height / 2,
            friction_speed=2 / steepness,
            lower=lower,
            upper=upper,
            velocity=velocity,
            effort=effort,
        )
    builder.add_frame("flange", "link7", (0, 0, 0.107))
    return builder.build(dtype=dtype)


def _matrix(inertia):
    xx, yy, zz, xy, xz, yz = inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
