"""The joint-space inertia matrix by composite rigid bodies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.common_frame import CommonFrame, common_frame, subtree_sum
from jdyn.dynamics.kinematics import joint_kinematics, per_dof
from jdyn.dynamics.recursion.batching import by_lanes
from jdyn.dynamics.recursion.dof_pairs import matrices_of_pairs
from jdyn.dynamics.recursion.floating_base import free_base, of_bases, on_roots, unit_motions, with_bases
from jdyn.dynamics.recursion.joint_frames import degrees_of_freedom
from jdyn.dynamics.recursion.levels import LEVELS
from jdyn.dynamics.recursion.order import Order, Packed, zeros
from jdyn.execution.at_once import at_once
from jdyn.execution.compiled import precise
from jdyn.model import WORLD, Free, Model, checked
from jdyn.model.model import compiled
from jdyn.model.topology import DofTree, dof_tree
from jdyn.spatial import SpatialInertia
from jdyn.spatial.components import Pose, dot, subtract


def reduced(model: Model, full: Float[Array, "nv_full nv_full"]) -> Float[Array, "nv nv"]:
    """Gᵀ A G."""
    if not model.topology.mimics:
        return full
    columns = jax.vmap(model.reduce_force, in_axes=1)
    return columns(columns(full))


@compiled
def mass_matrix(model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """Joint-space inertia matrix M, rotor inertia included: symmetric, and positive definite for physical models.

    >>> print(jdyn.mass_matrix(jdyn.load("double_pendulum"), jnp.zeros(2)).round(3))
    [[2.667 0.833]
     [0.833 0.333]]

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
    q = model.expand(q)
    full = (_by_numbers if model.topology.single_dof_joints else _by_matrices)(model, q)
    return reduced(model, full + jnp.diag(model.armature))


@eqx.filter_custom_jvp
def _by_numbers(model, q):
    """Without rotors, in full coordinates."""
    count = model.topology.v_offsets[-1]
    like = jax.ShapeDtypeStruct((count, count), q.dtype)
    return by_lanes(_by_matrices, _bodies_and_base, _composite, model, q, like=like)


@_by_numbers.def_jvp
@precise
def _by_numbers_jvp(primals, tangents):
    return _by_numbers(*primals), eqx.filter_jvp(_by_matrices, primals, tangents)[1]


def _by_matrices(model, q):
    frame = common_frame(model, q)
    inertias = jax.vmap(SpatialInertia.to_parent)(model.inertias, frame.X)
    return composite_mass_matrix(model, frame, jax.tree.map(lambda x: subtree_sum(model, x), inertias))


def composite_mass_matrix(
    model: Model, frame: CommonFrame, composite: SpatialInertia
) -> Float[Array, "nv_full nv_full"]:
    """M without rotors, from the composite inertias of all bodies in the common frame."""
    F = dof_forces(model, composite, frame.S)
    # Row i, column j: S_i ᵀ F_j where i supports j. The two triangles meet in each joint's own block.
    below = frame.support * (frame.S @ F.T)
    return below + below.T * (1 - frame.support)


def _bodies_and_base(order: Order, model, q):
    bodies = degrees_of_freedom(model, order.schedule(dof_tree(model.topology)), q)
    return bodies, free_base(model)


def _composite(order: Order, tree: DofTree, x):
    """M without rotors, lanes last."""
    bodies, base = x
    places = tuple(degree.displaced() for degree in bodies)
    poses = order.outward(tree, _place, on_roots(tree, Pose.identity(zeros(places, 1)[0])), places)
    if tree.grounded:
        poses = _near_each_tree(order, tree, poses)
    S = tuple(degree.S.seen_from(pose) for pose, degree in zip(poses, bodies, strict=True))
    own = tuple(at_once(degree.inertia.to_parent(pose)) for pose, degree in zip(poses, bodies, strict=True))
    total, sums = order.subtree_sums(tree, own)
    S, sums = order.unpack(tree, tuple(zip(S, sums, strict=True)))
    F = at_once(sums.momentum(S))
    if base is not None:
        whole = jax.tree.map(jnp.add, of_bases(tree, total), base.inertia)
        whole = jax.tree.map(lambda x: jnp.broadcast_to(x, (Free.nv, *x.shape)), whole)
        unit = unit_motions(whole.mass)
        S, F = with_bases(tree, (unit, whole.momentum(unit)), (S, F))

    def pair(F, S):
        entry = (dot(F, S),)
        return entry, entry

    return matrices_of_pairs(order, tree, pair, F, S)[0]


def _near_each_tree(order: Order, tree: DofTree, poses: Packed) -> Packed:
    """Poses of trees on the ground, relative to what is visited first of each; `CommonFrame` says why."""
    (run,), (pose,) = order.schedule(tree), poses
    visited = run.bodies[:, 0]
    first = np.array([tree.supports[degree][-1] for degree in visited])
    rows = np.argsort(visited)[first]
    origin = tuple(x[rows if np.any(rows) else slice(1)] for x in pose.p)
    if tree.bases:
        grounded = np.array(tree.parents)[first] == WORLD
        origin = tuple(jnp.where(np.expand_dims(grounded, tuple(range(1, x.ndim))), x, 0) for x in origin)
    return (Pose(pose.R, subtract(pose.p, origin)),)


def _place(parent, place):
    pose = parent @ place.pose
    return pose, pose


def mass_matrix_diagonal(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Diagonal of the mass matrix, in O(n); where joints follow others, the diagonal of Gᵀ diag(M_full) G."""
    joints = joint_kinematics(model, model.expand(q))
    none = jax.tree.map(lambda x: jnp.zeros_like(x[0]), model.inertias)

    def step(below, x):
        X, inertia = x
        composite = inertia + below
        return composite.to_parent(X), composite

    topology, own = model.topology, (joints.X, model.inertias)
    composite = LEVELS.unpack(topology, LEVELS.inward(topology, step, none, LEVELS.pack(topology, own)))
    by_group = zip(joints.S, model.by_group("bodies", composite), strict=True)
    along = [jax.vmap(lambda S, I: jax.vmap(lambda s: s @ I.momentum(s))(S.T))(S, I) for S, I in by_group]
    diagonal = model.merge_groups("v", along) + model.armature
    return model.reduce_force(diagonal * model.expand_velocity(jnp.ones(model.nv, diagonal.dtype)))


def dof_forces(model: Model, composite: SpatialInertia, S: Float[Array, "nv_full 6"]) -> Float[Array, "nv_full 6"]:
    """Force on each composite body that gives it the unit acceleration of one of its degrees of freedom."""
    rows = per_dof(model, np.arange(model.nb))
    return jax.vmap(SpatialInertia.momentum)(jax.tree.map(lambda x: x[rows], composite), S)
