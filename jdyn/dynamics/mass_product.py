"""Products of the mass matrix and a vector, without the matrix."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.execution.batching import by_lanes
from jdyn.dynamics.execution.xla_cpu import at_once
from jdyn.dynamics.inverse import rigid_body_forces
from jdyn.dynamics.kinematics import joint_kinematics, joint_motion
from jdyn.dynamics.newton_euler import transmitted
from jdyn.dynamics.recursion.dof_tree import dof_tree
from jdyn.dynamics.recursion.floating_base import FreeBase, free_base
from jdyn.dynamics.recursion.joint_frames import degrees_of_freedom, packed_entries
from jdyn.dynamics.recursion.order import Order, Packed, zeros
from jdyn.model import Free, Model, Tree, checked
from jdyn.model.compiled import compiled, precise
from jdyn.spatial.components import add, scale


@compiled
def mass_product(model: Model, q: Float[Array, " nq"], a: Float[Array, " nv"]) -> Float[Array, " nv"]:
    """M a, without forming the mass matrix M, in O(n).

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        a: Acceleration [rad/s² or m/s²].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.
    """
    q, a = checked(model, q=q, a=a)
    product = _by_numbers if model.topology.single_dof_joints else _by_matrices
    a = model.expand_velocity(a)
    return model.reduce_force(product(model, model.expand(q), a) + model.armature * a)


@eqx.filter_custom_jvp
def _by_numbers(model, q, a):
    """In full coordinates, without rotors."""
    return by_lanes(_by_matrices, _still_tree, _products, model, q, a, like=a)


@_by_numbers.def_jvp
@precise
def _by_numbers_jvp(primals, tangents):
    return _by_numbers(*primals), eqx.filter_jvp(_by_matrices, primals, tangents)[1]


def _by_matrices(model, q, a):
    joints = joint_kinematics(model, q)
    motion = joint_motion(model, joints, a)
    return rigid_body_forces(model, joints, motion, jnp.zeros(6, motion.dtype))


class _StillTree(NamedTuple):
    """A tree that accelerates from rest.

    Attributes:
        degrees: Of freedom.
        a: Their accelerations [rad/s² or m/s²].
        base: None where it stands on the ground.
        own: Accelerations of a free base [rad/s², m/s²].
    """

    degrees: Packed
    a: Packed
    base: FreeBase | None
    own: Float[Array, "6 *lanes"]


def _still_tree(order: Order, model, q, a) -> _StillTree:
    degrees = degrees_of_freedom(model, order.schedule(dof_tree(model.topology)), q)
    return _StillTree(degrees, packed_entries(order, model, a), free_base(model), a[: Free.nv])


def _products(order: Order, tree: Tree, x: _StillTree) -> Float[Array, "nv_full *lanes"]:
    """Accelerations outward, the forces that they take inward."""

    def accelerate(parent, x):
        place, a = x
        here = add(place.pose.motion_to_child(parent), scale(a, place.S.vector))
        return here, place.inertia.momentum(here)

    places = tuple(degree.displaced() for degree in x.degrees)
    bodies = tuple(zip(places, x.a, strict=True))
    still = zeros(bodies, 6)
    start = still if x.base is None else at_once(add(tuple(x.own), still))
    forces = order.outward(tree, accelerate, start, bodies)
    total, tau = order.gathered(tree, transmitted, still, tuple(zip(places, forces, strict=True)))
    tau = order.unpack(tree, tau)
    if x.base is None:
        return tau
    return jnp.concatenate([jnp.stack(add(total, x.base.inertia.momentum(start))), tau])
