"""Inverse dynamics at rest: the mass matrix times a vector, and the forces that hold against gravity.

In batches by the recursive Newton-Euler algorithm on single numbers, without velocities.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.inverse import rigid_body_forces
from jdyn.dynamics.kinematics import joint_kinematics, joint_motion, world_acceleration
from jdyn.dynamics.newton_euler import transmitted
from jdyn.dynamics.recursion.batching import by_lanes
from jdyn.dynamics.recursion.floating_base import (
    FreeBase,
    base_acceleration,
    free_base,
    of_bases,
    of_roots,
    on_roots,
    with_bases,
)
from jdyn.dynamics.recursion.joint_frames import degrees_of_freedom, packed_entries
from jdyn.dynamics.recursion.order import Order, Packed, zeros
from jdyn.execution.at_once import at_once
from jdyn.execution.compiled import precise
from jdyn.model import Model, checked, take_rows
from jdyn.model.model import compiled
from jdyn.model.topology import DofTree, dof_tree
from jdyn.spatial.components import add, rotate_back, scale


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
    a = model.expand_velocity(a)
    weightless = eqx.tree_at(lambda model: model.gravity, model, jnp.zeros_like(model.gravity))
    return model.reduce_force(_forces(weightless, model.expand(q), a) + model.armature * a)


@compiled
def gravity_forces(model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """Generalized forces that hold the mechanism against gravity alone [N m or N]: the gradient of its potential.

    >>> print(jdyn.gravity_forces(jdyn.load("pendulum"), jnp.array([jnp.pi / 2])).round(3))
    [4.905]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].

    Raises:
        ValueError: at trace time, if a size disagrees with `model`.
    """
    (q,) = checked(model, q=q)
    return model.reduce_force(_forces(model, model.expand(q), None))


def _forces(model, q, a):
    """Generalized forces that accelerate a mechanism from rest under gravity, or hold it if `a` is None, in full
    coordinates, without rotors."""
    forces = _by_numbers if model.topology.single_dof_joints else _by_matrices
    return forces(model, q, a)


@eqx.filter_custom_jvp
def _by_numbers(model, q, a):
    like = jax.ShapeDtypeStruct((model.topology.v_offsets[-1],), q.dtype)
    if a is None:
        return by_lanes(lambda model, q: _by_matrices(model, q, None), _hanging_tree, _weights, model, q, like=like)
    return by_lanes(_by_matrices, _still_tree, _newton_euler, model, q, a, like=like)


@_by_numbers.def_jvp
@precise
def _by_numbers_jvp(primals, tangents):
    return eqx.filter_jvp(_by_matrices, primals, tangents)


def _by_matrices(model, q, a):
    joints = joint_kinematics(model, q)
    a = jnp.zeros(model.topology.v_offsets[-1], q.dtype) if a is None else a
    return rigid_body_forces(model, joints, joint_motion(model, joints, a), world_acceleration(model, a.dtype))


class _StillTree(NamedTuple):
    """A tree at rest of which all accelerations are given.

    Attributes:
        degrees: Of freedom.
        a: Their accelerations [rad/s² or m/s²].
        start: Acceleration of what trees stand on, gravity included [rad/s², m/s²].
        base: None where that is the ground.
    """

    degrees: Packed
    a: Packed
    start: Float[Array, "6 *lanes"]
    base: FreeBase | None


def _still_tree(order: Order, model, q, a) -> _StillTree:
    tree, start, base = dof_tree(model.topology), base_acceleration(model, q), free_base(model)
    degrees = degrees_of_freedom(model, order.schedule(tree), q)
    if base is not None:
        start = start + of_roots(tree, take_rows(a, tree.of_bases), axis=1)
    return _StillTree(degrees, packed_entries(order, model, a), start, base)


def _newton_euler(order: Order, tree: DofTree, x: _StillTree) -> Float[Array, "nv_full *lanes"]:
    """Accelerations outward, the forces that they take inward."""

    def accelerate(parent, x):
        place, a = x
        here = add(place.pose.motion_to_child(parent), scale(a, place.S.vector))
        return here, place.inertia.momentum(here)

    places = tuple(degree.displaced() for degree in x.degrees)
    bodies = tuple(zip(places, x.a, strict=True))
    still = zeros((bodies, x.start), 6)
    start = add(tuple(x.start), on_roots(tree, still))
    start = start if x.base is None else at_once(start)
    forces = order.outward(tree, accelerate, start, bodies)
    total, tau = order.gathered(tree, transmitted, still, tuple(zip(places, forces, strict=True)))
    tau = order.unpack(tree, tau)
    if x.base is None:
        return tau
    start, total = of_bases(tree, (start, total))
    return with_bases(tree, jnp.stack(add(total, x.base.inertia.momentum(start))), tau)


class _HangingTree(NamedTuple):
    """A tree that nothing accelerates but gravity.

    Attributes:
        degrees: Of freedom.
        up: Acceleration that stands for gravity, in the frame of what trees stand on [m/s²].
        base: None where that is the ground.
    """

    degrees: Packed
    up: Float[Array, "3 *lanes"]
    base: FreeBase | None


def _hanging_tree(order: Order, model, q) -> _HangingTree:
    degrees = degrees_of_freedom(model, order.schedule(dof_tree(model.topology)), q)
    return _HangingTree(degrees, base_acceleration(model, q)[3:], free_base(model))


def _weights(order: Order, tree: DofTree, x: _HangingTree) -> Float[Array, "nv_full *lanes"]:
    """Which way is up outward, weights inward. Nothing turns, so that three numbers are an acceleration."""

    def turn(parent, place):
        up = rotate_back(place.pose.R, parent)
        return up, up

    def weigh(below, x):
        place, up = x
        return transmitted(below, (place, place.inertia.momentum((0, 0, 0, *up))))

    places = tuple(degree.displaced() for degree in x.degrees)
    up = add(tuple(x.up), on_roots(tree, zeros((places, x.up), 3)))
    above = order.outward(tree, turn, up, places)
    total, tau = order.gathered(tree, weigh, zeros((places, x.up), 6), tuple(zip(places, above, strict=True)))
    tau = order.unpack(tree, tau)
    if x.base is None:
        return tau
    up, total = of_bases(tree, (up, total))
    return with_bases(tree, jnp.stack(add(total, x.base.inertia.momentum((0, 0, 0, *up)))), tau)
