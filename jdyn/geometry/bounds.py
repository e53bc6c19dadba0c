"""Boxes about shapes, along the axes of the frame that their poses are in."""

from typing import NamedTuple

import jax
from jaxtyping import Array, Float

from jdyn.geometry.shapes import Convex
from jdyn.spatial import Transform


class Bounds(NamedTuple):
    """Boxes along the axes of a frame.

    Attributes:
        lower, upper: Their least and greatest coordinates [m].
    """

    lower: Float[Array, "*boxes 3"]
    upper: Float[Array, "*boxes 3"]


def bounds(shape: Convex, X: Transform) -> Bounds:
    """The smallest box about a shape at a pose."""
    # Rows of R are these axes in the frame of the shape.
    back, forwards = (jax.vmap(shape.reach)(axes) for axes in (-X.rotation, X.rotation))
    return Bounds(X.translation - back, X.translation + forwards)
