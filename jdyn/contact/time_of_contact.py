"""When the shapes of a robot touch first that moves at a constant velocity, or along a known motion."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Scalar

from jdyn.array import Structure, shaped
from jdyn.contact.colliders import GROUND, Colliders, by_kinds, colliders
from jdyn.contact.earliest_contact import asked_pairs, distances_and_extents
from jdyn.contact.nearing import Nearing, NearingWithin, earliest, ends, time_to_pass
from jdyn.dynamics import forward_kinematics
from jdyn.dynamics.relative_motion import RelativeMotion
from jdyn.model import Model, checked
from jdyn.model.model import compiled

# From √ε on, distances are zero up to rounding after so many.
GUESSES = 6


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
    found = asked_pairs(model, pairs, "time_of_contact")
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
        return _gap(model, found, model.integrate(q, t * v))

    return _touched(gap, jnp.where(touching, t, 0), touching, t, horizon)


def _touched(
    gap: Callable[[Scalar], Scalar], near: Scalar, touching: Bool[Array, ""], t: Scalar, horizon: Scalar
) -> Scalar:
    """Time of touch before the horizon, from one next to it if shapes are `touching`, where a search came to t.

    One step of Newton's method takes the distance from √ε to rounding, and has the derivatives of the solution.
    """
    distance, slope = jax.jvp(gap, (near,), (jnp.ones_like(near),))
    slope = jax.lax.stop_gradient(slope)
    approaching = touching & (slope < 0) & (distance > 0)
    touched = near + jnp.where(approaching, -distance / jnp.where(approaching, slope, 1), 0)
    never = jnp.where(t >= horizon, jnp.inf, jnp.nan)
    return jnp.where(touching, jnp.where(touched < horizon, touched, jnp.inf), never)


def _gap(model: Model, found: Colliders, q: Float[Array, " nq"]) -> Scalar:
    """Distance of the nearest pair."""
    distance = distances_and_extents(found, forward_kinematics(model, q))[0].distance
    return distance[jnp.argmin(distance)]


def _advanced(model, found, q, v, horizon, max_rounds):
    """The time at which two shapes are nearer than √ε, and whether there are such; otherwise how far it is sure that
    there are none."""

    def look(t):
        motion = RelativeMotion.at(model, found.paths(model), model.integrate(q, t * v))
        apart, extent = distances_and_extents(found, motion.poses)
        nearing = Nearing.of(motion, found, v, 0 * v, extent.ball, apart.normal)
        return apart.distance, nearing.time(apart.distance)

    t, touching, _, _ = _advanced_by(look, horizon, max_rounds)
    return t, touching


def _advanced_by(look, horizon, max_rounds):
    """Advance to where two shapes are nearer than √ε, by looks that find distances of pairs, and how long each cannot
    touch: the time, whether there are such, the nearest pair, and the number of looks."""
    near = jnp.sqrt(jnp.finfo(horizon.dtype).eps)

    def going(carry):
        t, touching, _, rounds = carry
        return ~touching & (t < horizon) & (rounds < max_rounds)

    def advance(carry):
        t, _, _, rounds = carry
        distance, safe = look(t)
        touching = jnp.min(distance) <= near
        nearest = jnp.argmin(distance).astype(jnp.int32)
        return jnp.where(touching, t, t + jnp.min(safe)), touching, nearest, rounds + 1

    none = jnp.zeros((), jnp.int32)
    return jax.lax.while_loop(going, advance, (jnp.zeros_like(horizon), jnp.zeros((), bool), none, none))


class FirstContact(Structure):
    """Result of `first_contact`.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> model = jdyn.with_ground(builder.build())
    >>> found = jdyn.contact.first_contact(model, lambda t: jnp.array([1.1 - 2.0 * t]), 1.0, 0.0)
    >>> print(found.time.round(3), found.names[found.pair], found.rounds)
    0.5 ('ground', 'ball') 2

    Attributes:
        names: The two shapes of each pair that was looked at.
        time: When shapes touch first [s], as `time_of_contact` has it.
        earliest: Until then nothing touches, for certain [s]: shapes are nearer than √ε there, or it is the horizon, or
            how far `max_rounds` have come.
        pair: Number of the pair that is nearest at that time.
        rounds: How often all distances were computed to find it.
    """

    names: tuple[tuple[str, str], ...] = eqx.field(static=True)
    time: Scalar
    earliest: Scalar
    pair: Int[Array, ""]
    rounds: Int[Array, ""]


def first_contact(
    model: Model,
    motion: Callable[[Scalar], Any],
    horizon: ArrayLike,
    accelerations: ArrayLike,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    max_rounds: int = 1000,
) -> FirstContact:
    """Find when shapes touch first along a known motion: a polynomial, a reference, a trajectory between its rows.

    Nothing is missed: time advances by no more than what cannot bring any pair together, by bounds on speeds now and on
    accelerations. From there the time of touch is found by bisection, whose guesses use how fast the distance changes
    and how that accelerates. First derivatives of `time` in both modes are those of the solution by the implicit
    function theorem, see `time_of_contact`.

    >>> builder = jdyn.Builder("ball above plate")
    >>> builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> builder.add_shape("world", "box", (1, 1, 1e-3), placement=(0, 0, -5e-4), role="collision", name="plate")
    >>> def falling(t):
    ...     return jnp.array([10.1 - 9.81 * t**2 / 2])
    >>> found = jdyn.contact.first_contact(builder.build(), falling, 2.0, 9.81)
    >>> print(found.time.round(4), found.rounds < 30, found.names[found.pair])
    1.4278 True ('ball', 'plate')

    Args:
        model: The mechanism.
        motion: `t -> q`, or a tuple that begins with q, as `jdyn.control.Reference` and `Trajectory.interpolate` return
            it; differentiable. Velocities are those of q.
        horizon: How long to look, from zero on [s].
        accelerations: Largest size of the acceleration of each coordinate on the way [rad/s² or m/s²], a scalar or
            shape (nv,). If they are larger, a touch may be missed.
        pairs: Names of two collision shapes for each pair to look at; all that may touch if left out.
        max_rounds: Most evaluations of all distances.

    Raises:
        ValueError: as `time_of_contact`.

    Source: Mirtich 1996, section 2.3, for conservative advancement; Baraff 1992 for accelerations in the search, after
    Cloutier 1995, section 6.2. The bounds are those of `NearingWithin`.
    """
    found = asked_pairs(model, pairs, "first_contact")
    return FirstContact(found.names, *_first_contact(model, found, motion, horizon, accelerations, max_rounds))


@compiled
def _first_contact(model, found, motion, horizon, accelerations, max_rounds):
    horizon = jnp.asarray(horizon, model.dtype)
    accelerations = shaped("accelerations", accelerations, horizon.dtype, (), (model.nv,), owner=model.name)
    most = jnp.broadcast_to(accelerations, (model.nv,))
    if not found.pairs:
        none = jnp.zeros((), jnp.int32)
        return jnp.full_like(horizon, jnp.inf), horizon, none, none

    def configuration(t):
        told = motion(t)
        return checked(model, q=told[0] if isinstance(told, tuple) else told)[0]

    # With what the motion closes over as leaves, of which the search takes no derivative.
    way = eqx.filter_closure_convert(configuration, horizon)
    arrays, rest = eqx.partition((model, found, way, horizon, most), eqx.is_array)
    frozen, shapes, frozen_way, end, bound = eqx.combine(jax.lax.stop_gradient(arrays), rest)

    def look(t):
        q = frozen_way(t)
        v = jax.jvp(lambda t: frozen.difference(q, frozen_way(t)), (t,), (jnp.ones_like(t),))[1]
        relative = RelativeMotion.at(frozen, shapes.paths(frozen), q)
        apart, sizes = distances_and_extents(shapes, relative.poses)
        nearing = NearingWithin.of(relative, ends(shapes), v, bound, sizes.ball, apart.normal)
        return apart.distance, nearing.time(apart.distance)

    t, touching, pair, rounds = _advanced_by(look, end, max_rounds)
    near = _bisected(lambda t: _gap(frozen, shapes, frozen_way(t)), jnp.where(touching, t, 0), end)
    time = _touched(lambda t: _gap(model, found, way(t)), jax.lax.stop_gradient(near), touching, t, end)
    return time, jnp.minimum(t, end), pair, rounds


def _bisected(gap, t, end):
    """The last time before shapes touch, or nearly, from a time at which they nearly do."""

    def slopes(t):
        return jax.jvp(gap, (t,), (jnp.ones_like(t),))

    def guess(_, state):
        low, high, distance, slope, growth = state
        # When the distance is zero, if it changes as it does now: c s + K s² / 2 = d.
        way = earliest(distance, -slope, jnp.maximum(-growth, 0))
        there = low + jnp.where(jnp.isfinite(way), way, 0)
        there = jnp.where(there < high, there, (low + high) / 2)
        then, slope_then = slopes(there)
        apart, moved = then > 0, there > low
        growth = jnp.where(moved, (slope_then - slope) / jnp.where(moved, there - low, 1), growth)
        low, distance, slope = (
            jnp.where(apart, x, y) for x, y in ((there, low), (then, distance), (slope_then, slope))
        )
        return low, jnp.where(apart, high, there), distance, slope, growth

    start = (t, end, *slopes(t), jnp.zeros_like(t))
    return jax.lax.fori_loop(0, GUESSES, guess, start)[0]


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
    return time_to_pass(motion, found, v, a, distances_and_extents(found, motion.poses)[0], looks=looks)
