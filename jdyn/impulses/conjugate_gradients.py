"""Multipliers by conjugate gradients that start from what is known of a state nearby."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Scalar

from jdyn.array import LeastNorm

# Number of iterations that rounding may add.
EXTRA_ITERATIONS = 20


class WarmStart(eqx.Module):
    """Factors and multipliers of constraints at a state nearby, such as that at the start of a step.

    Attributes:
        inverse: Inverse of the Delassus matrix J M⁻¹ Jᵀ there, positive definite whether or not rows depend on each
            other.
        smallest: Smallest pivot of that matrix, see `LeastNorm`.
        multipliers: λ there, the first guess; zero if left out.
    """

    inverse: Float[Array, "rows rows"]
    smallest: Scalar
    multipliers: Float[Array, " rows"] | None = None

    @classmethod
    def of(cls, delassus: LeastNorm, multipliers: Float[Array, " rows"] | None = None) -> "WarmStart":
        """From the factors of the matrix."""
        L = delassus.L
        one = jnp.eye(len(L), dtype=L.dtype)
        inverse = jax.vmap(delassus.solve)(one)
        # In the null space of the matrix, the mean size of rows keeps iterations from leaving directions out.
        null_space = one - (L @ delassus.gram) @ L.T
        return cls(inverse + null_space * len(L) / jnp.sum(L**2), delassus.smallest, multipliers)


def conjugate_gradients(
    response: Callable[[Array], Array],
    J: Float[Array, "rows nv"],
    inverse: Float[Array, "rows rows"],
    x: Float[Array, " nv"],
    g: Float[Array, " rows"],
    size: Float[Array, " nv"],
) -> tuple[Float[Array, " nv"], Float[Array, " rows"], Int[Array, ""]]:
    """x + M⁻¹ Jᵀ λ with J (x + M⁻¹ Jᵀ λ) = g up to rounding, λ, and the number of iterations.

    Everything is NaN if that takes more than `EXTRA_ITERATIONS` iterations beyond twice the number of rows; in exact
    arithmetic that number suffices.

    Args:
        response: M⁻¹ Jᵀ times λ.
        J: The rows.
        inverse: Nearly the inverse of J M⁻¹ Jᵀ, as preconditioner.
        x: The solution without multipliers.
        g: Values of the rows J x.
        size: Size of the numbers that the result is added to, by whose rounding rows may be missed.

    Source: Golub and Van Loan 2013, section 11.5; with the quotient of Polak and Ribière, which forgives rounding.
    """
    rounding = 8 * jnp.finfo(g.dtype).eps

    def unmet(x, r):
        # By the largest of all rows: some rows may be nothing but rounding.
        return jnp.max(jnp.abs(r)) > rounding * jnp.max(jnp.abs(g) + jnp.abs(J) @ (jnp.abs(x) + size))

    def unfinished(state):
        k, x, _, r, *_ = state
        return unmet(x, r) & (k < 2 * len(g) + EXTRA_ITERATIONS)

    def advance(state):
        k, x, force, r, p, r_z = state
        moved = response(p)
        step = r_z / _nonzero(p @ (J @ moved))
        x, force, before = x + step * moved, force + step * p, r
        r = r - step * (J @ moved)
        z = inverse @ r
        p = z + (z @ (r - before)) / _nonzero(r_z) * p
        return k + 1, x, force, r, p, z @ r

    r = g - J @ x
    p = inverse @ r
    k, x, force, r, *_ = jax.lax.while_loop(
        unfinished, advance, (jnp.zeros((), jnp.int32), x, jnp.zeros_like(g), r, p, p @ r)
    )
    x, force = (jnp.where(unmet(x, r), jnp.nan, found) for found in (x, force))
    return x, force, k


def _nonzero(x: Scalar) -> Scalar:
    return jnp.where(x == 0, 1, x)
