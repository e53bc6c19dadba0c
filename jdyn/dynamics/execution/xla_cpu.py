"""Many arrays computed by few programs.

On a CPU, XLA compiles one program for each array that elementwise operations end in, and each repeats the work that
they share: the six numbers of a force take six programs, each of which does most of the work. A reduction of several
arrays at a time is a single program, though, and XLA fuses the operations before it into that.
"""

from typing import Any

import jax
import jax.numpy as jnp

# In a reduction of more arrays than this, XLA computes apart what several of them need (forward dynamics has 35).
_ARRAYS = 15


def at_once(x: Any) -> Any:
    """The same arrays, to the last bit, broadcast to one shape; compiled for a CPU, they take a few programs.

    All are computed, even if only some are used. Floating-point arrays must have one type. Python's whole numbers, such
    as known zeros, stay as they are.
    """
    leaves, tree = jax.tree.flatten(x)
    # Compute an array once, however often it occurs.
    arrays = {id(leaf): leaf for leaf in leaves if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)}
    found = dict(zip(arrays, _together(tuple(jnp.broadcast_arrays(*arrays.values()))), strict=True))
    return tree.unflatten([found.get(id(leaf), leaf) for leaf in leaves])


@jax.custom_jvp
def _together(arrays):
    return jax.lax.platform_dependent(arrays, cpu=_reduced, default=lambda arrays: arrays)


@_together.defjvp
def _together_jvp(primals, tangents):
    return _together(*primals), *tangents


def _reduced(arrays):
    """Reduce [x, x] with max: an identity in any order, but XLA fuses it into one program."""
    # XLA reduces a single array in other ways, and some of them lose NaN.
    if len(arrays) < 2:
        return arrays
    starts = range(0, len(arrays) - 1, _ARRAYS)
    parts = [slice(*ends) for ends in zip(starts, [*starts[1:], len(arrays)], strict=True)]
    twice = [jnp.broadcast_to(x, (2, *x.shape)) for x in arrays]
    least = [jnp.array(-jnp.inf, x.dtype) for x in arrays]
    return tuple(x for part in parts for x in jax.lax.reduce(twice[part], least[part], _larger, (0,)))


def _larger(x, y):
    return list(map(jax.lax.max, x, y))
