"""Many arrays computed by few programs.

On a CPU, XLA compiles one program for each array that elementwise operations end in, and each repeats the work that
they share: the six numbers of a force take six programs, each of which does most of the work. A reduction of several
arrays at a time is a single program, though, and XLA fuses the operations before it into that.
"""

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

# In a reduction of more arrays than this, XLA computes apart what several of them need (forward dynamics has 35).
_ARRAYS = 15


def at_once(x: Any) -> Any:
    """The same arrays, to the last bit, broadcast to one shape; compiled for a CPU, they take a few programs, and so do
    their derivatives.

    All are computed, even if only some are used. Floating-point arrays must have one type. Python's whole numbers, such
    as known zeros, stay as they are.
    """
    leaves, tree = jax.tree.flatten(x)
    # Compute an array once, however often it occurs.
    arrays = {id(leaf): leaf for leaf in leaves if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)}
    found = dict(zip(arrays, _together.bind(*jnp.broadcast_arrays(*arrays.values())), strict=True))
    return tree.unflatten([found.get(id(leaf), leaf) for leaf in leaves])


def _reduced(*arrays):
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


# The identity, on any number of arrays of one shape and type.
_together = Primitive("at_once")
_together.multiple_results = True
_together.def_impl(lambda *arrays: arrays)
_together.def_abstract_eval(lambda *arrays: list(arrays))


def _of_some(arrays):
    """The identity on those that are not known to be zero."""
    some = [i for i, x in enumerate(arrays) if not isinstance(x, ad.Zero)]
    found = dict(zip(some, _together.bind(*(arrays[i] for i in some)) if some else (), strict=True))
    return [found.get(i, x) for i, x in enumerate(arrays)]


def _batched(arrays, axes):
    size = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
    front = [
        jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(arrays, axes, strict=True)
    ]
    return _together.bind(*front), [0] * len(front)


def _lowered(context, *arrays):
    # A program may be lowered where JAX no longer has the types that it was traced with.
    double = any(x.dtype == np.float64 for x in context.avals_in)
    with jax.enable_x64(True) if double else contextlib.nullcontext():
        return mlir.lower_fun(_reduced, multiple_results=True)(context, *arrays)


ad.primitive_jvps[_together] = lambda arrays, tangents: (_together.bind(*arrays), _of_some(tangents))
ad.primitive_transposes[_together] = lambda cotangents, *_: _of_some(cotangents)
batching.primitive_batchers[_together] = _batched
mlir.register_lowering(_together, lambda _, *arrays: arrays)
mlir.register_lowering(_together, _lowered, platform="cpu")
