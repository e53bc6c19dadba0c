"""Forward dynamics by Walker and Orin's first two methods."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array import CHOLESKY
from jdyn.dynamics.building_blocks import (
    BiasFirst,
    common_frame,
    mass_product,
    per_dof,
    reduced,
    subtree_sum,
    support_mask,
)
from jdyn.model import Model
from jdyn.spatial import SpatialInertia


class WalkerOrin(BiasFirst):
    """The mass matrix column by column from inverse dynamics, then Cholesky: O(n²) for the matrix, O(n³) in all.

    Of historical interest: `CRBA` is their third method, `ConjugateGradient` the fourth, and both are faster.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.studies.WalkerOrin(2)).round(3))
    [-6.047  8.063]

    Attributes:
        number: 1: every column from an inverse dynamics of the whole mechanism at rest without gravity.
            2: each column from only the bodies that its joint moves; the other half of the matrix by symmetry.

    Source: Walker and Orin 1982, methods 1 and 2.
    """

    number: Literal[1, 2] = eqx.field(static=True, default=1)

    def __check_init__(self):
        if self.number not in (1, 2):
            raise ValueError(f"number: expected 1 or 2, got {self.number}; their method 3 is CRBA, 4 ConjugateGradient")

    def factor(self, model, q):
        columns = _whole_columns if self.number == 1 else _half_columns
        return CHOLESKY.factor(columns(model, q))

    def solve(self, model, factors, tau):
        return CHOLESKY.solve(factors, tau)


def _whole_columns(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    return jax.vmap(lambda e: mass_product(model, q, e), out_axes=1)(jnp.eye(model.nv, dtype=q.dtype))


def _half_columns(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    frame = common_frame(model, model.expand(q))
    inertias = jax.vmap(SpatialInertia.to_parent)(model.inertias, frame.X)
    bodies = per_dof(model, np.arange(model.nb))
    moved = jnp.asarray(per_dof(model, support_mask(model.topology)), q.dtype)

    def column(S, moved):
        """Forces of all joints while a single degree of freedom accelerates the bodies that it moves."""
        force = jax.vmap(SpatialInertia.momentum)(inertias, moved[:, None] * S[None])
        return jnp.sum(frame.S * subtree_sum(model, force)[bodies], axis=1)

    M = jax.vmap(column, out_axes=1)(frame.S, moved)
    outboard = frame.support.T * M
    return reduced(model, outboard + outboard.T * (1 - frame.support.T) + jnp.diag(model.armature))
