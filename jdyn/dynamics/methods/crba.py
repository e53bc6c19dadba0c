"""Forward dynamics by the composite-rigid-body algorithm and a Cholesky factorisation."""

import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from jdyn.dynamics.mass_matrix import mass_matrix
from jdyn.dynamics.methods.method import BiasFirst
from jdyn.model import Model


class CRBA(BiasFirst):
    """Form the mass matrix and factor it: O(n³).

    For few degrees of freedom, or as a second opinion. Its error grows with the condition number of the mass
    matrix, which makes it the wrong choice in float32 for long chains and large mass ratios.

    Source: Walker and Orin 1982, method 3; Featherstone 2008, section 6.2.
    """

    def factor(self, model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        """Lower Cholesky factor of M."""
        return jnp.linalg.cholesky(mass_matrix(model, q))

    def solve(self, model: Model, factors: Float[Array, "nv nv"], tau: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return cho_solve((factors, True), tau)
