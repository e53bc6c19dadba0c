"""Batches whose loops wait for few lanes."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array

T = TypeVar("T")

# Of a batch on a CPU, so many lanes at a time: what they work on fits its cache, and few wait for many.
_BLOCK = 64


def in_blocks(function: Callable[..., T], *arguments: Any) -> T:
    """`function(*arguments)`. The lanes of `jax.vmap`, nested or not, run some at a time. Not differentiable.

    The function must not close over traced values.
    """
    leaves, tree = jax.tree.flatten(arguments)

    def on_leaves(leaves):
        return function(*jax.tree.unflatten(tree, leaves))

    alone = custom_vmap(on_leaves)

    @alone.def_vmap
    def batch(lanes, varies, leaves):
        return _all_varying(_blocks(on_leaves, lanes, varies[0], leaves))

    return alone(leaves)


def _blocks(function: Callable, lanes: int, varies: list[bool], leaves: list):
    """Results of many lanes; another `jax.vmap` merges all batches into one larger batch."""

    @custom_vmap
    def batch(leaves):
        fixed = [None if each else x for each, x in zip(varies, leaves, strict=True)]
        moving = [x if each else None for each, x in zip(varies, leaves, strict=True)]

        def lane(moving):
            return function([x if each else y for each, x, y in zip(varies, moving, fixed, strict=True)])

        if lanes <= _BLOCK or jax.default_backend() != "cpu":
            return jax.vmap(lane)(moving)
        blocks = -(-lanes // _BLOCK)
        filled = jax.tree.map(lambda x: _padded(x, blocks * _BLOCK).reshape(blocks, _BLOCK, *x.shape[1:]), moving)
        found = jax.lax.map(jax.vmap(lane), filled)
        return jax.tree.map(lambda x: x.reshape(blocks * _BLOCK, *x.shape[2:])[:lanes], found)

    @batch.def_vmap
    def nested(batches, outside, leaves):
        def flattened(x, inner, outer):
            if not inner:
                return jnp.repeat(x, lanes, axis=0) if outer else x
            return (x if outer else jnp.stack([x] * batches)).reshape(batches * lanes, *x.shape[1 + outer :])

        flat = [flattened(*leaf) for leaf in zip(leaves, varies, outside[0], strict=True)]
        either = [inner or outer for inner, outer in zip(varies, outside[0], strict=True)]
        found = _blocks(function, batches * lanes, either, flat)
        return _all_varying(jax.tree.map(lambda x: x.reshape(batches, lanes, *x.shape[1:]), found))

    return batch(leaves)


def _padded(x: Array, length: int) -> Array:
    """With the last lane repeated."""
    return jnp.pad(x, [(0, length - len(x))] + [(0, 0)] * (x.ndim - 1), mode="edge")


def _all_varying(found):
    return found, jax.tree.map(lambda _: True, found)
