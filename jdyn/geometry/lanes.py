"""Batches whose loops do not wait for each other's lanes."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.custom_batching import custom_vmap

from jdyn.execution.lanes import all_varying, merged, one_by_one

T = TypeVar("T")


def in_turn_on_cpus(function: Callable[..., T], *arguments: Any) -> T:
    """`function(*arguments)`. On a CPU, the lanes of `jax.vmap`, nested or not, run one after the other. Not
    differentiable.

    Together, they go on until the last one ends: the distances of cylinders and ellipsoids take two to six times as
    long, those of boxes about twice. Their programs take a quarter longer to compile. The function must not close over
    traced values.
    """
    leaves, tree = jax.tree.flatten(arguments)

    def on_leaves(leaves):
        return function(*jax.tree.unflatten(tree, leaves))

    def batch(lanes, varies, leaves):
        if lanes == 1 or jax.default_backend() != "cpu":
            return jax.vmap(on_leaves, ([0 if each else None for each in varies],))(leaves)
        return one_by_one(on_leaves, varies, leaves)

    alone = custom_vmap(on_leaves)

    @alone.def_vmap
    def together(lanes, varies, leaves):
        return all_varying(merged(batch, lanes, varies[0], leaves))

    return alone(leaves)
