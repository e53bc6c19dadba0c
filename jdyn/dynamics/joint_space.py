"""The equation of motion in joint space, M a + h = τ."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.common_frame import common_frame
from jdyn.dynamics.inverse import bias_forces, passive_forces
from jdyn.dynamics.kinematics import joint_bias, per_dof, poses_by_leaps, world_acceleration
from jdyn.dynamics.lanes import single_or_batch
from jdyn.dynamics.mass_matrix import composite_mass_matrix, mass_matrix
from jdyn.dynamics.traverse import support_mask
from jdyn.model import Model
from jdyn.spatial import SpatialInertia, Transform


def joint_space(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    f_ext: Float[Array, "nb 6"] | None,
) -> tuple[Float[Array, "nv nv"], Float[Array, " nv"]]:
    """M and h, which are `mass_matrix` and `bias_forces`. Not differentiable.

    A single configuration leaves little to do at each body, so that a recursion spends its time on getting from one to
    the next: there all sums over paths and subtrees are products with matrices of zeros and ones, in one frame.
    """
    return single_or_batch(_in_common_frame, _by_recursions)(model, q, v, f_ext)


def _by_recursions(model, q, v, f_ext):
    return mass_matrix(model, q), bias_forces(model, q, v, f_ext=f_ext)


def _in_common_frame(model, q, v, f_ext):
    q, v = model.expand(q), model.expand_velocity(v)
    frame = common_frame(model, q, poses_by_leaps)
    X, S = frame.X, frame.S
    path = jnp.asarray(support_mask(model.topology).T, q.dtype)
    path_of_dofs = jnp.asarray(per_dof(model, support_mask(model.topology)).T, q.dtype)
    velocities = path_of_dofs @ (S * v[:, None])
    c = joint_bias(model, q, v, jax.vmap(Transform.motion_to_child)(X, velocities))
    accelerations = world_acceleration(model, q.dtype)[None] + path @ jax.vmap(Transform.motion_to_parent)(X, c)
    inertias = jax.vmap(SpatialInertia.to_parent)(model.inertias, X)
    forces = jax.vmap(SpatialInertia.force)(inertias, velocities, accelerations)
    if f_ext is not None:
        forces = forces - jax.vmap(Transform.force_to_parent)(X, f_ext)
    h = jnp.sum(S * (path_of_dofs.T @ forces), axis=1) - passive_forces(model, q, v)
    return composite_mass_matrix(model, frame, inertias), model.reduce_force(h)
