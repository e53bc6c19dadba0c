"""Batches as wholes: nested ones merged into one, and lanes some at a time."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array

T = TypeVar("T")


def merged(run: Callable[[int, list[bool], list], T], lanes: int, varies: list[bool], leaves: list) -> T:
    """`run(lanes, varies, leaves)`, where another `jax.vmap` merges all batches into one larger batch.

    Args:
        run: From the number of lanes, whether each array has an axis of lanes, its first one, and the arrays, to
            results that all have that axis.
        lanes: As `run` takes it.
        varies: As `run` takes it.
        leaves: As `run` takes it.
    """

    @custom_vmap
    def batch(leaves):
        return run(lanes, varies, leaves)

    @batch.def_vmap
    def nested(batches, outside, leaves):
        either, flat = as_one_batch(batches, lanes, outside[0], varies, leaves)
        found = merged(run, batches * lanes, either, flat)
        return all_varying(jax.tree.map(lambda x: x.reshape(batches, lanes, *x.shape[1:]), found))

    return batch(leaves)


def as_one_batch(
    batches: int, lanes: int, outside: Sequence[bool], varies: Sequence[bool], arrays: Sequence[Array]
) -> tuple[list[bool], list[Array]]:
    """Lanes of several batches as those of one: whether each array has an axis of lanes, and the arrays.

    Args:
        batches: How many.
        lanes: Of each.
        outside: Whether each array has an axis of batches, its first one.
        varies: Whether it has an axis of lanes, its first or second one.
        arrays: The arrays.
    """

    def flattened(x, inner, outer):
        if not inner:
            return jnp.repeat(x, lanes, axis=0) if outer else x
        x = x if outer else jnp.broadcast_to(x, (batches, *x.shape))
        return x.reshape(batches * lanes, *x.shape[2:])

    rows = list(zip(arrays, varies, outside, strict=True))
    return [inner or outer for _, inner, outer in rows], [flattened(*row) for row in rows]


def all_varying(results: T) -> tuple[T, Any]:
    """Results that all have an axis of lanes, as rules of `custom_vmap` return them."""
    return results, jax.tree.map(lambda _: True, results)


def one_by_one(function: Callable[[list], T], varies: list[bool], leaves: list) -> T:
    """`function(leaves)` of each lane, one after the other.

    Args:
        function: Of all arrays of a lane.
        varies: Whether each array has an axis of lanes, its first one.
        leaves: The arrays.
    """
    own, shared = eqx.partition(leaves, varies)
    return jax.lax.map(lambda own: function(eqx.combine(own, shared)), own)


def in_turn(function: Callable, lanes: Any, count: int) -> Any:
    """`function` of arrays with an axis of lanes, `count` lanes at a time. The last lane is repeated to fill the last
    block."""
    size = len(jax.tree.leaves(lanes)[0])
    blocks = -(-size // count)

    def filled(x):
        x = jnp.pad(x, [(0, blocks * count - size)] + [(0, 0)] * (x.ndim - 1), mode="edge")
        return x.reshape(blocks, count, *x.shape[1:])

    found = jax.lax.map(function, jax.tree.map(filled, lanes))
    return jax.tree.map(lambda x: x.reshape(blocks * count, *x.shape[2:])[:size], found)
