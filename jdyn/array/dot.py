"""Products of small matrices and vectors, over the last axis of the first and the first axis of the second.

`@` is a call of its own in the middle of a loop. XLA joins what is written here with what surrounds it.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Multiplications that are not left to a call of their own.
MOST = 160


def dot(a: Float[Array, "*rows n"], b: Float[Array, "n *columns"]) -> Float[Array, "*both"]:
    """a b, as one multiplication of arrays and a sum.

    For loops of one motion: a gripper that grasps takes two thirds of the time. In large batches `@` is faster, and
    `short_dot` faster still. Where there is much to multiply, as with hulls of a hundred corners, it is `@`.
    """
    if a.size * b.size > MOST * len(b):
        return jnp.tensordot(a, b, 1)
    rows, columns = (1,) * (a.ndim - 1), (1,) * (b.ndim - 1)
    return jnp.sum(a.reshape(*a.shape, *columns) * b.reshape(*rows, *b.shape), axis=a.ndim - 1)


def short_dot(a: Float[Array, "*rows n"], b: Float[Array, "n *columns"]) -> Float[Array, "*both"]:
    """a b, written out over an axis of three or four entries.

    Elementwise operations alone, which XLA vectorises over the lanes of a batch: the distances of the feet of 512
    quadrupeds from the ground take a quarter of the time.
    """
    n = len(b)
    columns, rows = jax.lax.split(a.reshape(-1, n), (1,) * n, axis=1), jax.lax.split(b.reshape(n, -1), (1,) * n)
    first, *rest = (column * row for column, row in zip(columns, rows, strict=True))
    return sum(rest, start=first).reshape(*a.shape[:-1], *b.shape[1:])
