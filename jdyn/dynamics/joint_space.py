"""The equation of motion in joint space, M a + h = τ."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.common_frame import common_frame, subtree_sum
from jdyn.dynamics.inverse import bias_forces
from jdyn.dynamics.kinematics import per_dof, poses_by_leaps, world_acceleration
from jdyn.dynamics.mass_matrix import composite_mass_matrix, mass_matrix, reduced
from jdyn.dynamics.passive import passive_forces
from jdyn.dynamics.recursion.batching import single_or_batch
from jdyn.execution.compiled import widest
from jdyn.model import Joint, Model
from jdyn.model.topology import support_mask
from jdyn.spatial import SpatialInertia, Transform, cross_motion


def joint_space(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    f_ext: Float[Array, "nb 6"] | None,
) -> tuple[Float[Array, "nv nv"], Float[Array, " nv"]]:
    """M and h, which are `mass_matrix` and `bias_forces`. Not differentiable.

    For a single configuration, a recursion spends most of its time on the way from body to body. There all sums over
    paths and subtrees are products with matrices of zeros and ones, in one frame.
    """
    if model.executor != "auto":
        return _by_recursions(model, q, v, f_ext)
    dtype = widest((model, q, v, f_ext))
    like = jax.ShapeDtypeStruct((model.nv, model.nv), dtype), jax.ShapeDtypeStruct((model.nv,), dtype)
    return single_or_batch(_in_common_frame, _by_recursions, like)(model, q, v, f_ext)


def _by_recursions(model, q, v, f_ext):
    return mass_matrix(model, q), bias_forces(model, q, v, f_ext=f_ext)


def _in_common_frame(model, q, v, f_ext):
    q, v = model.expand(q), model.expand_velocity(v)
    frame = common_frame(model, q, poses_by_leaps)
    mask = support_mask(model.topology)
    path, path_of_dofs, dofs = (
        jnp.asarray(x.T, q.dtype) for x in (mask, per_dof(model, mask), per_dof(model, np.eye(model.nb)))
    )
    moved = frame.S * v[:, None]
    velocities = path_of_dofs @ moved
    c = jax.vmap(cross_motion)(velocities, dofs @ moved)
    if any(kind.bias is not Joint.bias for kind in model.topology.kinds):
        c = c + jax.vmap(Transform.motion_to_parent)(frame.X, _biases(model, q, v))
    accelerations = world_acceleration(model, q.dtype)[None] + path @ c
    inertias = jax.vmap(SpatialInertia.to_parent)(model.inertias, frame.X)
    forces = jax.vmap(SpatialInertia.force)(inertias, velocities, accelerations)
    if f_ext is not None:
        forces = forces - jax.vmap(Transform.force_to_parent)(frame.X, f_ext)
    composite, transmitted = _subtree_sums(model, inertias, forces)
    h = jnp.sum(frame.S * transmitted[per_dof(model, np.arange(model.nb))], axis=1) - passive_forces(model, q, v)
    M = composite_mass_matrix(model, frame, composite) + jnp.diag(model.armature)
    return reduced(model, M), model.reduce_force(h)


def _biases(model, q, v):
    """S̊ v of every joint."""
    by_group = model.by_group("q", q), model.by_group("v", v)
    return model.merge_groups("bodies", model.map_joints(lambda joint, q, v: joint.bias(q, v), *by_group))


def _subtree_sums(model, inertias, forces):
    """`subtree_sum` of both, in one product."""
    rows = inertias.mass[:, None], inertias.first_moment, inertias.rotational, forces
    mass, moment, rotational, force = jnp.split(subtree_sum(model, jnp.concatenate(rows, axis=1)), (1, 4, 10), axis=1)
    return SpatialInertia(mass[:, 0], moment, rotational), force
