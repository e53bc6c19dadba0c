"""How functions of a model become compiled programs."""

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype

from jdyn.model import checked

P = ParamSpec("P")
R = TypeVar("R")

# For programs that run once: XLA's optimiser would take longer than it saves.
compiled_once = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def precise(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, with matrix products in full precision.

    Accelerators otherwise multiply float32 matrices with ten-bit mantissas (TF32) or less, which costs forward
    dynamics four digits. JAX traces rules of batching and differentiation later than the function around them: they
    must be made `precise` by themselves.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return called


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, compiled as a whole, and `precise`.

    Called from Python it is compiled once for each structure of its arguments; operation by operation it would be a
    thousand times slower. Within another program it is a call that XLA merges with its surroundings.
    """
    program = eqx.filter_jit(precise(function))
    parameters = list(inspect.signature(function).parameters)
    place = parameters.index("model") if "model" in parameters else None

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if place is not None and (len(args) > place or "model" in kwargs):
            # Check now: tracing hides the type.
            checked(args[place] if len(args) > place else kwargs["model"])  # type: ignore[arg-type]
        dtype = widest((args, kwargs))
        positional = [_argument(x, dtype) for x in args]
        named = {name: _argument(x, dtype) for name, x in kwargs.items()}
        # The arguments have become arrays, which their annotations do not say.
        return program(*positional, **named)  # type: ignore[call-arg]

    return called


def widest(tree):
    """The floating type that holds every array of the arguments, by NumPy's promotion."""
    floating = {canonicalize_dtype(leaf.dtype) for leaf in jax.tree.leaves(tree) if eqx.is_inexact_array(leaf)}
    return functools.reduce(jnp.promote_types, floating)


def _argument(x, dtype):
    """`x` with its floating-point arrays in one type, and Python's numbers as arrays of that type.

    Equinox would compile again for each value of a Python number. An index stays an integer.
    """
    if isinstance(x, np.integer):
        return int(x)
    if isinstance(x, float | list | tuple):
        return jnp.asarray(x, dtype)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype) if eqx.is_inexact_array(leaf) else leaf, x)
