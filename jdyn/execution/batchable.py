"""Functions that define their own batching under `jax.vmap`."""

from collections.abc import Callable
from typing import Any

import jax

from jdyn.execution.deferred import Deferred
from jdyn.execution.threads.lane import is_one_of_many


def batchable(single: Callable, batch: Callable, like: Any, lane: Callable | None = None) -> Callable:
    """A function that runs `single`, and `batch` under `jax.vmap`. Not differentiable.

    Args:
        single: Of arguments that are PyTrees of arrays.
        batch: `batch(size, varies, *arguments)`, with the number of lanes, and for each array of the arguments whether
            its first axis is that of lanes. All arrays of the result must have it.
        like: What has the structure, shapes and types of the result of `single`.
        lane: What runs in place of `single` for `one_of_many`; `single` if left out.
    """
    # Keep only shapes and dtypes, so that no tracer stays alive.
    shapes, result = jax.tree.flatten(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), like))

    def function(*arguments):
        operands, tree = jax.tree.flatten(arguments)
        return result.unflatten(_Batchable(single, batch, lane or single, tree, result, shapes)(*operands))

    return function


class _Batchable(Deferred):
    """`Deferred` on the leaves of PyTrees."""

    def __init__(self, single, batched, lane, arguments, result, shapes):
        self.single, self.batched, self.lane = single, batched, lane
        self.arguments, self.result, self.shapes = arguments, result, shapes

    def __repr__(self):
        return getattr(self.single, "__qualname__", repr(self.single))

    def run(self, *operands):
        function = self.lane if is_one_of_many() else self.single
        return self.result.flatten_up_to(function(*self.arguments.unflatten(operands)))

    def batch(self, size, varies, *operands):
        varies, arguments = self.arguments.unflatten(varies), self.arguments.unflatten(operands)
        return self.result.flatten_up_to(self.batched(size, varies, *arguments))
