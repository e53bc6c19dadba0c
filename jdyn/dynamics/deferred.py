"""Functions of which nothing is traced but what runs.

`jax.custom_batching.custom_vmap` traces what a single configuration takes in batches, too, to learn the shapes of its
results; `jax.lax.custom_linear_solve` traces a system, its transpose and the solutions of both, and all of them again
for every batch around them, before it is known which one is asked for. Together they would more than double the time
that it takes to trace forward dynamics, and take that of its gradient to the fourfold.
"""

import abc
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jaxtyping import Array

Axes = Sequence[int | None]


class Deferred(abc.ABC):
    """A function of arrays. What a transformation makes of it, it says itself.

    Attributes:
        shapes: What has the shapes and types of its results.
    """

    shapes: Sequence[Any]

    @abc.abstractmethod
    def run(self, *operands: Array) -> Sequence[Array]:
        """The results."""

    @abc.abstractmethod
    def batch(self, size: int, varies: Sequence[bool], *operands: Array) -> Sequence[Array]:
        """The results of a batch of so many, which what varies has along its first axis, as all results must."""

    def jvp(self, operands: Sequence[Array], tangents: Sequence[Any]) -> tuple[Sequence[Array], Sequence[Array]]:
        """The results and their derivatives, by tangents that may be `ad.Zero`."""
        raise NotImplementedError(f"{type(self).__name__} is not to be differentiated: state a rule around it")

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        """What `ad.primitive_transposes` asks for."""
        raise NotImplementedError(f"{type(self).__name__} is not linear")

    def __call__(self, *operands: Array) -> Sequence[Array]:
        return _deferred.bind(*operands, function=self)


_deferred = Primitive("deferred")
_deferred.multiple_results = True


def _run(*operands, function):
    return _as_stated(function.run(*operands), [x.shape for x in function.shapes], function)


def _batch(operands, axes, *, function):
    size = next(x.shape[axis] for x, axis in zip(operands, axes, strict=True) if axis is not None)
    varies = [axis is not None for axis in axes]
    first = (x if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in zip(operands, axes, strict=True))
    y = function.batch(size, varies, *first)
    return _as_stated(y, [(size, *x.shape) for x in function.shapes], function), [0] * len(y)


def _as_stated(y, shapes, function):
    """Results, of the shapes and types that others have been told before there were any."""
    for x, shape, stated in zip(y, shapes, function.shapes, strict=True):
        if (x.shape, x.dtype) != (shape, stated.dtype):
            raise AssertionError(f"{function} states {stated.dtype}{list(shape)}, and gives {x.dtype}{list(x.shape)}")
    return y


_deferred.def_impl(_run)
_deferred.def_abstract_eval(lambda *_, function: [ShapedArray(x.shape, x.dtype) for x in function.shapes])
ad.primitive_jvps[_deferred] = lambda operands, tangents, *, function: function.jvp(operands, tangents)
ad.primitive_transposes[_deferred] = lambda ct, *operands, function: function.transpose(ct, *operands)
batching.primitive_batchers[_deferred] = _batch
mlir.register_lowering(_deferred, mlir.lower_fun(_run, multiple_results=True))
