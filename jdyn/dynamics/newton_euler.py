"""The recursive Newton-Euler algorithm on single numbers: for batches.

Source: Featherstone 2008, table 5.1.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.recursion.floating_base import Base, Ground, moving_base, of_bases, with_bases
from jdyn.dynamics.recursion.joint_frames import across, moving_bodies
from jdyn.dynamics.recursion.order import Order, Packed, zeros
from jdyn.model import Model
from jdyn.model.topology import DofTree
from jdyn.spatial.components import add, dot


class MovingTree(NamedTuple):
    """A tree of which all accelerations are given, packed for traversal: a `MovingBody` of each degree of freedom."""

    bodies: Packed
    base: Base


def moving_tree(order: Order, model: Model, q, v, a, f_ext) -> MovingTree:
    """The topology must be `single_dof_joints`."""
    return MovingTree(moving_bodies(order, model, q, v, a, f_ext), moving_base(model, q, v, a, f_ext))


def newton_euler(order: Order, tree: DofTree, x: MovingTree) -> Float[Array, "nv_full *lanes"]:
    """Forces of all degrees of freedom, without rotors."""
    bodies = tuple(body.displaced() for body in x.bodies)
    still = zeros((bodies, x.base), 6)
    start = x.base.motion(tree, still)
    forces = order.outward(tree, _move, start, bodies)
    places = (body.place for body in bodies)
    total, tau = order.gathered(tree, transmitted, still, tuple(zip(places, forces, strict=True)))
    tau = order.unpack(tree, tau)
    if isinstance(x.base, Ground):
        return tau
    own, total = of_bases(tree, (start, total))
    return with_bases(tree, jnp.stack(add(total, x.base.force(*own))), tau)


def _move(parent, body):
    """The motion of the body, and the force that it takes."""
    pose = body.place.pose
    v, a = across(body.place.S.vector, body.rate, body.given, *map(pose.motion_to_child, parent))
    return (v, a), body.force(v, a)


def transmitted(below, x):
    """Force that a body takes from its parent, for itself and for its children, and the part of that along its
    joint."""
    place, own = x
    f = add(own, below)
    return place.pose.force_to_parent(f), dot(place.S.vector, f)
