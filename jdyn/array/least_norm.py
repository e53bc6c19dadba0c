"""Least-norm solutions of consistent systems whose rows may depend on each other."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Scalar

from jdyn.array.small_matrices import column_left, next_column, swept_inverse

# A row of which elimination leaves less than this power of rounding depends on the others: solutions with such a row
# would have no digit left.
DEPENDENT = 2 / 3


class LeastNorm(NamedTuple):
    """A positive semidefinite matrix A = L Lᵀ of rank r, ready to solve with; without LAPACK.

    Attributes:
        L: Its first r columns; the rest are zero. As many as the rank can be.
        pivots: The row that each column was eliminated with, from which on up L is lower triangular.
        gram: (LᵀL)⁻¹.
        rank: r.
        smallest: Smallest pivot among these r, as a share of the largest entry of the diagonal; 1 where there are none.
    """

    L: Float[Array, "n m"]
    pivots: Int[Array, " m"]
    gram: Float[Array, "m m"]
    rank: Int[Array, ""]
    smallest: Scalar

    @classmethod
    def of(cls, A: Float[Array, "n n"], m: int | None = None) -> "LeastNorm":
        """Eliminate with the pivot of which most is left, as long as that is more than rounding of its row; with `m` at
        most, where the rank is known not to be more."""
        n, smallest, diagonal = len(A), jnp.finfo(A.dtype).eps ** DEPENDENT, jnp.diagonal(A)
        m = n if m is None else min(m, n)
        # A row that is nothing beside the largest may be all rounding, and be called large beside itself.
        own = jnp.maximum(diagonal, smallest * jnp.max(diagonal))
        own = jnp.where(own > 0, own, 1)

        def add_column(k, state):
            L, left, pivots, rank, least = state
            shares = left / own
            pivot, large = jnp.argmax(shares), jnp.max(shares) > smallest
            rest = column_left(A, L, pivot)
            column = next_column(rest, pivot, left != 0, large)
            # What is left of the pivot's own row is rounding.
            left = jnp.where(jnp.arange(n) == pivot, 0, left - column**2)
            least = jnp.where(large, jnp.minimum(least, rest[pivot]), least)
            return L.at[:, k].set(column), left, pivots.at[k].set(pivot), rank + large.astype(rank.dtype), least

        most = jnp.max(diagonal, initial=0)
        state = jnp.zeros_like(A, shape=(n, m)), diagonal, jnp.zeros(m, int), jnp.zeros((), int), most
        L, _, pivots, rank, least = jax.lax.fori_loop(0, m, add_column, state)
        # Nothing is left of earlier rows in later columns.
        gram = L.T @ L + jnp.diag(jnp.where(jnp.arange(m) < rank, 0, 1).astype(A.dtype))
        smallest = jnp.where(most > 0, least / jnp.where(most > 0, most, 1), 1)
        return cls(L, pivots, swept_inverse(gram), rank, smallest)

    def solve(self, b: Float[Array, " n"]) -> Float[Array, " n"]:
        """The smallest x with A x = b, or that is nearest to it where there is none: the pseudoinverse, which is
        symmetric."""
        L, pivots, gram, rank, _ = self
        b = jnp.where(rank == len(b), b, L @ (gram @ (L.T @ b)))

        def forwards(k, state):
            b, z = state
            size = L[pivots[k], k]
            entry = jnp.where(size > 0, b[pivots[k]] / jnp.where(size > 0, size, 1), 0)
            return b - L[:, k] * entry, z.at[k].set(entry)

        _, z = jax.lax.fori_loop(0, len(pivots), forwards, (b, jnp.zeros_like(b, shape=len(pivots))))
        return L @ (gram @ z)
