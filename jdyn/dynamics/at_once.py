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
    """A PyTree of arrays of floating-point numbers that broadcast against each other, bit by bit as they are, but all
    of one shape; where XLA compiles for a CPU, in a few programs. Not differentiable."""
    leaves, tree = jax.tree.flatten(x)
    # An array that is there several times is computed once.
    places = {id(leaf): place for place, leaf in enumerate(leaves)}
    different = jnp.broadcast_arrays(*(leaves[place] for place in places.values()))
    computed = jax.lax.platform_dependent(different, cpu=_reduced, default=lambda leaves: leaves)
    found = dict(zip(places, computed, strict=True))
    return tree.unflatten([found[id(leaf)] for leaf in leaves])


def _reduced(leaves):
    """Each number is taken twice, as the larger one of the two, which holds in any order."""
    twice = [jnp.broadcast_to(x, (2, *x.shape)) for x in leaves]
    least = [jnp.array(-jnp.inf, x.dtype) for x in leaves]
    parts = [slice(first, first + _ARRAYS) for first in range(0, len(leaves), _ARRAYS)]
    return [x for part in parts for x in jax.lax.reduce(twice[part], least[part], _larger, (0,))]


def _larger(x, y):
    return list(map(jax.lax.max, x, y))
