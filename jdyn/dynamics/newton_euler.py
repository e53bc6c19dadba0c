"""The recursive Newton-Euler algorithm, number by number: for batches.

Source: Featherstone 2008, table 5.1.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.dynamics.aligned import Displaced, packed_bodies
from jdyn.dynamics.at_once import at_once
from jdyn.dynamics.base import base_inertia, upward
from jdyn.dynamics.lanes import zeros
from jdyn.model import Free, Model
from jdyn.spatial.components import Inertia, Number, Vector, add, cross_motion, dot, scale, subtract


class _Body(NamedTuple):
    """Attributes:
    place: Where its joint has brought it.
    rate: Of its degree of freedom.
    acceleration: Of its degree of freedom.
    f: External force; None if there is none.
    """

    place: Displaced
    rate: Number
    acceleration: Number
    f: Vector | None


class Base(NamedTuple):
    """A free base, in its own frame; its vectors are arrays, which are taken apart once lanes are last."""

    inertia: Inertia
    v: Float[Array, "6 *lanes"]
    a: Float[Array, "6 *lanes"]
    f_ext: Float[Array, "6 *lanes"] | None

    @property
    def f(self) -> Vector | None:
        return None if self.f_ext is None else tuple(self.f_ext)


def motion_of(base: Base | None, up: Float[Array, "6 *lanes"], still: Vector) -> tuple[Vector, Vector]:
    """Velocity and acceleration of what a tree stands on, with the acceleration that stands for gravity."""
    if base is None:
        return still, add(tuple(up), still)
    return at_once((add(tuple(base.v), still), add(tuple(base.a + up), still)))


def newton_euler_inputs(order, model: Model, q, v, a, f_ext, *coordinates):
    """Bodies, with their entries of any further `coordinates`, the world's acceleration and the base, packed for
    traversal in an `order` of `jdyn.dynamics.lanes`.

    The topology must be `slender`.
    """
    bodies = packed_bodies(order, model, q, f_ext, v, a, *coordinates)
    base = None
    if model.topology.free_base:
        base = Base(base_inertia(model), v[: Free.nv], a[: Free.nv], None if f_ext is None else f_ext[0])
    return bodies, upward(model, q), base


def newton_euler(order, tree, x) -> Float[Array, "nv_full *lanes"]:
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
