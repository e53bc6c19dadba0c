"""Forward dynamics by the natural orthogonal complement."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from jdyn.array import CHOLESKY
from jdyn.dynamics.building_blocks import BiasFirst, common_frame, one_of, per_dof, support_mask
from jdyn.model import Model
from jdyn.spatial import SpatialInertia


class OrthogonalComplement(BiasFirst):
    """The mass matrix as PᵀP, where P = B T: T holds the twists of all bodies per unit joint velocity, B the square
    roots of their inertias. O(n³), on a matrix six times as high as it is wide.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> method = jdyn.studies.OrthogonalComplement("factored")
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=method).round(3))
    [-6.047  8.063]

    Attributes:
        form: `"normal"`: PᵀP is formed and factored, Angeles and Ma's first method. `"factored"`: Pᵀ y = τ − h for
            the smallest y, then P a = y by least squares, both by reflections of P, their second method: errors grow
            with the condition number of P, which is the square root of M's.

    Source: Angeles and Ma 1988; Cloutier 1995, section 3.1.2.
    """

    form: Literal["normal", "factored"] = eqx.field(static=True, default="normal")

    def __check_init__(self):
        one_of("form", self.form, ("normal", "factored"))

    def factor(self, model, q):
        P = _weighted_twists(model, q)
        return CHOLESKY.factor(P.T @ P) if self.form == "normal" else jnp.linalg.qr(P)

    def solve(self, model, factors, tau):
        if self.form == "normal":
            return CHOLESKY.solve(factors, tau)
        Q, R = factors
        y = Q @ solve_triangular(R, tau, trans="T")
        return solve_triangular(R, Q.T @ y)


def _weighted_twists(model: Model, q: Float[Array, " nq"]) -> Float[Array, "rows nv"]:
    """P: six rows for each body, and one for each rotor."""
    frame = common_frame(model, model.expand(q))
    B = jax.vmap(SpatialInertia.square_root)(model.inertias)
    moved = jnp.asarray(per_dof(model, support_mask(model.topology)), B.dtype).T

    def rows(B, X, moved):
        return B @ (moved[:, None] * jax.vmap(X.motion_to_child)(frame.S)).T

    bodies = jax.vmap(rows)(B, frame.X, moved)
    P = jnp.concatenate([*bodies, jnp.diag(jnp.sqrt(model.armature))])
    return jax.vmap(model.reduce_force)(P)
