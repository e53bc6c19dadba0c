"""Raibert's planar hopper."""

from jdyn.model import Builder, Model, Planar, Prismatic, Revolute, Touching

_BODY_MASS, _BODY_INERTIA = 10.0, 10.0
_LEG_MASS, _LEG_INERTIA = 1.0, 1.0
_HIP_TO_BODY, _FOOT_TO_LEG = 0.4, 0.5
_LEG_LENGTH, _SPRING = 1.0, 1e3
_FOOT_RADIUS = 0.05
_DARK, _LIGHT = (0.25, 0.27, 0.3), (0.75, 0.77, 0.8)


def hopper(*, dtype=None) -> Model:
    """Raibert's planar one-legged hopper: a body, and a leg with a spring under it, in the x-z plane.

    q = [x, z, pitch, hip, leg] [m, m, rad, rad, m]: the body's centre and its pitch, whose positive angles lift what is
    at +x; the leg's angle to the body, positive forwards; and by how much the leg is longer than its spring at rest,
    negative when compressed. At q = 0 the leg hangs straight down from a level body, and the middle of the foot, frame
    `foot`, is 1.4 m below the body's centre. Standing still, the spring is compressed by 0.0981 m, which carries the
    body.

    The leg is no longer than its spring at rest: a limit that holds where `jdyn.simulate` is given `joint_limits`.
    A force on the leg acts beside the spring, as the source's second actuator, whose position moves the spring's end,
    does. The source's hip is a point, so the leg swings on a massless link; its foot is a point, too, here a ball about
    it of 5 cm. The source gives 9.8 m/s².

    Args:
        dtype: Floating type of the leaves; JAX's default if left out.

    Source: Raibert, Hopping in legged systems: modeling and simulation for the two-dimensional one-legged case, IEEE
    Transactions on Systems, Man, and Cybernetics 14, 1984, with the numbers that Drake's `HopperPlant` took from it.
    """
    builder = Builder("hopper")
    builder.add_link(
        "body",
        Planar((0, -1, 0), (1, 0, 0)),  # type: ignore[arg-type]
        mass=_BODY_MASS,
        # Motion in the plane takes the inertia about y alone; a bar along x has little about x, and as much about z.
        inertia=(0.1, _BODY_INERTIA, _BODY_INERTIA),
        joint_name="plane",
    )
    builder.add_link(
        "swivel",
        Revolute((0, -1, 0)),  # type: ignore[arg-type]
        parent="body",
        placement=(0, 0, -_HIP_TO_BODY),
        joint_name="hip",
    )
    builder.add_link(
        "leg",
        Prismatic((0, 0, -1)),  # type: ignore[arg-type]
        parent="swivel",
        placement=(0, 0, -_LEG_LENGTH),
        mass=_LEG_MASS,
        com=(0, 0, _FOOT_TO_LEG),
        inertia=(_LEG_INERTIA, _LEG_INERTIA, 0.02 * _LEG_INERTIA),
        joint_name="leg",
        stiffness=_SPRING,
        upper=0.0,
    )
    builder.add_frame("foot", "leg")
    builder.add_shape("body", "box", (1.6, 0.1, 0.1), color=_DARK, touching=Touching(conaffinity=0))
    builder.add_shape("body", "capsule", (0.04, 0.4), placement=(0, 0, -0.2), role="visual", color=_DARK)
    builder.add_shape("swivel", "sphere", 0.06, role="visual", color=_LIGHT)
    builder.add_shape("leg", "capsule", (0.02, 0.9), placement=(0, 0, 0.45), role="visual", color=_LIGHT)
    builder.add_shape("foot", "sphere", _FOOT_RADIUS, color=_DARK, touching=Touching(conaffinity=0))
    return builder.build(dtype=dtype)
