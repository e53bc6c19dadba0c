"""Linear systems of linearly implicit methods."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import GAUSS_JORDAN

Vector = Float[Array, " n"]


class Slopes(NamedTuple):
    """Derivatives of a rate f(t, x) at one point, in closed form.

    Attributes:
        product: ∂f/∂x times a vector.
        by_time: ∂f/∂t.
        by_state: ∂f/∂x, which is not differentiated.
    """

    product: Callable[[Vector], Vector]
    by_time: Vector
    by_state: Float[Array, "n n"]

    @classmethod
    def of(cls, rate: Callable[[Scalar, Vector], Vector], t: Scalar, x: Vector) -> "Slopes":
        """All three from one linearization."""
        _, linear = jax.linearize(rate, t, x)

        def product(dx: Vector) -> Vector:
            return linear(jnp.zeros_like(t), dx)

        by_state = jax.vmap(product, out_axes=1)(jnp.eye(len(x), dtype=x.dtype))
        return cls(product, linear(jnp.ones_like(t), jnp.zeros_like(x)), jax.lax.stop_gradient(by_state))

    def inverse(self, diagonal: Scalar | float, share: Scalar | float = 1.0) -> Float[Array, "n n"]:
        """(diagonal − share ∂f/∂x)⁻¹, for `solve`."""
        unit = jnp.eye(len(self.by_time), dtype=self.by_time.dtype)
        return GAUSS_JORDAN.factor(diagonal * unit - share * self.by_state)

    def solve(self, inverse, b: Vector, diagonal: Scalar | float, share: Scalar | float = 1.0) -> Vector:
        """x with (diagonal − share ∂f/∂x) x = b. No derivative is taken of the Jacobian as a whole."""

        def product(x: Vector) -> Vector:
            return diagonal * x - share * self.product(x)

        inverse = jax.lax.stop_gradient(inverse)
        return jax.lax.custom_linear_solve(product, b, lambda _, b: inverse @ b, lambda _, b: inverse.T @ b)
