"""Unimation PUMA 560."""

import numpy as np

from jdyn.model import Builder, Model, Revolute
from jdyn.robots.dh import in_joint_frame, standard

# Standard Denavit-Hartenberg: d [m], a [m], α [rad].
_GEOMETRY = (
    (0.672, 0, np.pi / 2),
    (0, 0.4318, 0),
    (0.15005, 0.0203, -np.pi / 2),
    (0.4318, 0, np.pi / 2),
    (0, 0, -np.pi / 2),
    (0, 0, 0),
)
# Mass [kg], centre of mass in the link frame [m], diagonal inertia about it [kg m²].
_LINKS = (
    (0, (0, 0, 0), (0.175, 0.35, 0.175)),
    (17.4, (-0.3638, 0.006, 0.2275), (0.126, 0.520, 0.539)),
    (4.8, (-0.0203, -0.0141, 0.070), (0.070, 0.086, 0.0165)),
    (0.82, (0, 0.019, 0), (1.8e-3, 1.3e-3, 1.8e-3)),
    (0.34, (0, 0, 0), (0.3e-3, 0.4e-3, 0.3e-3)),
    (0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
)
# Gear ratio; on the motor side: rotor inertia [kg m²], viscous friction [N m s/rad], Coulomb friction forwards and
# backwards [N m].
_DRIVES = (
    (62.6111, 200e-6, 1.48e-3, 0.395, 0.435),
    (107.815, 200e-6, 0.817e-3, 0.126, 0.071),
    (53.7063, 200e-6, 1.38e-3, 0.132, 0.105),
    (76.0364, 33e-6, 71.2e-6, 11.2e-3, 16.9e-3),
    (71.923, 33e-6, 82.6e-6, 9.26e-3, 14.5e-3),
    (76.686, 33e-6, 36.7e-6, 3.96e-3, 10.5e-3),
)
# Lower and upper [degrees], velocity [rad/s], effort [N m].
_LIMITS = (
    (-160, 160, 1.92, 97.6),
    (-45, 225, 1.51, 186.4),
    (-225, 45, 2.40, 89.4),
    (-110, 170, 5.34, 24.2),
    (-100, 100, 5.09, 20.1),
    (-266, 266, 5.74, 21.3),
)


def puma560(*, dtype=None) -> Model:
    """Unimation PUMA 560, six revolute joints, bolted to the world, with rotor inertia and joint friction.

    At q = 0 the upper arm points along +x at shoulder height, 0.672 m above the mounting surface, and the forearm
    points straight up from its end; joint 1 turns about z. Each link's frame is at its own joint with z along the
    axis; frame `tool` is the last frame of the standard Denavit-Hartenberg convention, at the wrist. Rotors appear as
    armature (gear ratio squared times rotor inertia); friction is converted to the joint side likewise.

    Small deviations from the source: Coulomb friction, given for each direction, is averaged. Two published inertias
    are impossible for a rigid body. Link 1 can only turn about its y axis and gets 0.175 kg m² about the other two
    axes, for which the source gives no value. Link 3 (0.066, 0.086, 0.0125 kg m²) violates the triangle inequality; a
    second moment of mass of 0.004 kg m² along the axis of joint 3 is moved to it from link 2. This moment adds no
    inertia about that axis, so neither change alters any joint torque or acceleration.

    Args:
        dtype: Floating type of the leaves; JAX's default if left out.

    Source: Corke and Armstrong-Hélouvry, A search for consensus among model parameters reported for the PUMA 560
    robot, ICRA 1994, as tabulated in Corke's Robotics Toolbox (`Puma560.py`, `mdl_puma560.m`), which also gives the
    position limits. Effort limits: Armstrong, Khatib, Burdick, The explicit dynamic model and inertial parameters of
    the PUMA 560 arm, ICRA 1986. Velocity limits: Corke, Visual Control of Robots (1996). Both are taken from later
    work that quotes them.
    """
    builder = Builder("puma560")
    parent, placement = "world", standard(0, 0, 0)
    for i, (geometry, link, drive, limits) in enumerate(zip(_GEOMETRY, _LINKS, _DRIVES, _LIMITS, strict=True)):
        d, a, alpha = geometry
        mass, com, inertia = link
        gear, rotor, viscous, forwards, backwards = drive
        lower, upper, velocity, effort = limits
        end = standard(a, alpha, d)
        com, inertia = in_joint_frame(end, com, inertia)
        builder.add_link(
            f"link{i + 1}",
            Revolute((0, 0, 1)),  # type: ignore[arg-type]
            parent=parent,
            placement=placement,
            mass=mass,
            com=com,
            inertia=inertia,
            joint_name=f"joint{i + 1}",
            armature=gear**2 * rotor,
            damping=gear**2 * viscous,
            friction=gear * (forwards + backwards) / 2,
            lower=np.deg2rad(lower),
            upper=np.deg2rad(upper),
            velocity=velocity,
            effort=effort,
        )
        parent, placement = f"link{i + 1}", end
    builder.add_frame("tool", parent, placement)
    return builder.build(dtype=dtype)
