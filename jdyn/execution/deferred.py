"""Functions traced only when they are lowered.

This is a JAX primitive of our own, since public JAX traces more than a program needs. Processor seconds to trace and
lower + to compile, and milliseconds of a run with 64 lanes (JAX 0.10.2, medians of two or three interleaved runs):

    forward dynamics                          Panda               quadruped
    this primitive                            0.4 + 1.5, 0.2      0.6 + 2.1, 0.5
    `custom_vmap`                             0.7 + 1.3, 0.2      1.4 + 2.4, 0.5
    `custom_vmap`, transpose stated           0.8 + 1.4, 0.3      1.3 + 2.4, 0.3
    `custom_linear_solve` of the system       0.4 + 1.4, 0.2      0.7 + 2.5, 0.7
    gradient of a rollout of 20 steps
    this primitive                            0.4 + 2.7, 4.7      1.6 + 5.9, 9.3
    `custom_vmap`                             1.1 + 2.6, 4.3      2.7 + 6.5, 11
    `custom_vmap`, transpose stated           1.7 + 2.7, 4.4      3.6 + 6.6, 12
    `custom_linear_solve` of the system       1.0 + 4.9, 11       2.8 + 11.4, 30

`custom_vmap` replaces `batchable`; only the row with the transpose stated is all public: there `LinearMap` is a
`custom_linear_solve` of the identity, whose solution and transposed solution are the two maps, within a `custom_jvp`.
`linear_call`, which states transposes, has no batching rule. The primitive saves a quarter to a third of the wait for a
gradient, so it stays, in this folder alone; tests/execution/test_deferred.py asks for each of its rules.
"""

import abc
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.dtypes import canonicalize_dtype
from jax.extend.core import ClosedJaxpr, JaxprEqn, Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array


class Deferred(abc.ABC):
    """A function of arrays. Subclasses define batching, JVP and transpose.

    Attributes:
        shapes: What has the shapes and types of its results.
    """

    shapes: Sequence[Any]

    @abc.abstractmethod
    def run(self, *operands: Array) -> Sequence[Array]:
        """The results."""

    @abc.abstractmethod
    def batch(self, size: int, varies: Sequence[bool], *operands: Array) -> Sequence[Array]:
        """The results for `size` lanes, which are the first axis of operands that vary and of all results."""

    def jvp(self, operands: Sequence[Array], tangents: Sequence[Any]) -> tuple[Sequence[Array], Sequence[Array]]:
        """The results and their derivatives; tangents may be `ad.Zero`."""
        raise NotImplementedError(f"{self} is not to be differentiated: state a rule around it")

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        """Transpose, as `ad.primitive_transposes` asks for it."""
        raise NotImplementedError(f"{self} is not linear")

    def __call__(self, *operands: Array) -> Sequence[Array]:
        return _deferred.bind(*operands, function=self, x64=canonicalize_dtype(np.float64) == np.float64)


def program_of(equation: JaxprEqn) -> ClosedJaxpr | None:
    """The program of an operation that is a deferred function, else None."""
    if equation.primitive is not _deferred:
        return None
    return jax.make_jaxpr(equation.params["function"].run)(*(x.aval for x in equation.invars))


_deferred = Primitive("deferred")
_deferred.multiple_results = True


# Late tracing uses the float width that was set when the function was called.


def _run(*operands, function, x64):
    with jax.enable_x64(x64):
        return _as_stated(function.run(*operands), [x.shape for x in function.shapes], function)


def _batch(operands, axes, *, function, x64):
    size = next(x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None)
    varies = [axis is not None for axis in axes]
    with jax.enable_x64(x64):
        first = (x if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in zip(operands, axes, strict=True))
        y = function.batch(size, varies, *first)
        return _as_stated(y, [(size, *x.shape) for x in function.shapes], function), [0] * len(y)


def _jvp(operands, tangents, *, function, x64):
    with jax.enable_x64(x64):
        return function.jvp(operands, tangents)


def _transpose(cotangents, *operands, function, x64):
    with jax.enable_x64(x64):
        return function.transpose(cotangents, *operands)


def _as_stated(y, shapes, function):
    """Results in the stated types; their shapes must be the stated ones."""
    for x, shape in zip(y, shapes, strict=True):
        if x.shape != shape:
            raise AssertionError(f"{function}: stated the shape {shape} of a result, found {x.shape}")
    return [x.astype(stated.dtype) for x, stated in zip(y, function.shapes, strict=True)]


_deferred.def_impl(_run)
_deferred.def_abstract_eval(lambda *_, function, x64: [ShapedArray(x.shape, x.dtype) for x in function.shapes])
ad.primitive_jvps[_deferred] = _jvp
ad.primitive_transposes[_deferred] = _transpose
batching.primitive_batchers[_deferred] = _batch
mlir.register_lowering(_deferred, mlir.lower_fun(_run, multiple_results=True))
