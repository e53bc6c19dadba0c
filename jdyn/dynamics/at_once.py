"""Many arrays computed by one program.

On a CPU, XLA compiles a program of its own for each array that elementwise operations end in, and repeats in every one
what they share: the six numbers of a force take six programs, each of which does most of the work. A reduction of
several arrays at a time is a single program, though, and what such arrays are made of is fused into it.
"""

from typing import Any

import jax
import jax.numpy as jnp

# XLA does not fuse into a reduction what more than so many of its arrays are made of, each through a broadcast.
_ARRAYS = 15


def at_once(x: Any) -> Any:
    """A PyTree of arrays that broadcast against each other, bit by bit as they are, but all of one shape; where XLA
    compiles for a CPU, in a few programs. Whole numbers, such as known zeros, stay. Not differentiable."""
    leaves, tree = jax.tree.flatten(x)
    # An array that is there several times is computed once.
    arrays = {id(leaf): leaf for leaf in leaves if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)}
    together = jnp.broadcast_arrays(*arrays.values())
    computed = jax.lax.platform_dependent(together, cpu=_reduced, default=lambda together: together)
    found = dict(zip(arrays, computed, strict=True))
    return tree.unflatten([found.get(id(leaf), leaf) for leaf in leaves])


def _reduced(leaves):
    """Each number is taken twice, and is what the bits of the two make together, which holds in any order. (The larger
    one of two would not do: XLA may lose what is not a number.)"""
    twice = [jnp.broadcast_to(x, (2, *x.shape)) for x in leaves]
    nothing = [jnp.zeros((), x.dtype) for x in leaves]
    parts = [slice(first, first + _ARRAYS) for first in range(0, len(leaves), _ARRAYS)]
    return [x for part in parts for x in jax.lax.reduce(twice[part], nothing[part], _together, (0,))]


def _together(x, y):
    return [_bits_of_both(*pair) for pair in zip(x, y, strict=True)]


def _bits_of_both(x, y):
    bits = jnp.dtype(f"uint{8 * x.dtype.itemsize}")
    either = jax.lax.bitcast_convert_type(x, bits) | jax.lax.bitcast_convert_type(y, bits)
    return jax.lax.bitcast_convert_type(either, x.dtype)
