"""The recursive Newton-Euler algorithm on single numbers: for batches.

Source: Featherstone 2008, table 5.1.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.execution.xla_cpu import at_once
from jdyn.dynamics.recursion.floating_base import base_acceleration, base_inertia
from jdyn.dynamics.recursion.joint_frames import Displaced, packed_bodies
from jdyn.dynamics.recursion.order import Order, zeros
from jdyn.model import Free, Model, Tree
from jdyn.spatial.components import Inertia, Number, Vector, add, cross_motion, dot, scale, subtract


class _Body(NamedTuple):
    """A body that moves, in its own frame.

    Attributes:
        place: The body at its configuration.
        rate: Velocity of its degree of freedom [rad/s or m/s].
        acceleration: Of its degree of freedom [rad/s² or m/s²].
        f: External force [N m, N]; None if there is none.
    """

    place: Displaced
    rate: Number
    acceleration: Number
    f: Vector | None


class Base(NamedTuple):
    """A free base, in its own frame. Its vectors are arrays until lanes are last."""

    inertia: Inertia
    v: Float[Array, "6 *lanes"]
    a: Float[Array, "6 *lanes"]
    f_ext: Float[Array, "6 *lanes"] | None

    @property
    def f(self) -> Vector | None:
        return None if self.f_ext is None else tuple(self.f_ext)


def motion_of(base: Base | None, up: Float[Array, "6 *lanes"], still: Vector) -> tuple[Vector, Vector]:
    """Velocity and acceleration of the base of a tree; the acceleration includes the one that stands for gravity."""
    if base is None:
        return still, add(tuple(up), still)
    return at_once((add(tuple(base.v), still), add(tuple(base.a + up), still)))


def newton_euler_inputs(order: Order, model: Model, q, v, a, f_ext, *coordinates):
    """Bodies, with their entries of any further `coordinates`, the world's acceleration and the base, packed for
    traversal in `order`.

    The topology must be `single_dof_joints`.
    """
    bodies = packed_bodies(order, model, q, f_ext, v, a, *coordinates)
    base = None
    if model.topology.free_base:
        base = Base(base_inertia(model), v[: Free.nv], a[: Free.nv], None if f_ext is None else f_ext[0])
    return bodies, base_acceleration(model, q), base


def newton_euler(order: Order, tree: Tree, x) -> Float[Array, "nv_full *lanes"]:
    """Forces of all degrees of freedom, without rotors, from `newton_euler_inputs`."""
    bodies, up, base = x
    bodies = tuple(_Body(degree.displaced(), *rest) for degree, *rest in bodies)
    still = zeros(bodies, 6)
    start = motion_of(base, up, still)
    moved = order.outward(tree, _move, start, bodies)
    carried = tuple(zip((body.place for body in bodies), moved, strict=True))
    total, tau = order.gathered(tree, _transmit, still, carried)
    tau = order.unpack(tree, tau)
    if base is None:
        return tau
    return jnp.concatenate([jnp.stack(add(total, _force(base.inertia, *start, base.f))), tau])


def _move(parent, body):
    """The motion of the body, and the force that it takes."""
    pose, S = body.place.body.pose, body.place.body.S.vector
    v, a = (pose.motion_to_child(m) for m in parent)
    rate = scale(body.rate, S)
    v = add(v, rate)
    a = add(a, add(scale(body.acceleration, S), cross_motion(v, rate)))
    return (v, a), _force(body.place.body.inertia, v, a, body.f)


def _force(I: Inertia, v: Vector, a: Vector, f_ext: Vector | None) -> Vector:
    f = I.force(v, a)
    return f if f_ext is None else subtract(f, f_ext)


def _transmit(below, x):
    place, own = x
    f = add(own, below)
    return place.body.pose.force_to_parent(f), dot(place.body.S.vector, f)
