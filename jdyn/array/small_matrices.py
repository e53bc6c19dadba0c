"""Factorisations of small matrices without LAPACK: Cholesky's, elimination by any pivots, and Householder's.

LAPACK needs one call for each matrix of a batch. If a program has several such calls that do not depend on each other,
jaxlib's CPU executor can deadlock on a machine with few processors.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

# Up to so many columns are written out. Beyond, they are a loop, which compiles sooner.
WRITTEN_OUT = 6

Index = int | Int[Array, ""]


def cholesky(A: Float[Array, "n n"], semidefinite: bool = False) -> Float[Array, "n n"]:
    """Lower triangular L with L Lᵀ = A, positive definite; NaN if it is not.

    If A may be semidefinite, pivots that are zero, or negative due to rounding, are skipped.
    """
    n = len(A)

    def column(k, known):
        left = column_left(A, known, k)
        return next_column(left, k, jnp.arange(n) >= k, left[k] > 0 if semidefinite else True)

    if n <= WRITTEN_OUT:
        columns: list[Array] = []
        for k in range(n):
            columns.append(column(k, columns))
        return jnp.stack(columns, axis=1)

    def add_column(k, L):
        return jax.lax.dynamic_update_index_in_dim(L, column(k, L), k, 1)

    return jax.lax.fori_loop(0, n, add_column, jnp.zeros_like(A))


def column_left(A: Float[Array, "n n"], known: Float[Array, "n n"] | Sequence[Array], k: Index) -> Float[Array, " n"]:
    """A column of what the known columns of L leave of A: those of a sequence, or of a matrix where others are zero."""
    left = A[:, k]
    if not isinstance(known, Sequence):
        return left - known @ known[k]
    for column in known:
        left = left - column * column[k]
    return left


def next_column(
    left: Float[Array, " n"], k: Index, places: Bool[Array, " n"], large: bool | Bool[Array, ""]
) -> Float[Array, " n"]:
    """The next column of L, from what is left of column k of A; it has entries at `places`, and none unless the pivot
    is `large` enough."""
    return jnp.where(places & large, left, 0) / jnp.sqrt(jnp.where(large, left[k], 1))


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


def solution(A: Float[Array, "n n"], B: Float[Array, "n m"], full_pivoting: bool = False) -> Float[Array, "n m"]:
    """A⁻¹ B, by Gauss-Jordan elimination with row pivoting, or with full pivoting."""
    n = len(A)

    def eliminate(k, state):
        table, rows, left = state
        if full_pivoting:
            # The columns that are left have no row yet.
            candidates = jnp.where(left[:, None] & (rows < 0)[None], jnp.abs(table[:, :n]), -1)
            row, k = jnp.unravel_index(jnp.argmax(candidates), A.shape)
        else:
            row = jnp.argmax(jnp.where(left, jnp.abs(table[:, k]), -1))
        # Rows are not swapped: the column knows its row.
        places, pivot_row = jnp.arange(n), table[row] / table[row, k]
        rows = jnp.where(places == k, row, rows)
        return _eliminated(table, row, pivot_row, table[:, k]), rows, left & (places != row)

    # A loop, since unrolled columns would take long to compile.
    state = jnp.concatenate([A, B], axis=1), jnp.full(n, -1), jnp.ones(n, bool)
    table, rows, _ = jax.lax.fori_loop(0, n, eliminate, state)
    return table[rows, n:]


def definite_inverse(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A⁻¹ of a positive definite matrix of a few rows, by Gauss-Jordan elimination with pivots in order."""
    n = len(A)
    # Beside the identity: in its own place it takes longer, and a simulation of a quadruped 1.12 times as long.
    table = jnp.concatenate([A, jnp.eye(n, dtype=A.dtype)], axis=1)
    for k in range(n):
        table = _eliminated(table, k, table[k] / table[k, k], table[:, k])
    return table[:, n:]


def swept_inverse(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A⁻¹ of a symmetric positive definite matrix, in its own place, with the largest pivot first: half the operations
    of `solution`. NaN if the matrix is not positive definite.

    Source: Goodnight 1979, A Tutorial on the SWEEP Operator.
    """
    n = len(A)

    def sweep(_, state):
        # Entries are as those across the diagonal if both pivots are left, or none is, and opposite otherwise.
        A, left = state
        sizes = jnp.where(left, jnp.diagonal(A), -jnp.inf)
        pivot, size = jnp.argmax(sizes), jnp.max(sizes)
        # As constants from outside of a loop, places would be carried: batches then take 1.2 times as long.
        here, row = jnp.arange(n) == pivot, A[pivot]
        pivot_row = jnp.where(here, 1, row) / jnp.where(size > 0, size, jnp.nan)
        A = _eliminated(jnp.where(here[None], 0, A), pivot, pivot_row, jnp.where(left, row, -row))
        return A, left & ~here

    # A loop, since unrolled columns would take long to compile.
    return jax.lax.fori_loop(0, n, sweep, (A, jnp.ones(n, bool)))[0]


def _eliminated(
    table: Float[Array, "n m"], row: Index, pivot_row: Float[Array, " m"], column: Float[Array, " n"]
) -> Float[Array, "n m"]:
    """A table after elimination with a pivot, whose row has been divided by it, and whose column says how much of that
    row the others lose."""
    rest = table - column[:, None] * pivot_row[None]
    # Where the row is known, XLA fuses less, and computes nothing twice; where it is not, batches write it slowly.
    if isinstance(row, int):
        return rest.at[row].set(pivot_row)
    return jnp.where((jnp.arange(len(table)) == row)[:, None], pivot_row[None], rest)


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
