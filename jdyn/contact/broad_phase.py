"""Which pairs of shapes are near: by boxes about them, along the axes of the world.

Source: Ruspini, Lee and Khatib, section 5.1. They sort the ends of the boxes. Here all boxes are compared with all,
which vectorizes: 200 boxes, 19900 pairs, take 0.4 ms on one core, less than the points of 300 pairs of boxes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jdyn.geometry import Convex
from jdyn.geometry.argmin import first_of_least
from jdyn.spatial import Transform

# Up to so many nearest pairs are found one after another, in half of the time that it takes to sort all pairs.
FEW = 64


class Bounds(NamedTuple):
    """Boxes along the axes of the world.

    Attributes:
        lower, upper: Their least and greatest coordinates [m].
    """

    lower: Float[Array, "*boxes 3"]
    upper: Float[Array, "*boxes 3"]


def bounds(shape: Convex, X: Transform) -> Bounds:
    """The smallest box about a shape at a pose."""
    # Rows of R are the axes of the world in the frame of the shape.
    upper, lower = (jnp.sum(X.rotation * jax.vmap(shape.support)(axes), axis=1) for axes in (X.rotation, -X.rotation))
    return Bounds(X.translation + lower, X.translation + upper)


def gaps(a: Bounds, b: Bounds) -> Float[Array, "*boxes"]:
    """How far boxes are apart along the axis on which that is most [m]; negative where they overlap."""
    return jnp.max(jnp.maximum(b.lower - a.upper, a.lower - b.upper), axis=-1)


def nearest(gap: Float[Array, " pairs"], count: int) -> tuple[Int[Array, " count"], Bool[Array, ""]]:
    """Numbers of the pairs whose boxes are nearest, and whether boxes of others overlap or touch as well."""
    if count > FEW:
        # Signs survive single precision, in which XLA's CPU backend takes a thirtieth of the time.
        negative, found = jax.lax.top_k(-gap.astype(jnp.float32), count + 1)
        return found[:count], negative[count] >= 0
    pairs = jnp.arange(len(gap), dtype=jnp.int32)

    def next_one(gap, _):
        first = first_of_least(gap)
        return jnp.where(pairs == first, jnp.inf, gap), first

    others, found = jax.lax.scan(next_one, gap, length=count)
    return found, jnp.min(others) <= 0
