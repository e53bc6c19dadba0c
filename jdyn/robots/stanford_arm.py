"""Stanford arm."""

import numpy as np

from jdyn.model import Builder, Model, Prismatic, Revolute, pose
from jdyn.robots.dh import in_joint_frame, standard

# Standard Denavit-Hartenberg: d [m], α [rad]; every a is zero.
_GEOMETRY = (
    (0.412, -np.pi / 2),
    (0.154, np.pi / 2),
    (0, 0),
    (0, -np.pi / 2),
    (0, np.pi / 2),
    (0.263, 0),
)
# Mass [kg], centre of mass in the link frame [m], diagonal inertia about that frame's origin [kg m²], armature
# [kg m²; kg for joint 3]. Corrected as described in the docstring.
_LINKS = (
    (9.29, (0, 0.0175, -0.1105), (0.276, 0.255, 0.071), 0.953),
    (5.01, (0, -0.1054, 0), (0.108, 0.018, 0.100), 2.193),
    (4.25, (0, 0, -0.6447), (2.51, 2.51, 0.006), 0.782),
    (1.08, (0, 0.0092, -0.0054), (0.002, 0.001, 0.001), 0.106),
    (0.63, (0, 0.0566, 0.0003), (0.003, 0.0004, 0.003), 0.097),
    (0.51, (0, 0, 0.1554), (0.013, 0.013, 0.0003), 0.020),
)
_DEGREE = np.pi / 180
_LIMITS = (
    (-170 * _DEGREE, 170 * _DEGREE),
    (-170 * _DEGREE, 170 * _DEGREE),
    (0.3048, 1.27),
    (-170 * _DEGREE, 170 * _DEGREE),
    (-90 * _DEGREE, 90 * _DEGREE),
    (-170 * _DEGREE, 170 * _DEGREE),
)


def stanford_arm(*, dtype=None) -> Model:
    """Stanford arm: a shoulder of two revolute joints, a prismatic boom, and a wrist of three, bolted to the world.

    At q = 0 the boom, fully retracted, is vertical, 0.154 m beside the first axis along +y and 0.412 m above the base,
    and the hand points up. q[2] is the boom's extension, between 0.3048 and 1.27 m. Each link's frame is at its own
    joint with z along the axis; frame `tool` is the last frame of the standard Denavit-Hartenberg convention. Rotor
    inertia is given as seen at the joint; friction is not published.

    **Corrections.** The tables in circulation are physically impossible: the boom's centre of mass is 6.4 m away from
    its end, and link 5 has no inertia about its z axis. The following corrections are inferred, not published:
    (a) the centres of mass of links 2 to 6 lost a decimal and are divided by ten; (b) inertias are about the origin of
    the link frame, as in Paul's pseudo-inertia matrices, not about the centre of mass; (c) link 5, whose centre of
    mass lies on y, has the same inertia about z as about x. The hand offset of 0.263 m is Paul's.

    Args:
        dtype: Floating type of the leaves; JAX's default if left out.

    Source: Paul, Modelling, trajectory calculation and servoing of a computer controlled arm, Stanford AIM-177 (1972),
    figure 2.3; Paul, Robot Manipulators (1981), tables 6.5 and 6.6, as copied in Corke's Robotics Toolbox
    (`mdl_stanford.m`), which also estimates the boom's travel.
    """
    builder = Builder("stanford_arm")
    parent, placement = "world", standard(0, 0, 0)
    for i, (geometry, link, limits) in enumerate(zip(_GEOMETRY, _LINKS, _LIMITS, strict=True)):
        d, alpha = geometry
        mass, com, inertia, armature = link
        slides = i == 2
        end = standard(0, alpha, d)
        com, inertia = in_joint_frame(end, com, _about_com(mass, com, inertia))
        joint = Prismatic((0, 0, 1)) if slides else Revolute((0, 0, 1))  # type: ignore[arg-type]
        builder.add_link(
            f"link{i + 1}",
            joint,
            parent=parent,
            # The prismatic joint's constant angle of -90 degrees comes before its slide.
            placement=placement @ pose(rpy=(0, 0, -np.pi / 2)) if slides else placement,
            mass=mass,
            com=com,
            inertia=inertia,
            joint_name=f"joint{i + 1}",
            armature=armature,
            lower=limits[0],
            upper=limits[1],
        )
        parent, placement = f"link{i + 1}", end
    builder.add_frame("tool", parent, placement)
    return builder.build(dtype=dtype)


def _about_com(mass, com, inertia):
    """Principal inertias about the centre of mass from those about the origin; products are taken to vanish there."""
    square = np.square(com)
    return np.asarray(inertia) - mass * (np.sum(square) - square)
