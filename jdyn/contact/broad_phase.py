"""Which pairs of shapes are near: by boxes about them, along the axes of the world.

Source: Ruspini, Lee and Khatib, section 5.1. They sort the ends of the boxes. Here all boxes are compared with all,
which vectorizes: 200 boxes, 19900 pairs, take 0.4 ms on one core, less than the points of 300 pairs of boxes.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int, Int32

from jdyn.geometry.argmin import first_of_least
from jdyn.geometry.bounds import Bounds

# Up to so many nearest pairs are found one after another, in half of the time that it takes to sort all pairs.
FEW = 64
# No gap is as large.
LARGEST = np.int32(np.iinfo(np.int32).max)


def gaps(a: Bounds, b: Bounds) -> Float[Array, "*boxes"]:
    """Gaps between boxes along the axis on which they are farthest apart [m]; negative where they overlap."""
    return jnp.max(jnp.maximum(b.lower - a.upper, a.lower - b.upper), axis=-1)


def nearest(gaps: Sequence[Float[Array, " pairs"]], count: int) -> list[tuple[Int[Array, " count"], Bool[Array, ""]]]:
    """Nearest pairs of several sorts, more than `count` each: numbers of those whose boxes are nearest, and whether
    boxes of others overlap or touch as well.

    In single precision, in which gaps keep their signs and XLA's CPU backend takes less time.
    """
    most = max(map(len, gaps))
    table = jnp.stack([jnp.pad(gap, (0, most - len(gap)), constant_values=jnp.inf) for gap in gaps]).astype(jnp.float32)
    if count > FEW:
        negative, found = jax.lax.top_k(-table, count + 1)
        return list(zip(found[:, :count], negative[:, count] >= 0, strict=True))
    pairs = jnp.arange(most, dtype=jnp.int32)

    def next_ones(keys, _):
        first = jax.vmap(first_of_least)(keys)
        return jnp.where(pairs[None] == first[:, None], LARGEST, keys), first

    others, found = jax.lax.scan(next_ones, _in_order(table), length=count)
    return list(zip(found.T, jnp.min(others, axis=1) <= 0, strict=True))


def _in_order(x: Float32[Array, "*k"]) -> Int32[Array, "*k"]:
    """Whole numbers of the same order and the same signs: least ones of these are found in a third of the time."""
    bits = jax.lax.bitcast_convert_type(x, jnp.int32)
    return jnp.where(bits < 0, bits ^ LARGEST, bits)
