"""A ball and a box, to throw, to drop and to let slide."""

from collections.abc import Sequence

from jdyn.model import Builder, Free, Model
from jdyn.robots.links import box_inertia, per_link


def ball(radius: float = 0.1, mass: float = 1.0, *, dtype=None) -> Model:
    """A uniform solid ball, free to move.

    q = [position of its centre, orientation]; at q = 0, which is `model.neutral()`, the centre is the world's origin.
    `jdyn.with_ground(model)` gives it something to bounce on.

    The numbers are choices without a source.

    Args:
        radius: Radius [m].
        mass: Mass [kg].
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if the radius or the mass is not a finite positive number.
    """
    [r], [m] = per_link(1, radius=radius, mass=mass)
    builder = Builder("ball")
    builder.add_link("ball", Free(), mass=m, inertia=0.4 * m * r**2)
    builder.add_shape("ball", "sphere", r)
    return builder.build(dtype=dtype)


def box(sides: float | Sequence[float] = (0.3, 0.2, 0.1), mass: float = 1.0, *, dtype=None) -> Model:
    """A uniform box, free to move.

    q = [position of its centre, orientation]; at q = 0, which is `model.neutral()`, the centre is the world's origin
    and the sides are along the world's axes. `jdyn.with_ground(model, jdyn.pose(rpy=(0, 0.3, 0)))` puts it on a slope.

    The numbers are choices without a source.

    Args:
        sides: Lengths of the sides, or of them all [m].
        mass: Mass [kg].
        dtype: Floating type of the leaves; JAX's default if left out.

    Raises:
        ValueError: if a side or the mass is not a finite positive number.
    """
    (lengths,), ([m],) = per_link(3, sides=sides), per_link(1, mass=mass)
    builder = Builder("box")
    builder.add_link("box", Free(), mass=m, inertia=box_inertia(m, lengths.tolist()))
    builder.add_shape("box", "box", lengths)
    return builder.build(dtype=dtype)
