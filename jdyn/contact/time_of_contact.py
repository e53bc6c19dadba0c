"""When the shapes of a robot that moves at a constant velocity touch first."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.contact.colliders import GROUND, Colliders, by_kinds, colliders
from jdyn.contact.nearing import Extent, Nearing, extent, time_to_pass
from jdyn.contact.points import placed_pairs
from jdyn.dynamics import forward_kinematics
from jdyn.dynamics.relative_motion import RelativeMotion
from jdyn.geometry import Separation, separation
from jdyn.model import Model, checked
from jdyn.model.model import compiled
from jdyn.spatial import Transform


def time_of_contact(
    model: Model,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    horizon: ArrayLike,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    max_rounds: int = 1000,
) -> Scalar:
    """When shapes touch first, if the robot moves from q at the constant velocity v: along model.integrate(q, t v).

    No shape is too thin to be seen and no motion too fast: time advances by no more than what cannot bring any pair
    together, by bounds on how fast shapes approach and turn. So it also clears the way between two configurations:
    `time_of_contact(model, q0, model.difference(q0, q1), 1.0)` is infinite if nothing touches on it.

    First derivatives in both modes, with respect to q, v and every number of the model, are those of the solution by
    the implicit function theorem. They are zero where the result is zero or infinite.

    >>> builder = jdyn.Builder("bullet and wall")
    >>> builder.add_link("bullet", jdyn.Prismatic((1, 0, 0)), mass=0.01)
    >>> builder.add_shape("bullet", "sphere", 0.01, role="collision")
    >>> builder.add_shape("world", "box", (1e-3, 1, 1), placement=(2, 0, 0), role="collision", name="wall")
    >>> t = jdyn.contact.time_of_contact(builder.build(), jnp.zeros(1), jnp.array([1000.0]), 1.0)
    >>> print(f"{1000 * t:.4f} ms")
    1.9895 ms

    Args:
        model: The mechanism.
        q: Configuration at the start.
        v: Velocity [rad/s or m/s].
        horizon: How long to look [s].
        pairs: Names of two collision shapes for each pair to look at; all that may touch if left out.
        max_rounds: Most evaluations of all distances. Shapes that turn close by each other take the most.

    Returns:
        The time [s]: zero if shapes touch or overlap at the start, infinite if none touch before the horizon, NaN if
        `max_rounds` were too few to tell. Shapes that pass each other within √ε, 1.5e-8 m in float64 and 3.5e-4 m in
        float32, count as touching.

    Raises:
        ValueError: if the model has no collision shapes, or none of a name, if a size disagrees with `model`, or a pair
            has a height field: from afar it has no distance.

    Source: Mirtich, Impulse-based dynamic simulation of rigid body systems, 1996, for conservative
    advancement; Zhang, Redon, Lee, Kim, Continuous collision detection for articulated models using Taylor models and
    temporal culling, 2007, for that of robots. The bounds are those of `Nearing`.
    """
    found = colliders(model)
    if pairs is not None:
        found = dataclasses.replace(found, pairs=by_kinds(found.entries, found.rows(pairs)))
    for number in sorted({number for pair in found.pairs for number in pair}):
        if found.entries[number].kind == "height field":
            raise ValueError(
                f"time_of_contact: {found.entries[number].name!r} is a height field, which has no distance from afar; "
                "name other pairs"
            )
    return _time_of_contact(model, found, q, v, horizon, max_rounds)


@compiled
def _time_of_contact(
    model: Model, found: Colliders, q: Float[Array, " nq"], v: Float[Array, " nv"], horizon: ArrayLike, max_rounds: int
) -> Scalar:
    q, v = checked(model, q=q, v=v)
    horizon = jnp.asarray(horizon, v.dtype)
    if not found.pairs:
        return jnp.full((), jnp.inf, v.dtype)
    t, touching = _advanced(*jax.lax.stop_gradient((model, found, q, v, horizon)), max_rounds)

    def gap(t):
        distance = _placed(found, forward_kinematics(model, model.integrate(q, t * v)))[0].distance
        return distance[jnp.argmin(distance)]

    # One step of Newton's method takes the distance from √ε to rounding, and has the derivatives of the solution.
    distance, slope = jax.jvp(gap, (jnp.where(touching, t, 0),), (jnp.ones_like(t),))
    slope = jax.lax.stop_gradient(slope)
    approaching = touching & (slope < 0) & (distance > 0)
    touched = t + jnp.where(approaching, -distance / jnp.where(approaching, slope, 1), 0)
    never = jnp.where(t >= horizon, jnp.inf, jnp.nan)
    return jnp.where(touching, jnp.where(touched < horizon, touched, jnp.inf), never)


def _advanced(model, found, q, v, horizon, max_rounds):
    """The time at which two shapes are nearer than √ε, and whether there are such; otherwise how far it is sure that
    there are none."""
    near = jnp.sqrt(jnp.finfo(v.dtype).eps)

    def going(carry):
        t, touching, rounds = carry
        return ~touching & (t < horizon) & (rounds < max_rounds)

    def advance(carry):
        t, _, rounds = carry
        motion = RelativeMotion.at(model, found.paths(model), model.integrate(q, t * v))
        apart, extent = _placed(found, motion.poses)
        touching = jnp.min(apart.distance) <= near
        nearing = Nearing.of(motion, found, v, 0 * v, extent.ball, apart.normal)
        return jnp.where(touching, t, t + jnp.min(nearing.time(apart.distance))), touching, rounds + 1

    start = jnp.zeros_like(horizon), jnp.zeros((), bool), jnp.zeros((), jnp.int32)
    t, touching, _ = jax.lax.while_loop(going, advance, start)
    return t, touching


def time_to_pass_pairs(
    model: Model,
    pairs: Sequence[tuple[str, str]],
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    looks: int,
) -> Scalar:
    """`time_to_pass` of pairs with these names, which finds out how far they are apart."""
    found = colliders(model)
    return time_to_pass_colliders(model, dataclasses.replace(found, pairs=tuple(found.rows(pairs))), q, v, a, looks)


def time_to_pass_colliders(
    model: Model,
    found: Colliders,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    looks: int,
) -> Scalar:
    """`time_to_pass` of all pairs of shapes."""
    # Ground has no other side.
    rows = [pair for pair in by_kinds(found.entries, found.pairs) if found.entries[pair[0]].kind not in GROUND]
    if not rows:
        return jnp.full((), jnp.inf, v.dtype)
    found = dataclasses.replace(found, pairs=tuple(rows))
    motion = RelativeMotion.at(model, found.paths(model), q)
    return time_to_pass(motion, found, v, a, _placed(found, motion.poses)[0], looks=looks)


def _placed(found: Colliders, poses: Transform) -> tuple[Separation, Extent]:
    """Distances of all pairs, and how large their shapes are."""
    parts = [(jax.vmap(_apart)(*g.shapes), jax.vmap(extent)(*g.shapes)) for g in placed_pairs(found, poses)]
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts)


def _apart(*shapes: Any) -> Separation:
    # How deep shapes are that overlap is not asked for.
    return separation(*shapes, everywhere=False)
