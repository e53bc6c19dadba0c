"""Compilation of whole functions."""

import functools
import gc
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.dtypes import canonicalize_dtype

from jdyn.execution.memory_maps import memory_maps

P = ParamSpec("P")
R = TypeVar("R")

# For programs that run once: XLA's optimiser would take longer than it saves.
_ONCE = {"xla_backend_optimization_level": 0}
compiled_once = functools.partial(jax.jit, compiler_options=_ONCE)
# Rows of a motion up to which that is so.
FEW_ROWS = 20_000


def precise(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, with matrix products in full precision.

    Accelerators otherwise multiply float32 matrices with ten-bit mantissas (TF32) or less, which costs forward
    dynamics four digits. JAX traces rules of batching, of differentiation and of lowering later than the function
    around them: they must be made `precise` by themselves.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return called


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, while Python collects no garbage.

    Tracing makes many objects that stay. To look for cycles among them again and again takes a fifth of the time of
    large programs.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return called


def compiled(
    function: Callable[P, R], prepared: Mapping[str, Callable[[Any], Any]] = MappingProxyType({})
) -> Callable[P, R]:
    """`function`, compiled as a whole, and `precise`.

    Called from Python it is compiled once for each structure of its arguments; operation by operation it would be a
    thousand times slower. Arrays, and numbers and lists given as arguments, are traced, all in their widest floating
    type; what else the arguments hold is part of the program, and must be hashable. Within another program it is a call
    that XLA merges with its surroundings.

    Args:
        function: The function.
        prepared: Functions of arguments, by name, whose results are given in their place.
    """
    program = _program(precise(function))
    places = {name: place for place, name in enumerate(inspect.signature(function).parameters) if name in prepared}

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        positional, named = list(args), dict(kwargs)
        for name, place in places.items():
            if len(positional) > place:
                positional[place] = prepared[name](positional[place])
            elif name in named:
                named[name] = prepared[name](named[name])
        dtype = widest((positional, named))
        positional = [_argument(x, dtype) for x in positional]
        named = {name: _argument(x, dtype) for name, x in named.items()}
        leaves, structure = jax.tree.flatten((positional, named))
        traced = [isinstance(leaf, _ARRAYS) for leaf in leaves]
        arrays = [_in_type(leaf, dtype) if is_array else None for leaf, is_array in zip(leaves, traced, strict=True)]
        constants = [None if is_array else leaf for leaf, is_array in zip(leaves, traced, strict=True)]
        return program(structure, tuple(constants), arrays)

    return called


def compiled_alone(function: Callable[P, R], prepared: Mapping[str, Callable[[Any], Any]]) -> Callable[P, R]:
    """`function`, `compiled` where it is called alone: operation by operation, each would be a program. Within another
    program it is traced as it stands, and is no call of its own."""
    program = compiled(function, prepared)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        within = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((args, kwargs)))
        return (function if within else program)(*args, **kwargs)

    return called


_ARRAYS = (jax.Array, np.ndarray, np.inexact)


def _program(function):
    """`function`, compiled for each structure of its arguments and for what they hold beside arrays.

    As `equinox.filter_jit`, in a fifth of the time a call.
    """

    def program(structure, constants, arrays):
        # While it is traced, which is when another program is about to be compiled.
        memory_maps.look()
        leaves = [constant if array is None else array for constant, array in zip(constants, arrays, strict=True)]
        args, kwargs = jax.tree.unflatten(structure, leaves)
        return function(*args, **kwargs)

    # The name by which profiles and jaxprs call it.
    program.__name__ = program.__qualname__ = function.__name__
    return jax.jit(program, static_argnums=(0, 1))


def compiled_for_rows(function: Callable[P, R], rows: Callable[..., int]) -> Callable[P, R]:
    """`function`, compiled by `equinox.filter_jit`: as a program that runs once where it is called alone for few rows,
    else as any other. Within another program XLA takes no options of its own.

    Args:
        function: The function.
        rows: Number of rows, by the same arguments.
    """
    # Types of its options are unknown.
    program: Any = eqx.filter_jit
    often, once = program(function), program(function, compiler_options=_ONCE)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        # While a program is traced, constants are traced as well.
        leaves = jax.tree.leaves((args, kwargs, jnp.zeros(())))
        alone = not any(isinstance(leaf, Tracer) for leaf in leaves)
        return (once if alone and rows(*args, **kwargs) <= FEW_ROWS else often)(*args, **kwargs)

    return called


def widest(tree):
    """The floating type that holds every array of the arguments, by NumPy's promotion."""
    types = frozenset(leaf.dtype for leaf in jax.tree.leaves(tree) if isinstance(leaf, _ARRAYS))
    return _promoted(types, canonicalize_dtype(np.float64))


@functools.cache
def _promoted(types, _largest):
    floating = {canonicalize_dtype(dtype) for dtype in types if _is_floating(dtype)}
    return functools.reduce(jnp.promote_types, floating)


@functools.cache
def _is_floating(dtype):
    return jnp.issubdtype(dtype, jnp.inexact)


def _argument(x, dtype):
    """`x`, where it is a number or a list of numbers as an array: a program serves every value."""
    return jnp.asarray(x, dtype) if isinstance(x, float | list | tuple) else x


def _in_type(array, dtype):
    """The array in the floating type `dtype`, if it is floating."""
    if not _is_floating(array.dtype) or (array.dtype == dtype and isinstance(array, jax.Array) and not array.weak_type):
        return array
    return jnp.asarray(array, dtype)
