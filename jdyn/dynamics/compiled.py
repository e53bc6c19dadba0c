"""How the functions of this floor become programs."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, compiled as a whole, with matrix products in full precision.

    Called from Python it is compiled once a structure of its arguments, instead of running operation by operation,
    a thousand times slower. Within another program nothing is left of the wrapping.

    Accelerators otherwise multiply float32 matrices with ten-bit mantissas (TF32) or less, which costs forward
    dynamics four digits.
    """

    @functools.wraps(function)
    def precise(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    program = eqx.filter_jit(precise, inline=True)  # type: ignore[call-overload]

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        args, kwargs = jax.tree.map(_traceable, (args, kwargs))  # type: ignore[assignment]
        return program(*args, **kwargs)

    return called


def _traceable(leaf):
    """Python's floats as arrays: equinox would compile anew for each value."""
    return jnp.asarray(leaf) if isinstance(leaf, float) else leaf
