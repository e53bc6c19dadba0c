"""MIT Mini Cheetah."""

from typing import Any

import numpy as np

from jdyn.model import Builder, Fixed, Free, Model, Revolute, Touching, pose

# Fore (+1) or hind (-1), left (+1) or right (-1).
_LEGS = {"fr": (1, -1), "fl": (1, 1), "rr": (-1, -1), "rl": (-1, 1)}
_GEAR = {"abad": 6.0, "hip": 6.0, "knee": 9.33}
_ROTOR_MASS = 0.055
_ROTOR_SPIN, _ROTOR_ACROSS = 63e-6, 33e-6
_MOTOR_TORQUE = 3.0
_DARK, _LIGHT = (0.25, 0.27, 0.3), (0.75, 0.77, 0.8)
_NOT_ITSELF = Touching(conaffinity=0)
# Second moment of mass along y, the hip axis, moved from each abduction link to its thigh [kg m²]; see the docstring.
_MOVED = 100e-6


def quadruped(*, floating_base: bool = True, dtype=None) -> Model:
    """MIT Mini Cheetah: a trunk and four legs with three joints each, with rotors and joint friction.

    At q = 0 the trunk's axes are the world's: x forward, y left, z up. All legs hang straight down, and all link
    frames are parallel to the trunk's. Joints `fr_abad` (about x), `fr_hip` and `fr_knee` (about −y) move links
    `fr_abad`, `fr_thigh` and `fr_shank`; frame `fr_foot` is in the middle of the ball of the foot; likewise for `fl`,
    `rr` and `rl`. A positive hip angle swings the leg forward. A crouch is (0, −0.8, 1.6) for every leg.

    What can touch is the trunk, a box as large as the source's; the feet, balls of 15 mm about the source's contact
    points; and the shanks, thinner capsules from knee to foot. As in the source they touch the ground, which
    `jdyn.with_ground(model)` has, but not each other. Thighs and hips are drawn only.

    The source simulates rotors as bodies. Here each rotor is lumped into the link that carries it, and appears as
    armature of its joint (gear ratio squared times inertia). This neglects the coupling between the rotor's spin and
    the motion of its carrier, which is smaller than the armature by the gear ratio. The source gives no range of
    motion, so there are no position limits.

    The published inertia of the thighs violates the triangle inequality. Therefore a second moment of mass of
    1e-4 kg m² along the hip axis is moved to each thigh from its abduction link. It adds no inertia about that axis,
    so the motion of the robot does not change.

    Args:
        floating_base: Whether the trunk is free to move; otherwise it is fixed at the world's origin.
        dtype: Floating type of the leaves; JAX's default if left out.

    Source: Katz, Di Carlo, Kim, Mini Cheetah: a platform for pushing the limits of dynamic quadruped control, ICRA
    2019; numbers from the authors' Cheetah-Software, `MiniCheetah.h`, tree and points of contact from its
    `Quadruped.cpp`, which has no radius for the feet: theirs is that of the robot's URDF files.
    """
    builder = Builder("quadruped")
    trunk = Free() if floating_base else Fixed()
    builder.add_link("trunk", trunk, mass=3.3, inertia=(11253e-6, 36203e-6, 42673e-6), joint_name="base")
    builder.add_shape("trunk", "box", (0.38, 0.098, 0.1), color=_DARK, touching=_NOT_ITSELF)
    for leg, (fore, left) in _LEGS.items():
        _add_leg(builder, leg, fore, left)
    return builder.build(dtype=dtype)


def _add_leg(builder: Builder, leg: str, fore: int, left: int):
    abad, thigh, shank = f"{leg}_abad", f"{leg}_thigh", f"{leg}_shank"
    spread = np.diag([_MOVED, 0, _MOVED])
    builder.add_link(
        abad,
        Revolute((1, 0, 0)),  # type: ignore[arg-type]
        parent="trunk",
        placement=(0.19 * fore, 0.049 * left, 0),
        mass=0.54,
        com=(0, 0.036 * left, 0),
        inertia=_mirrored(left, 381, 560, 444, 58, 0.45, 0.95) - spread,
        **_drive("abad"),
        joint_name=f"{leg}_abad",
    )
    builder.add_link(
        thigh,
        Revolute((0, -1, 0)),  # type: ignore[arg-type]
        parent=abad,
        placement=(0, 0.062 * left, 0),
        mass=0.634,
        com=(0, -0.016 * left, -0.02),
        inertia=_mirrored(left, 1983, 2103, 408, 245, -13, -1.5) + spread,
        **_drive("hip"),
        joint_name=f"{leg}_hip",
    )
    builder.add_link(
        shank,
        Revolute((0, -1, 0)),  # type: ignore[arg-type]
        parent=thigh,
        placement=(0, 0, -0.209),
        mass=0.064,
        com=(0, 0, -0.061),
        inertia=_mirrored(left, 245, 248, 6, 0, 0, 0),
        **_drive("knee"),
        joint_name=f"{leg}_knee",
    )
    builder.add_frame(f"{leg}_foot", shank, (0, 0, -0.175))
    _add_shapes(builder, leg, left)
    _add_rotor(builder, f"{leg}_abad_rotor", "trunk", (0.125 * fore, 0.049 * left, 0), spin_axis=0)
    _add_rotor(builder, f"{leg}_hip_rotor", abad, (0, 0.04 * left, 0), spin_axis=1)
    _add_rotor(builder, f"{leg}_knee_rotor", thigh, (0, 0, 0), spin_axis=1)


def _add_shapes(builder: Builder, leg: str, left: int):
    hip = pose((0, 0.045 * left, 0), (np.pi / 2, 0, 0))
    builder.add_shape(f"{leg}_abad", "cylinder", (0.048, 0.05), placement=hip, role="visual", color=_DARK)
    thigh, shank, foot = f"{leg}_thigh", f"{leg}_shank", f"{leg}_foot"
    builder.add_shape(thigh, "capsule", (0.02, 0.209), placement=(0, 0, -0.209 / 2), role="visual", color=_LIGHT)
    builder.add_shape(shank, "capsule", (0.01, 0.175), placement=(0, 0, -0.175 / 2), color=_LIGHT, touching=_NOT_ITSELF)
    builder.add_shape(foot, "sphere", 0.015, color=_DARK, touching=_NOT_ITSELF)


def _add_rotor(builder, name, parent, placement, spin_axis):
    inertia = np.full(3, _ROTOR_ACROSS)
    inertia[spin_axis] = _ROTOR_SPIN
    builder.add_link(name, Fixed(), parent=parent, placement=placement, mass=_ROTOR_MASS, inertia=inertia)


def _drive(joint: str) -> dict[str, Any]:
    gear = _GEAR[joint]
    return {
        "armature": gear**2 * _ROTOR_SPIN,
        "effort": gear * _MOTOR_TORQUE,
        "damping": 0.01,
        "friction": 0.2,
    }


def _mirrored(left, xx, yy, zz, xy, xz, yz):
    """Inertia matrix of a left link, given in 1e-6 kg m², or of its mirror image in the x-z plane."""
    return 1e-6 * np.array([[xx, left * xy, xz], [left * xy, yy, left * yz], [xz, left * yz, zz]])
