"""Batches whose loops wait for few lanes."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.custom_batching import custom_vmap

from jdyn.array.lanes import all_varying, in_turn, merged

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
        return all_varying(merged(functools.partial(_blocks, on_leaves), lanes, varies[0], leaves))

    return alone(leaves)


def _blocks(function: Callable, lanes: int, varies: list[bool], leaves: list):
    fixed = [None if each else x for each, x in zip(varies, leaves, strict=True)]
    moving = [x if each else None for each, x in zip(varies, leaves, strict=True)]

    def lane(moving):
        return function([x if each else y for each, x, y in zip(varies, moving, fixed, strict=True)])

    if lanes <= _BLOCK or jax.default_backend() != "cpu":
        return jax.vmap(lane)(moving)
    return in_turn(jax.vmap(lane), moving, _BLOCK)
