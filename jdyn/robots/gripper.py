"""Parallel gripper with a box to hold."""

from jdyn.model import Builder, Free, Model, Prismatic
from jdyn.robots.links import box_inertia, per_link

_SIDE = 0.06
_FINGER = (0.02, 0.01, 0.08)
_DARK, _LIGHT, _RED = (0.25, 0.27, 0.3), (0.75, 0.77, 0.8), (0.75, 0.3, 0.2)


def gripper(load: float = 0.5, *, dtype=None) -> Model:
    """A hand that moves up and down, with two parallel fingers, and a cube between them.

    q = [lift, left, right, pose of the cube] [m, m, m; m and a quaternion]. At q = 0, which is `model.neutral()`, the
    centre of the cube, whose sides are 6 cm long, is the world's origin, and the fingers are 1.5 cm away from it. A
    positive `lift` raises the hand; positive `left` and `right` close the fingers, which move along −y and +y by up to
    4 cm, with up to 40 N. `jdyn.with_ground(model, (0, 0, -0.03))` has the cube stand, 1 cm below the fingers' tips.

    The numbers are choices without a source.

    Args:
        load: Mass of the cube [kg].
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if the mass is not a finite positive number.
    """
    [[mass]] = per_link(1, load=load)
    builder = Builder("gripper")
    builder.add_link(
        "hand",
        Prismatic((0, 0, 1)),  # type: ignore[arg-type]
        placement=(0, 0, 0.08),
        mass=1.0,
        inertia=box_inertia(1.0, (0.06, 0.16, 0.04)),
        joint_name="lift",
        damping=20.0,
        lower=0.0,
        upper=0.5,
        effort=100.0,
    )
    builder.add_shape("hand", "box", (0.06, 0.16, 0.04), role="visual", color=_DARK)
    for name, side in (("left", 1), ("right", -1)):
        builder.add_link(
            name,
            Prismatic((0, -side, 0)),  # type: ignore[arg-type]
            parent="hand",
            placement=(0, 0.05 * side, -0.06),
            mass=0.1,
            inertia=box_inertia(0.1, _FINGER),
            joint_name=name,
            damping=5.0,
            lower=0.0,
            upper=0.04,
            effort=40.0,
        )
        builder.add_shape(name, "box", _FINGER, color=_LIGHT)
    builder.add_link(
        "cube",
        Free(),
        mass=mass,
        inertia=box_inertia(mass, (_SIDE,) * 3),
    )
    builder.add_shape("cube", "box", (_SIDE,) * 3, color=_RED)
    return builder.build(dtype=dtype)
