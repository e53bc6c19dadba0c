"""Many arrays computed by few programs.

On a CPU, XLA compiles a program of its own for each array that elementwise operations end in, and repeats in every one
what they share: the six numbers of a force take six programs, each of which does most of the work. A reduction of
several arrays at a time is a single program, though, and what such arrays are made of is fused into it.
"""

from typing import Any

import jax
import jax.numpy as jnp

# Of forward dynamics' 35 numbers a step, XLA computes apart what more than so many of a reduction need.
_ARRAYS = 15


def at_once(x: Any) -> Any:
    """A PyTree of arrays that broadcast against each other, bit by bit as they are, but all of one shape; where XLA
    compiles for a CPU, in a few programs. All are computed, even if only some are wanted.

    Floating-point arrays must be of one type; whole numbers, such as known zeros, stay.
    """
    leaves, tree = jax.tree.flatten(x)
    # An array that is there several times is computed once.
    arrays = {id(leaf): leaf for leaf in leaves if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)}
    found = dict(zip(arrays, _together(jnp.broadcast_arrays(*arrays.values())), strict=True))
    return tree.unflatten([found.get(id(leaf), leaf) for leaf in leaves])


@jax.custom_jvp
def _together(arrays):
    return jax.lax.platform_dependent(arrays, cpu=_reduced, default=lambda arrays: arrays)


@_together.defjvp
def _together_jvp(primals, tangents):
    return _together(*primals), *tangents


def _reduced(arrays):
    """Each number is taken twice, as the larger one of the two, which holds in any order."""
    # XLA reduces a single array in other ways, of which some lose NaN.
    if len(arrays) < 2:
        return arrays
    starts = range(0, len(arrays) - 1, _ARRAYS)
    parts = [slice(*ends) for ends in zip(starts, [*starts[1:], len(arrays)], strict=True)]
    twice = [jnp.broadcast_to(x, (2, *x.shape)) for x in arrays]
    least = [jnp.array(-jnp.inf, x.dtype) for x in arrays]
    return [x for part in parts for x in jax.lax.reduce(twice[part], least[part], _larger, (0,))]


def _larger(x, y):
    return list(map(jax.lax.max, x, y))
