"""Batches of recursions on single numbers.

`jax.vmap` puts lanes first, where vectors of a handful of entries then lie one after another in memory. Elementwise
recursions are fastest with lanes last, and with one body after another; a single configuration, which has no lanes to
work on, is faster with all bodies of a level at once. On an NVIDIA GPU a batch is one kernel, a thread a lane
(`jdyn.execution.threads`). `Model.executor` overrides that choice.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jdyn.dynamics.recursion.depth_first import DEPTH_FIRST
from jdyn.dynamics.recursion.joint_frames import with_links
from jdyn.dynamics.recursion.levels import LEVELS
from jdyn.dynamics.recursion.order import Order
from jdyn.execution.batchable import batchable
from jdyn.execution.compiled import precise, widest
from jdyn.execution.lanes import in_turn
from jdyn.execution.threads.kernel import on_threads, threaded
from jdyn.model import Model
from jdyn.model.topology import DofTree, dof_tree

# The data of so many lanes fits a processor's cache. There, larger batches run in chunks, one after another.
_CHUNK = 256


def by_lanes(
    alone: Callable | None,
    prepare: Callable[..., Any],
    recursion: Callable[[Order, DofTree, Any], Any],
    model: Model,
    *arguments: Any,
    like: Any,
) -> Any:
    """A recursion over `dof_tree(model.topology)`, run as `model.executor` says. Not differentiable.

    Args:
        alone: `alone(model, *arguments)` does the same for a single configuration; if None, it takes the recursion.
        prepare: `prepare(order, model, *arguments)` packs what the recursion works on, for one configuration.
        recursion: `recursion(order, tree, packed)`, elementwise in axes that follow those of single numbers.
        model: The mechanism.
        *arguments: PyTrees of arrays.
        like: What has the shapes and types of the result.
    """
    like, tree = _in_widest_type(like, (model, arguments)), dof_tree(model.topology)
    if _is_empty(like):
        return _nothing(like)

    def by_levels(*arguments):
        if alone is not None:
            return _traced_once(alone)(*arguments)
        return recursion(LEVELS, tree, prepare(LEVELS, *arguments))

    def by_numbers(*arguments):
        packed = _traced_once(prepare, DEPTH_FIRST)(*arguments)
        return _lanes_last(_traced_once(recursion, DEPTH_FIRST, tree), like)(packed)

    if model.executor != "auto":
        return (by_levels if model.executor == "levels" else by_numbers)(model, *arguments)
    if threaded() and model.links is None:
        # Once for all lanes, unless their models differ.
        model = with_links(model)
    return single_or_batch(by_levels, by_numbers, like)(model, *arguments)


def single_or_batch(single: Callable, batch: Callable, like: Any) -> Callable:
    """A function that runs `single`, and maps `batch` over batches of several lanes. Its results are `like` the one
    given. Not differentiable."""
    if _is_empty(like):
        return lambda *arguments: _nothing(like)

    def together(size, varies, *arguments):
        if size == 1:
            # A batch is fast because of its lanes, and this one has no others.
            y = function(*jax.tree.map(lambda x, each: x[0] if each else x, arguments, varies))
            return jax.tree.map(lambda x: x[None], y)
        if threaded():
            return _on_threads(precise(batch), batched, size, varies, arguments, like)
        return batched(size, varies, *arguments)

    def batched(size, varies, *arguments):
        return jax.vmap(precise(batch), _axes(varies), axis_size=size)(*arguments)

    function = batchable(precise(single), together, like, lane=precise(batch))
    return function


def _on_threads(function, batched, size, varies, arguments, like):
    """One thread a lane."""
    leaves, tree = jax.tree.flatten(arguments)

    def lane(*leaves):
        return jax.tree.leaves(function(*tree.unflatten(leaves)))

    def otherwise(*leaves):
        return jax.tree.leaves(batched(size, varies, *tree.unflatten(leaves)))

    found = on_threads(lane, otherwise, size, jax.tree.leaves(varies), leaves)
    return jax.tree.unflatten(jax.tree.structure(like), found)


def in_chunks(function: Callable, lanes: int, like: Any) -> Callable:
    """`function`, but a CPU runs the innermost batch in chunks of `lanes`. Its results are `like` the one given. Not
    differentiable."""

    def together(size, varies, *arguments):
        return _mapped(lambda x: jax.vmap(precise(function), _axes(varies))(*x), varies, arguments, lanes)

    return batchable(precise(function), together, like)


def _in_widest_type(like, arguments):
    dtype = widest(arguments)
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, dtype), like)


def _is_empty(like) -> bool:
    """Tell whether a result has no numbers: that of a mechanism in which nothing moves."""
    return all(x.size == 0 for x in jax.tree.leaves(like))


def _nothing(like):
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)


def _axes(varies):
    return jax.tree.map(lambda each: 0 if each else None, varies)


@functools.lru_cache(maxsize=256)
def _traced_once(function: Callable, *first: Any) -> Callable:
    """`function` with its first arguments bound, as one jitted object: JAX traces it once for equal shapes."""
    return jax.jit(functools.partial(function, *first))


def _lanes_last(recursion: Callable, like: Any) -> Callable:
    def alone(packed):
        # A result that does not depend on lanes has an axis of length one.
        return jax.tree.map(lambda x, like: jnp.broadcast_to(x, like.shape), recursion(packed), like)

    def together(size, varies, packed):
        (varies,) = varies

        def last(packed):
            packed = jax.tree.map(lambda x, each: jnp.moveaxis(x, 0, -1) if each else x[..., None], packed, varies)
            lanes = next(x.shape[-1] for x, each in zip(*map(jax.tree.leaves, (packed, varies)), strict=True) if each)
            shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct((*x.shape, lanes), x.dtype), like)
            y = _lanes_last(recursion, shapes)(packed)
            return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), y)

        return _mapped(last, varies, packed, _CHUNK)

    return batchable(alone, together, like)


def _mapped(function: Callable, batched: Any, x: Any, count: int) -> Any:
    """`function(x)`; a CPU runs `count` lanes of the `batched` arrays at a time, and repeats the last lane to fill the
    last chunk."""
    leaves, tree = jax.tree.flatten(x)
    varies = jax.tree.leaves(batched)
    lanes = [x for x, each in zip(leaves, varies, strict=True) if each]

    def whole(lanes):
        rest = iter(lanes)
        return function(tree.unflatten([next(rest) if each else x for x, each in zip(leaves, varies, strict=True)]))

    if len(lanes[0]) <= count:
        return whole(lanes)
    return jax.lax.platform_dependent(lanes, cpu=lambda lanes: in_turn(whole, lanes, count), default=whole)
