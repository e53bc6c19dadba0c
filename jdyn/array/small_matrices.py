"""Factorisations of small matrices without LAPACK.

LAPACK needs one call for each matrix of a batch. If a program has several such calls that do not depend on each other,
jaxlib's CPU executor can deadlock on a machine with few processors.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def semidefinite_cholesky(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Lower triangular L with L Lᵀ = A; pivots that are zero, or negative due to rounding, are skipped."""
    n, columns = len(A), []
    for k in range(n):
        positive = A[k, k] > 0
        column = A[:, k] / jnp.sqrt(jnp.where(positive, A[k, k], 1))
        column = jnp.where(positive & (jnp.arange(n) >= k), column, 0)
        A = A - jnp.outer(column, column)
        columns.append(column)
    return jnp.stack(columns, axis=1)


def cholesky(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Lower triangular L with L Lᵀ = A, positive definite; NaN if it is not. A column after another."""
    places = jnp.arange(len(A))

    def add_column(k, L):
        # What is not known yet is zero.
        rest = A[:, k] - L @ L[k]
        column = jnp.where(places >= k, rest, 0) / jnp.sqrt(rest[k])
        return jax.lax.dynamic_update_index_in_dim(L, column, k, 1)

    return jax.lax.fori_loop(0, len(A), add_column, jnp.zeros_like(A))


def cholesky_solution(L: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """(L Lᵀ)⁻¹ b."""
    n = len(L)

    def forwards(k, y):
        return jax.lax.dynamic_update_index_in_dim(y, (b[k] - L[k] @ y) / L[k, k], k, 0)

    y = jax.lax.fori_loop(0, n, forwards, jnp.zeros_like(b))

    def backwards(i, x):
        k = n - 1 - i
        return jax.lax.dynamic_update_index_in_dim(x, (y[k] - L[:, k] @ x) / L[k, k], k, 0)

    return jax.lax.fori_loop(0, n, backwards, jnp.zeros_like(b))


def definite_inverse(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A⁻¹ of a positive definite matrix, by Gauss-Jordan elimination without pivoting."""
    n = len(A)
    rows = jnp.concatenate([A, jnp.eye(n, dtype=A.dtype)], axis=1)
    for k in range(n):
        pivot_row = rows[k] / rows[k, k]
        rows = (rows - rows[:, k, None] * pivot_row[None]).at[k].set(pivot_row)
    return rows[:, n:]


def solution(A: Float[Array, "n n"], B: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """A⁻¹ B, by Gauss-Jordan elimination with row pivoting."""
    n = len(A)
    places = jnp.arange(n)

    def eliminate(k, state):
        rows, pivots, done = state
        column = rows[:, k]
        # Rows are not swapped: each is marked as done, and knows its place in the end.
        pivot = jnp.argmax(jnp.where(done, -1, jnp.abs(column)))
        here = places == pivot
        pivot_row = jnp.sum(jnp.where(here[:, None], rows, 0), axis=0)
        pivot_row = pivot_row / pivot_row[k]
        rows = jnp.where(here[:, None], pivot_row[None], rows - column[:, None] * pivot_row[None])
        return rows, pivots.at[k].set(pivot), done | here

    # A loop, since unrolled columns would take long to compile.
    state = jnp.concatenate([A, B], axis=1), jnp.zeros(n, places.dtype), jnp.zeros(n, bool)
    rows, pivots, _ = jax.lax.fori_loop(0, n, eliminate, state)
    return rows[pivots, n:]


def swept_inverse(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A⁻¹ of a symmetric positive definite matrix, in its own place, with the largest pivot first: half the operations
    of `solution`. NaN if the matrix is not positive definite.

    Source: Goodnight 1979, A Tutorial on the SWEEP Operator.
    """
    n = len(A)

    def sweep(_, state):
        A, left = state
        pivot = jnp.argmax(jnp.where(left, jnp.diagonal(A), -jnp.inf))
        here = jnp.arange(n) == pivot
        column, size = A[:, pivot], A[pivot, pivot]
        size = jnp.where(size > 0, size, jnp.nan)
        scaled = jnp.where(here, -1, column) / size
        rest = A - column[:, None] * scaled[None]
        return jnp.where(here[:, None], scaled[None], jnp.where(here[None], scaled[:, None], rest)), left & ~here

    # A loop, since unrolled columns would take long to compile.
    return -jax.lax.fori_loop(0, n, sweep, (A, jnp.ones(n, bool)))[0]


def triangular_inverse(L: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """L⁻¹ of a lower triangular matrix."""
    rows: list[Array] = []
    for k, unit in enumerate(jnp.eye(len(L), dtype=L.dtype)):
        known = sum((L[k, j] * row for j, row in enumerate(rows)), jnp.zeros_like(unit))
        rows.append((unit - known) / L[k, k])
    return jnp.stack(rows)


def triangle(A: Float[Array, "m n"], columns: int) -> Float[Array, "m n"]:
    """A after Householder reflections that make its first `columns` columns upper triangular."""
    places = jnp.arange(len(A))

    def reflect(k, A):
        x = jnp.where(places >= k, A[:, k], 0)
        length = jnp.sqrt(jnp.sum(x**2))
        mirrored = jnp.where(places == k, jnp.where(x[k] > 0, -length, length), 0)
        # Reflect along the difference of x and its mirror image; do nothing if x is zero.
        normal = x - mirrored
        squared = jnp.sum(normal**2)
        A = A - (2 / jnp.where(squared > 0, squared, 1)) * jnp.outer(normal, normal @ A)
        return A.at[:, k].set(jnp.where(places >= k, mirrored, A[:, k]))

    # A loop, since unrolled columns would take long to compile.
    return jax.lax.fori_loop(0, columns, reflect, A)
