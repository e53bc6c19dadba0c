"""Cart with a pole between two walls."""

import numpy as np

from jdyn.model import Builder, Continuous, Model, Prismatic, pose
from jdyn.robots.links import per_link

_RADIUS = 0.05


def cartpole_with_walls(distance: float = 0.5, *, dtype=None) -> Model:
    """A cart with a pole, between two walls that the end of the pole runs into.

    q = [x of the cart, angle of the pole] [m, rad]; at q = 0 the pole is **upright**, and positive angles tilt it
    towards +x, as in `cartpole`. Cart and pole have 1 kg each, that of the pole in its end, 1 m above the cart: frame
    `tip`, in the middle of a ball of 5 cm, which touches a wall where `tip` is as far from the middle as `distance`.
    The cart is driven, the hinge is not. The source has g = 10 m/s², walls with a coefficient of restitution of 0.5,
    and no ball: its tip touches a wall at the same place.

    Args:
        distance: From the middle to where the tip touches a wall [m].
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if the distance is not a finite positive number.

    Source: Marcucci, Tedrake, Warm start of mixed-integer programs for model predictive control of hybrid systems,
    IEEE Transactions on Automatic Control 66, 2021, and its software, `warm_start_hmpc`.
    """
    [[reach]] = per_link(1, distance=distance)
    builder = Builder("cartpole_with_walls")
    builder.add_link(
        "cart",
        Prismatic((1, 0, 0)),  # type: ignore[arg-type]
        mass=1.0,
        # The cart never turns, so its shape does not matter: a cube with sides of 0.2 m.
        inertia=0.2**2 / 6,
        joint_name="rail",
    )
    builder.add_link(
        "pole",
        Continuous((0, 1, 0)),  # type: ignore[arg-type]
        parent="cart",
        mass=1.0,
        com=(0, 0, 1),
        joint_name="hinge",
        effort=0.0,
    )
    builder.add_frame("tip", "pole", (0, 0, 1))
    builder.add_shape("cart", "box", (0.2, 0.1, 0.1), role="visual", color=(0.25, 0.27, 0.3))
    builder.add_shape("pole", "capsule", (0.015, 1.0), placement=(0, 0, 0.5), role="visual", color=(0.75, 0.77, 0.8))
    builder.add_shape("tip", "sphere", _RADIUS, color=(0.75, 0.3, 0.2))
    for name, side in (("left", -1), ("right", 1)):
        wall = pose((side * (reach + _RADIUS), 0, 0), (0, -side * np.pi / 2, 0))
        builder.add_shape("world", "plane", (0, 0), placement=wall, role="collision", name=f"{name}_wall")
    return builder.build(dtype=dtype)
