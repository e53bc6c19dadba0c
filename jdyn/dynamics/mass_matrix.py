"""The joint-space inertia matrix by composite rigid bodies."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.common_frame import CommonFrame, common_frame, subtree_sum
from jdyn.dynamics.compiled import compiled
from jdyn.dynamics.kinematics import joint_kinematics, per_dof
from jdyn.dynamics.traverse import inward, pack, unpack
from jdyn.model import Model, checked
from jdyn.spatial import SpatialInertia


def reduced(model: Model, full: Float[Array, "nv_full nv_full"]) -> Float[Array, "nv nv"]:
    """Gᵀ A G."""
    if not model.topology.mimics:
        return full
    columns = jax.vmap(model.reduce_force, in_axes=1)
    return columns(columns(full))


@compiled
def mass_matrix(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """Joint-space inertia matrix M, rotor inertia included: symmetric, and positive definite for physical models.

    Args:
        model: The mechanism.
        q: Configuration [rad or m].

    Returns:
        M [kg m², kg m or kg].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.

    Source: composite rigid bodies, Walker and Orin 1982; Featherstone 2008, section 6.2.
    """
    (q,) = checked(model, q=q)
    frame = common_frame(model, model.expand(q))
    inertias = jax.vmap(SpatialInertia.to_parent)(model.inertias, frame.X)
    return composite_mass_matrix(model, frame, jax.tree.map(lambda x: subtree_sum(model, x), inertias))


def composite_mass_matrix(model: Model, frame: CommonFrame, composite: SpatialInertia) -> Float[Array, "nv nv"]:
    """M, from the composite inertias of all bodies in the common frame."""
    F = dof_forces(model, composite, frame.S)
    # Row i, column j: S_i ᵀ F_j where i supports j. The two triangles meet in each joint's own block.
    below = frame.support * (frame.S @ F.T)
    M = below + below.T * (1 - frame.support)
    return reduced(model, M + jnp.diag(model.armature))


def mass_matrix_diagonal(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Diagonal of the mass matrix, in O(n); that of Gᵀ diag(M_full) G where joints follow others."""
    joints = joint_kinematics(model, model.expand(q))
    none = jax.tree.map(lambda x: jnp.zeros_like(x[0]), model.inertias)

    def step(below, x):
        X, inertia = x
        composite = inertia + below
        return composite.to_parent(X), composite

    composite = unpack(
        model.topology, inward(model.topology, step, none, pack(model.topology, (joints.X, model.inertias)))
    )
    by_group = zip(joints.S, model.by_group("bodies", composite), strict=True)
    along = [jax.vmap(lambda S, I: jax.vmap(lambda s: s @ I.momentum(s))(S.T))(S, I) for S, I in by_group]
    diagonal = model.merge_groups("v", along) + model.armature
    return model.reduce_force(diagonal * model.expand_velocity(jnp.ones(model.nv, diagonal.dtype)))


def dof_forces(model: Model, composite: SpatialInertia, S: Float[Array, "nv_full 6"]) -> Float[Array, "nv_full 6"]:
    """Force on each composite body that gives it the unit acceleration of one of its degrees of freedom."""
    rows = per_dof(model, np.arange(model.nb))
    return jax.vmap(SpatialInertia.momentum)(jax.tree.map(lambda x: x[rows], composite), S)
