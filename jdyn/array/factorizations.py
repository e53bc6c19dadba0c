"""Ways to solve with a dense matrix, each a pair `factor(M)` and `solve(factors, b)`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve
from jaxtyping import Array, Float

from jdyn.array.small_matrices import solution

# Up to so many rows, loops of our own do instead of LAPACK, which is called for each matrix of a batch: with 240 rows
# it takes a fifth of their time. Its calls for batches must depend on each other (see `small_matrices`).
SMALL = 64

Matrix = Float[Array, "nv nv"]
Vector = Float[Array, " nv"]


class Factorization(NamedTuple):
    factor: Callable[[Matrix], Any]
    solve: Callable[[Any, Vector], Vector]


def _cholesky(M: Matrix) -> Matrix:
    # It reads one triangle. Averaging both, as `jnp.linalg.cholesky` does, only removes rounding and took a tenth of
    # the time of one call with 128 degrees of freedom.
    return cho_factor(M, lower=True)[0]


def _cholesky_solve(L: Matrix, b: Vector) -> Vector:
    return cho_solve((L, True), b)


def _inverse(A: Matrix) -> Matrix:
    return solution(A, jnp.eye(len(A), dtype=A.dtype), full_pivoting=True)


def _singular_values(A: Matrix) -> tuple[Matrix, Vector, Matrix]:
    """U, 1/σ and Vᵀ; as Press et al. advise, singular values that are rounding alone count as infinite."""
    U, values, Vt = jnp.linalg.svd(A)
    kept = values > len(A) * jnp.finfo(A.dtype).eps * values[0]
    return U, jnp.where(kept, 1 / jnp.where(kept, values, 1), 0), Vt


def _singular_value_solve(factors, b: Vector) -> Vector:
    U, inverse_values, Vt = factors
    return Vt.T @ (inverse_values * (U.T @ b))


CHOLESKY = Factorization(_cholesky, _cholesky_solve)
LU = Factorization(lu_factor, lu_solve)
GAUSS_JORDAN = Factorization(_inverse, jnp.matmul)
SVD = Factorization(_singular_values, _singular_value_solve)
