"""MIT Mini Cheetah."""

from typing import Any

import numpy as np

from jdyn.model import Builder, Fixed, Free, Model, Revolute

# Fore (+1) or hind, left (+1) or right.
_LEGS = {"fr": (1, -1), "fl": (1, 1), "rr": (-1, -1), "rl": (-1, 1)}
_GEAR = {"abad": 6.0, "hip": 6.0, "knee": 9.33}
_ROTOR_MASS = 0.055
_ROTOR_SPIN, _ROTOR_ACROSS = 63e-6, 33e-6
_MOTOR_TORQUE = 3.0
# Moved along y, the axis of the hip, from each abduction link to its thigh [kg m²]; see the docstring.
_MOVED = 100e-6


def quadruped(*, floating_base: bool = True, dtype=None) -> Model:
    """MIT Mini Cheetah: a trunk and four legs of three joints, with rotors and joint friction.

    At q = 0 the trunk's axes are the world's, x forward, y left, z up; all legs hang straight down, and all link
    frames are parallel to the trunk's. Joints `fr_abad` (about x), `fr_hip` and `fr_knee` (about −y) move links
    `fr_abad`, `fr_thigh` and `fr_shank`; frame `fr_foot` is the point of contact; so also for `fl`, `rr` and `rl`.
    A positive hip angle swings the leg forward. A crouch is (0, −0.8, 1.6) for every leg.

    The source simulates rotors as bodies. Here each is lumped with the link that carries it, and appears as armature
    of its joint (gear ratio squared times inertia); what is left out couples the rotor's spin to the motion of its
    carrier, and is smaller than the armature by the gear ratio. The source gives no range of motion, so there are no
    limits of position.

    The published inertia of the thighs violates the triangle inequality. A spread of 1e-4 kg m² along the hip axis is
    moved to each from its abduction link: turning about that axis, such a massless spread has no inertia, so the
    motion of the robot is not altered.

    Args:
        floating_base: Whether the trunk is free to move, or held at the world's origin.
        dtype: Floating type of the leaves; JAX's default if left out.

    Source: Katz, Di Carlo, Kim, Mini Cheetah: a platform for pushing the limits of dynamic quadruped control, ICRA
    2019; numbers from the authors' Cheetah-Software, `MiniCheetah.h`, and tree from `Quadruped.cpp`.
    """
    builder = Builder("quadruped")
    trunk = Free() if floating_base else Fixed()
    builder.add_link("trunk", trunk, mass=3.3, inertia=(11253e-6, 36203e-6, 42673e-6), joint_name="base")
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
    _add_rotor(builder, f"{leg}_abad_rotor", "trunk", (0.125 * fore, 0.049 * left, 0), spin_axis=0)
    _add_rotor(builder, f"{leg}_hip_rotor", abad, (0, 0.04 * left, 0), spin_axis=1)
    _add_rotor(builder, f"{leg}_knee_rotor", thigh, (0, 0, 0), spin_axis=1)


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
    """Inertia of a left link, given in 1e-6 kg m², or of its mirror image in the x-z plane."""
    return 1e-6 * np.array([[xx, left * xy, xz], [left * xy, yy, left * yz], [xz, left * yz, zz]])
