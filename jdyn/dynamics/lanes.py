"""How recursions on single numbers are batched.

`jax.vmap` puts lanes first, where vectors of a handful of entries then lie one after another in memory. Elementwise
recursions are fastest with lanes last, and with one body after another; a single configuration, which has no lanes to
work on, is faster with all bodies of a level at once. What runs a recursion can be chosen, too.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jdyn.dynamics import one_by_one, traverse
from jdyn.dynamics.batchable import batchable
from jdyn.dynamics.compiled import precise, widest
from jdyn.model import Model, Topology

# What suits; all bodies of a level at once; number by number in plain XLA; number by number, each loop a kernel. What
# suits goes by measurements, and there are none of kernels on a GPU.
Executor = Literal["auto", "levels", "lanes", "kernel"]

# What so many lanes need stays in a processor's cache: larger batches go in chunks there, one after another.
_LANES = 256


def by_lanes(
    alone: Callable | None,
    prepare: Callable,
    recursion: Callable,
    model: Model,
    *arguments: Any,
    like: Any,
    executor: Executor = "auto",
) -> Any:
    """A recursion over `model.topology.serial`, in the way that suits the batch it is asked for. Not differentiable.

    Args:
        alone: `alone(model, *arguments)` does the same for a single configuration; if None, it takes the recursion.
        prepare: `prepare(order, model, *arguments)` packs what the recursion works on, for one configuration.
        recursion: `recursion(order, tree, packed)`, elementwise in axes that follow those of single numbers.
        model: The mechanism.
        *arguments: PyTrees of arrays.
        like: What has the shapes and types of the result.
        executor: What runs it, single configuration or batch, instead of what would suit.
    """
    like = _in_widest_type(like, (model, arguments))
    tree, order = model.topology.serial, one_by_one
    if executor == "kernel":
        from jdyn.dynamics import fused  # it takes a while to import, and nothing else needs it

        order = fused

    def by_levels(*arguments):
        if alone is not None:
            return _traced_once(alone)(*arguments)
        return recursion(traverse, tree, prepare(traverse, *arguments))

    def by_numbers(*arguments):
        packed = _traced_once(prepare, order)(*arguments)
        recursive = _traced_once(recursion, order, tree)
        return _lanes_last(recursive, like, chunked=executor != "kernel")(packed)

    if executor != "auto":
        return (by_levels if executor == "levels" else by_numbers)(model, *arguments)
    return single_or_batch(by_levels, by_numbers, like)(model, *arguments)


def single_or_batch(single: Callable, batch: Callable, like: Any) -> Callable:
    """A function that `jax.vmap` takes as `batch`, which is then mapped, and that is `single` otherwise, or for a batch
    of one; results are `like` the one given. Not differentiable."""

    def together(size, varies, *arguments):
        if size == 1:
            # Lanes are what makes a batch fast.
            y = function(*jax.tree.map(lambda x, each: x[0] if each else x, arguments, varies))
            return jax.tree.map(lambda x: x[None], y)
        return jax.vmap(precise(batch), _axes(varies), axis_size=size)(*arguments)

    function = batchable(precise(single), together, like)
    return function


def in_chunks(function: Callable, lanes: int, like: Any) -> Callable:
    """`function`, of which a CPU finishes so many lanes of the innermost batch before it begins with others; its
    results are `like` the one given. Not differentiable."""

    def together(size, varies, *arguments):
        return _mapped(lambda x: jax.vmap(precise(function), _axes(varies))(*x), varies, arguments, lanes)

    return batchable(precise(function), together, like)


def _in_widest_type(like, arguments):
    dtype = widest(arguments)
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, dtype), like)


def _axes(varies):
    return jax.tree.map(lambda each: 0 if each else None, varies)


@functools.lru_cache(maxsize=256)
def _traced_once(function: Callable, *first: Any) -> Callable:
    """`function` with its first arguments; JAX finds the same again where it is used again for arrays like these."""
    return jax.jit(functools.partial(function, *first))


def _lanes_last(recursion: Callable, like: Any, chunked: bool) -> Callable:
    def alone(packed):
        # What does not depend on lanes comes out with one.
        return jax.tree.map(lambda x, like: jnp.broadcast_to(x, like.shape), recursion(packed), like)

    def together(size, varies, packed):
        (varies,) = varies

        def last(packed):
            packed = jax.tree.map(lambda x, each: jnp.moveaxis(x, 0, -1) if each else x[..., None], packed, varies)
            lanes = next(x.shape[-1] for x, each in zip(*map(jax.tree.leaves, (packed, varies)), strict=True) if each)
            shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct((*x.shape, lanes), x.dtype), like)
            y = _lanes_last(recursion, shapes, chunked)(packed)
            return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), y)

        return _mapped(last, varies, packed, _LANES if chunked else max(size, 1))

    return batchable(alone, together, like)


def _mapped(function: Callable, batched: Any, x: Any, count: int) -> Any:
    """`function(x)`; on a CPU by so many lanes of what is `batched` at a time, the last chunk filled up with the last
    lane."""
    leaves, tree = jax.tree.flatten(x)
    varies = jax.tree.leaves(batched)
    lanes = [x for x, each in zip(leaves, varies, strict=True) if each]
    size = len(lanes[0])
    chunks = -(-size // count)

    def whole(lanes):
        rest = iter(lanes)
        return function(tree.unflatten([next(rest) if each else x for x, each in zip(leaves, varies, strict=True)]))

    def in_turn(lanes):
        filled = [jnp.pad(x, [(0, chunks * count - size)] + [(0, 0)] * (x.ndim - 1), mode="edge") for x in lanes]
        y = jax.lax.map(whole, [x.reshape(chunks, count, *x.shape[1:]) for x in filled])
        return jax.tree.map(lambda x: x.reshape(chunks * count, *x.shape[2:])[:size], y)

    return whole(lanes) if chunks == 1 else jax.lax.platform_dependent(lanes, cpu=in_turn, default=whole)


def summed(order: Any, tree: Topology, packed: Any) -> tuple[Any, Any]:
    """The sum of packed values, and their sums over all subtrees, in an order of this module."""

    def add(below, own):
        total = jax.tree.map(jnp.add, below, own)
        return total, total

    zero = zeros(packed, 1)[0]
    return order.gathered(tree, add, jax.tree.map(lambda _: zero, packed[0]), packed)


def zeros(packed: Any, count: int) -> tuple[Array, ...]:
    """As many zeros, in every lane of packed values."""
    leaves = jax.tree.leaves(packed)
    return (jnp.zeros(jnp.broadcast_shapes(*(x.shape[2:] for x in leaves)), leaves[0].dtype),) * count
