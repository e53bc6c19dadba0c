"""Ball on a plate that tilts."""

import numpy as np

from jdyn.model import Builder, Free, Model, Universal
from jdyn.robots.links import box_inertia, per_link

_SIDES = (0.4, 0.4, 0.01)
_DENSITY = 7800.0


def ball_on_plate(radius: float = 0.02, *, dtype=None) -> Model:
    """A steel ball on a square plate, which tilts about both of its middle lines.

    q = [tilt about x, tilt about y, pose of the ball] [rad, rad; m and a quaternion]. At q = 0, which is
    `model.neutral()`, the plate is level, and the ball rests in its middle, with its centre in the world's origin.
    Positive tilts about x let the ball roll towards −y, about y towards +x. The plate has sides of 0.4 m, a mass of 1
    kg, and motors of up to 2 N m, which turn it about the middle of its upper surface.

    On a plate that is held at a tilt φ, a ball that rolls without slipping accelerates along it by 5/7 g sin φ.

    The numbers are choices without a source.

    Args:
        radius: Radius of the ball [m]; its density is 7800 kg/m³.
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if the radius is not a finite positive number.
    """
    [[r]] = per_link(1, radius=radius)
    mass = 4 / 3 * np.pi * r**3 * _DENSITY
    builder = Builder("ball_on_plate")
    builder.add_link(
        "plate",
        Universal((1, 0, 0), (0, 1, 0)),  # type: ignore[arg-type]
        placement=(0, 0, -r),
        mass=1.0,
        com=(0, 0, -_SIDES[2] / 2),
        inertia=box_inertia(1.0, _SIDES),
        joint_name="tilt",
        damping=0.05,
        lower=-0.5,
        upper=0.5,
        effort=2.0,
    )
    builder.add_shape("plate", "box", _SIDES, placement=(0, 0, -_SIDES[2] / 2), color=(0.75, 0.77, 0.8))
    builder.add_link("ball", Free(), mass=mass, inertia=0.4 * mass * r**2)
    builder.add_shape("ball", "sphere", r, color=(0.75, 0.3, 0.2))
    return builder.build(dtype=dtype)
