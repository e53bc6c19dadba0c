"""The Coriolis matrix."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.common_frame import common_frame, subtree_sum
from jdyn.dynamics.kinematics import dof_motion_rates, per_dof, velocities
from jdyn.dynamics.mass_matrix import reduced
from jdyn.model import Model, checked
from jdyn.model.model import compiled
from jdyn.spatial import SpatialInertia, Transform, cross_force, cross_motion


@compiled
def coriolis_matrix(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, "nv nv"]:
    """C with C v = Coriolis and centrifugal forces, and dM/dt − 2 C antisymmetric.

    >>> model, q, v = jdyn.load("double_pendulum"), jnp.array([0.0, jnp.pi / 2]), jnp.array([1.0, 2.0])
    >>> print(jdyn.coriolis_matrix(model, q, v).round(3) + 0.0)
    [[-1.  -1.5]
     [ 0.5  0. ]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].

    Returns:
        C [N m s or N s per unit velocity]; where v = dq/dt, the one made of Christoffel symbols.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: Echeandia and Wensing, Numerical methods to compute the Coriolis matrix and Christoffel symbols for
    rigid-body systems, J. Comput. Nonlinear Dynam. 2021.
    """
    q, v = checked(model, q=q, v=v)
    q, v = model.expand(q), model.expand_velocity(v)
    frame = common_frame(model, q)
    moved = jax.vmap(Transform.motion_to_parent)(frame.X, velocities(model, frame.joints, v))
    inertias = jax.vmap(SpatialInertia.to_parent)(model.inertias, frame.X)
    I = jax.vmap(SpatialInertia.matrix)(inertias)
    B = jax.vmap(_factorisation)(I, moved)
    rows = per_dof(model, np.arange(model.nb))
    I, B = subtree_sum(model, I)[rows], subtree_sum(model, B)[rows]
    S, S_rate = frame.S, dof_motion_rates(model, q, v, frame.X, moved)
    F = jax.vmap(lambda I, B, s, r: I @ r + B @ s)(I, B, S, S_rate)
    below = frame.support * (S @ F.T)
    above = frame.support.T * jax.vmap(lambda I, B, s: S_rate @ (I @ s) + S @ (B.T @ s))(I, B, S)
    return reduced(model, below + above * (1 - frame.support))


def _factorisation(I, v):
    """B with B v = v ×* I v and dI/dt − 2 B antisymmetric, for a body of inertia I that moves with v."""
    cross_v = jax.vmap(lambda m: cross_motion(v, m), in_axes=1, out_axes=1)(jnp.eye(6, dtype=v.dtype))
    h = I @ v
    # The matrix of m ↦ m ×* h.
    swapped = jax.vmap(lambda m: cross_force(m, h), in_axes=1, out_axes=1)(jnp.eye(6, dtype=v.dtype))
    return 0.5 * (-cross_v.T @ I + swapped - I @ cross_v)
