"""The factorisation M = LᵀL, which keeps the zeros that branches cause."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.model import Topology
from jdyn.model.topology import dof_ancestors


def factor(topology: Topology, M: Float[Array, "nv nv"]) -> Float[Array, "nv nv"]:
    """L, lower triangular with LᵀL = M, from the last degree of freedom to the first.

    Row i of L has entries where degrees of freedom carry i, and nowhere else. Only those are visited: O(n d²), with
    d the number of degrees of freedom on the longest path. One row and column more than needed are for padding.

    Source: Featherstone 2008, section 6.5.
    """
    rows = jnp.asarray(dof_ancestors(topology))

    def eliminate(A, row):
        i, above = row
        diagonal = jnp.sqrt(A[i, i])
        column = A[i, above] / diagonal
        A = A.at[i, i].set(diagonal).at[i, above].set(column)
        return A.at[above[:, None], above[None]].add(-column[:, None] * column[None]), None

    n = len(M)
    padded = jnp.pad(M, (0, 1))
    A, _ = jax.lax.scan(eliminate, padded, (jnp.arange(n), rows), reverse=True)
    return jnp.tril(A[:n, :n])


def solve(topology: Topology, L: Float[Array, "nv nv"], b: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """(LᵀL)⁻¹ b."""
    rows, n = jnp.asarray(dof_ancestors(topology)), len(b)
    entries = jnp.pad(L, (0, 1))[jnp.arange(n)[:, None], rows]

    def inward(x, row):
        i, above, l = row
        x = x.at[i].divide(L[i, i])
        return x.at[above].add(-l * x[i]), None

    def outward(x, row):
        i, above, l = row
        return x.at[i].set((x[i] - l @ x[above]) / L[i, i]), None

    visits = (jnp.arange(n), rows, entries)
    x, _ = jax.lax.scan(inward, jnp.pad(b, (0, 1)), visits, reverse=True)
    x, _ = jax.lax.scan(outward, x.at[n].set(0), visits)
    return x[:n]
