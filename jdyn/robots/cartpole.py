"""Cart with a pole."""

from jdyn.model import Builder, Continuous, Model, Prismatic
from jdyn.robots.links import per_link, rod_inertia


def cartpole(cart_mass: float = 1.0, pole_mass: float = 0.1, pole_length: float = 1.0, *, dtype=None) -> Model:
    """A cart on a rail along x, with a uniform pole hinged to it.

    q = [x of the cart, angle of the pole] [m, rad]; at q = 0 the pole is **upright**, and positive angles tilt it
    towards +x. Frame `tip` is the end of the pole. The rail ends at ±2.4 m, and the force on the cart is limited to
    10 N; the effort limit of the hinge is 0, since it is not driven. There is no friction. The source uses
    g = 9.8 m/s² and specifies half the pole's length.

    Args:
        cart_mass: Mass of the cart [kg].
        pole_mass: Mass of the pole [kg].
        pole_length: Length of the whole pole [m].
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if a mass or the length is not a finite positive number.

    Source: Barto, Sutton, Anderson, Neuronlike adaptive elements that can solve difficult learning control problems
    (1983), without friction, as in Farama Gymnasium, `envs/classic_control/cartpole.py`.
    """
    [cart], [pole], [length] = per_link(1, cart_mass=cart_mass, pole_mass=pole_mass, pole_length=pole_length)
    builder = Builder("cartpole")
    builder.add_link(
        "cart",
        Prismatic((1, 0, 0)),  # type: ignore[arg-type]
        mass=cart,
        # The cart never turns, so its shape does not matter: a cube with sides of 0.2 m.
        inertia=cart * 0.2**2 / 6,
        joint_name="rail",
        lower=-2.4,
        upper=2.4,
        effort=10.0,
    )
    builder.add_link(
        "pole",
        Continuous((0, 1, 0)),  # type: ignore[arg-type]
        parent="cart",
        mass=pole,
        com=(0, 0, length / 2),
        inertia=rod_inertia(pole, length, (0, 0, 1)),
        joint_name="hinge",
        effort=0.0,
    )
    builder.add_frame("tip", "pole", (0, 0, length))
    return builder.build(dtype=dtype)
