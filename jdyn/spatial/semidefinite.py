"""Square roots of positive semidefinite matrices."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def semidefinite_cholesky(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """L, lower triangular, with L Lᵀ = A: pivots that are zero, or negative by rounding, are skipped."""
    n, columns = len(A), []
    for k in range(n):
        positive = A[k, k] > 0
        column = A[:, k] / jnp.sqrt(jnp.where(positive, A[k, k], 1))
        column = jnp.where(positive & (jnp.arange(n) >= k), column, 0)
        A = A - jnp.outer(column, column)
        columns.append(column)
    return jnp.stack(columns, axis=1)
