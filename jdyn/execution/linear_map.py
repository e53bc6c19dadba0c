"""Linear maps whose transposes are stated."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad
from jaxtyping import Array

from jdyn.execution.deferred import Deferred

Map = Callable[[Sequence[Array], Array], Array]


class LinearMap(Deferred):
    """y = A x with an A that depends on arrays, of the arrays and x.

    Attributes:
        apply: `apply(arrays, x)` is A x.
        apply_transposed: `apply_transposed(arrays, y)` is Aᵀ y.
        plain: As `apply`, but differentiable in both modes with respect to arrays that others depend on.
        x: Shape and type of x.
        y: Shape and type of y.
        apply_to_many: As `apply`, for rows of x under the same A. It takes the place of `apply` once A has lanes as
            well: in one lane it saves nothing. None if there is none.
        batched: Which of both have lanes.
    """

    def __init__(
        self, apply: Map, apply_transposed: Map, plain: Map, x: Any, y: Any,
        apply_to_many: Map | None = None, batched: frozenset[str] = frozenset(),
    ):  # fmt: skip
        self.apply, self.apply_transposed, self.plain, self.x, self.y = apply, apply_transposed, plain, x, y
        self.apply_to_many, self.batched = apply_to_many, batched
        self.shapes = [y]

    def run(self, *operands):
        *arrays, x = operands
        return [self.apply(arrays, x)]

    def batch(self, size, varies, *operands):
        axes, (*arrays, x) = [0 if each else None for each in varies[:-1]], operands
        maps = self.apply, self.apply_transposed, self.plain
        apply, transposed, plain = (jax.vmap(map, (axes, 0), axis_size=size) for map in maps)
        x_like, y_like = (jax.ShapeDtypeStruct((size, *end.shape), end.dtype) for end in (self.x, self.y))
        many, batched = self.apply_to_many, self.batched | {"A" if any(varies[:-1]) else "x"}
        if many is not None and any(varies[:-1]):
            rows = 1 - len(self.batched & {"x"})
            many = jax.vmap(many, (axes, rows), rows, axis_size=size)
        elif "x" in self.batched:
            many = None
        if many is not None and len(batched) == 2:
            apply, many = many, None
        # x gets lanes too: the transpose of a map from one x to a batch would have to sum over the batch.
        x = x if varies[-1] else jnp.broadcast_to(x, (size, *x.shape))
        return LinearMap(apply, transposed, plain, x_like, y_like, many, batched)(*arrays, x)

    def jvp(self, operands, tangents):
        (*arrays, x), (*d_arrays, dx) = operands, tangents
        dx, varied = ad.instantiate_zeros(dx), [i for i, d in enumerate(d_arrays) if not isinstance(d, ad.Zero)]
        if not varied:
            return self(*arrays, x), self(*arrays, dx)

        def plain(some, x):
            given = dict(zip(varied, some, strict=True))
            return self.plain([given.get(i, array) for i, array in enumerate(arrays)], x)

        y, dy = jax.jvp(plain, ([arrays[i] for i in varied], x), ([d_arrays[i] for i in varied], dx))
        return [y], [dy]

    def transpose(self, cotangents, *operands):
        *arrays, _ = operands
        (dy,) = cotangents
        return [None] * len(arrays) + [*self.transposed(*arrays, ad.instantiate_zeros(dy))]

    @property
    def transposed(self) -> "LinearMap":
        def plain(arrays, y):
            return jax.linear_transpose(lambda x: self.plain(arrays, x), self.x)(y)[0]

        return LinearMap(self.apply_transposed, self.apply, plain, self.y, self.x)
