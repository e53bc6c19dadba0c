"""Bounds on how fast shapes come nearer to each other, whatever way they turn."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Scalar

from jdyn.contact.colliders import GROUND, Colliders
from jdyn.contact.points import placed_pairs
from jdyn.dynamics.kinematics import per_dof
from jdyn.dynamics.paths import signs_on_paths
from jdyn.dynamics.relative_motion import RelativeMotion
from jdyn.geometry import Convex
from jdyn.geometry.bounds import bounds
from jdyn.spatial import Transform

# Times are found up to so many halvings of what they cannot exceed.
HALVINGS = 24
HALVED = 2.0**-HALVINGS


class Ball(NamedTuple):
    """A ball about a shape, or about the core of one that is within a radius of its core.

    Attributes:
        centre: [m].
        radius: [m].
    """

    centre: Float[Array, "*pairs 3"]
    radius: Float[Array, "*pairs"]


class Extent(NamedTuple):
    """Extent of two shapes.

    Attributes:
        ball: About the smaller one.
        thickness: Whoever passes through both moves by no less [m]; infinite for ground.
    """

    ball: Ball
    thickness: Float[Array, "*pairs"]


def extent(a: Any, X_a: Transform, b: Convex, X_b: Transform) -> Extent:
    """Find the extent of two shapes at their poses; the first one may be ground."""
    ball = about(b, X_b)
    if not isinstance(a, Convex):
        return Extent(ball, jnp.full_like(ball.radius, jnp.inf))
    other = about(a, X_a)
    smaller = jax.tree.map(lambda x, y: jnp.where(ball.radius <= other.radius, x, y), ball, other)
    return Extent(smaller, a.thickness + b.thickness)


def about(shape: Convex, X: Transform) -> Ball:
    """The ball about a shape's core."""
    lower, upper = bounds(shape, X)
    # Turning about a point of the core moves nothing that the rounding adds.
    return Ball((lower + upper) / 2, _length((upper - lower) / 2 - shape.rounding))


class Nearing(NamedTuple):
    """Bound on how fast two shapes come nearer to each other: by less than c s + K s² / 2 in a time s ≤ 1 / Ω.

    The larger shape sees the smaller one move, beyond a plane of its own, normal to the shortest way between them. The
    points of the smaller one come nearer at no more than the speed c now. With Ω the sum of the speeds at which joints
    between the two turn, and B the sum of the speeds that each of them gives to points of the smaller one, at most,
    accelerations are no more than 2 Ω B, since each of two joints turns what the other one moves; and as distances from
    the axes grow by B, B grows no faster than exp(Ω t). So K = 3 Ω B: 2 (eˣ − 1 − x) < 3/2 x² for x ≤ 1. What joints
    accelerate adds the sum of the accelerations that each of them gives to these points.

    Attributes:
        speed: c [m/s].
        growth: K [m/s²].
        turning: Ω [rad/s].
    """

    speed: Float[Array, " rows"]
    growth: Float[Array, " rows"]
    turning: Float[Array, " rows"]

    @classmethod
    def of(
        cls,
        motion: RelativeMotion,
        colliders: Colliders,
        v: Float[Array, " nv"],
        a: Float[Array, " nv"],
        ball: Ball,
        normal: Float[Array, "rows 3"],
        pair: Int[np.ndarray, " rows"] | None = None,
        numbers: Any = None,
    ) -> "Nearing":
        """Bounds of pairs that move.

        Args:
            motion: Of the pairs.
            colliders: The shapes.
            v, a: Velocity of the model, and how it changes.
            ball: Of each pair, about the smaller shape.
            normal: Of each row, from the first shape to the second.
            pair: Of each row; if left out, rows are pairs.
            numbers: Of the pairs; if left out, they are all of the colliders.
        """
        (turning, fastest), (_, faster) = _turning_and_moving(motion, ends(colliders), ball, (v, a), numbers)
        growth = 3 * turning * fastest + faster
        rows = growth, turning, motion.twists(v), ball.centre - motion.origin[None], ball.radius
        growth, turning, *relative = rows if pair is None else jax.tree.map(lambda x: x[pair], rows)
        return cls(jnp.maximum(_closing(normal, *relative), 0), growth, turning)

    def time(self, way: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """Least time to come nearer by so much [s]."""
        # Infinite where nothing moves.
        return jnp.minimum(2 * way / (self.speed + jnp.sqrt(self.speed**2 + 2 * self.growth * way)), 1 / self.turning)


class NearingWithin(NamedTuple):
    """Bound on how fast two shapes come nearer to each other while the accelerations of coordinates are bounded.

    As in `Nearing`, where coordinates have constant velocities. Within a time h, joints between the two turn no faster
    than Ω + Ω' h, and give points of the smaller shape no more than β = B + B' h, but for what axes move away: by no
    more than P, P' ≤ β + (Ω + Ω' h) P. Accelerations are no more than B' + Ω' P + 2 (Ω + Ω' h) P', which integrates to
    less than K s² / 2 for s ≤ h, (Ω + Ω' h) h ≤ 1, with K = B' + 3 (Ω + Ω' h) β + 0.44 Ω' h β: 2 (eˣ − 1 − x) < 3/2 x²
    and eˣ − 1 − x − x²/2 < 0.22 x³ for x ≤ 1.

    Attributes:
        speed: c, at which they come nearer now, at most; negative where they leave [m/s].
        turning: Ω [rad/s].
        turning_growth: Ω' [rad/s²].
        moving: B [m/s].
        moving_growth: B' [m/s²].
    """

    speed: Float[Array, " rows"]
    turning: Float[Array, " rows"]
    turning_growth: Float[Array, " rows"]
    moving: Float[Array, " rows"]
    moving_growth: Float[Array, " rows"]

    @classmethod
    def of(
        cls,
        motion: RelativeMotion,
        bodies: tuple[Sequence[int], Sequence[int]],
        v: Float[Array, " nv"],
        accelerations: Float[Array, " nv"],
        ball: Ball,
        normal: Float[Array, "rows 3"],
    ) -> "NearingWithin":
        """Bounds of pairs.

        Args:
            motion: Of the pairs.
            bodies: Of the first shapes and of the second ones.
            v: Velocity of the model.
            accelerations: Largest size of the acceleration of each coordinate.
            ball: Of each pair, about the smaller shape.
            normal: Of each pair, from the first shape to the second.
        """
        now, later = _turning_and_moving(motion, bodies, ball, (v, accelerations))
        (turning, moving), (turning_growth, moving_growth) = now, later
        speed = _closing(normal, motion.twists(v), ball.centre - motion.origin[None], ball.radius)
        return cls(speed, turning, turning_growth, moving, moving_growth)

    def moved(self, h: Scalar) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
        """Bounds on how far points move within a time, and how far from where constant velocities lead them [m]."""
        turned = (self.turning + self.turning_growth * h) * h
        some = turned > 0
        longer = jnp.where(some, jnp.expm1(turned) / jnp.where(some, turned, 1), 1)
        moving = (self.moving + self.moving_growth * h) * h
        return jnp.where(moving > 0, moving * longer, 0), jnp.where(turned <= 1, self.growth(h) * h**2 / 2, jnp.inf)

    def growth(self, h: Float[ArrayLike, "*rows"]) -> Float[Array, " rows"]:
        """K within a time [m/s²]."""
        most = self.moving + self.moving_growth * h
        turning = 3 * (self.turning + self.turning_growth * h) + 0.44 * self.turning_growth * h
        return self.moving_growth + turning * most

    def time(self, way: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """Least time to come nearer by so much, or a little less [s]; infinite where nothing moves."""
        # What no answer exceeds: without growth, and where joints turn by a radian.
        alone = earliest(way, self.speed, self.growth(0.0))
        most = jnp.minimum(alone, earliest(jnp.ones_like(way), self.turning, 2 * self.turning_growth))
        known = jnp.isfinite(most)

        def halve(_, ends):
            low, high = ends
            h = (low + high) / 2
            turned = (self.turning + self.turning_growth * h) * h
            safe = (turned <= 1) & (self.speed * h + self.growth(h) * h**2 / 2 <= way)
            return jnp.where(safe, h, low), jnp.where(safe, high, h)

        high = jnp.where(known, most, 1) * (1 + HALVED)
        low, _ = jax.lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(high), high))
        return jnp.where(known, low, jnp.inf)


def earliest(
    distance: Float[Array, " rows"], speed: Float[Array, " rows"], acceleration: Float[Array, " rows"]
) -> Float[Array, " rows"]:
    """Find when c s + K s² / 2 is a distance; zero where there is none, and infinite where nothing closes it."""
    apart = distance > 0
    closes = apart & ((acceleration > 0) | (speed > 0))
    root = jnp.sqrt(jnp.where(closes, speed**2 + 2 * acceleration * distance, 1))
    # Of both forms of the root, the one without a difference.
    leaves = speed < 0
    near = 2 * distance / jnp.where(closes & ~leaves, speed + root, 1)
    far = (root - speed) / jnp.where(closes & leaves, acceleration, 1)
    return jnp.where(closes, jnp.where(leaves, far, near), jnp.where(apart, jnp.inf, 0))


def time_to_pass(
    motion: RelativeMotion,
    colliders: Colliders,
    v: Float[Array, " nv"],
    a: Float[Array, " nv"],
    apart: Any,
    pair: Int[np.ndarray, " rows"] | None = None,
    numbers: Any = None,
    looks: int = 1,
) -> Scalar:
    """Longest step in which no shape passes through another unseen [s].

    A step that is shorter than it takes to come nearer by the distance and half of what both shapes are thick ends
    before the other side. So does each part of one between two looks, if it is shorter than it takes to go through
    that half. Ground has no other side.

    Args:
        motion, colliders, v, a, pair, numbers: As for `Nearing.of`.
        apart: Distances and normals of rows, as far as they have a point.
        looks: At so many places of a step, evenly spaced, it is seen what touches.
    """
    if all(colliders.entries[first].kind in GROUND for first, _ in colliders.pairs):
        return jnp.full((), jnp.inf, v.dtype)
    parts = [jax.vmap(extent)(*group.shapes) for group in placed_pairs(colliders, motion.poses)]
    ball, thickness = jax.tree.map(lambda *x: jnp.concatenate(x), *parts)
    half = (thickness if pair is None else thickness[pair]) / 2
    nearing = Nearing.of(motion, colliders, v, a, ball, apart.normal, pair, numbers)
    through = (half > 0) & jnp.isfinite(half) & apart.exists
    half, distance = jnp.where(through, half, 1), jnp.where(through, jnp.maximum(apart.distance, 0), 1)
    longest = jnp.maximum(nearing.time(distance + half), looks * nearing.time(half))
    return jnp.min(jnp.where(through, longest, jnp.inf), initial=jnp.inf)


def ends(colliders: Colliders) -> tuple[list[int], list[int]]:
    """Bodies of the first and of the second shapes of pairs."""
    return colliders.bodies(0), colliders.bodies(1)


def _closing(
    normal: Float[Array, "rows 3"],
    twist: Float[Array, "rows 6"],
    arms: Float[Array, "rows 3"],
    radius: Float[Array, " rows"],
) -> Float[Array, " rows"]:
    """Speed at which points of balls come nearer along a normal, at most [m/s]."""
    w, u = jnp.split(twist, 2, axis=1)
    leaving = jnp.sum(normal * (u + jnp.cross(w, arms)), axis=1)
    return _length(jnp.cross(w, normal)) * radius - leaving


def _turning_and_moving(
    motion: RelativeMotion,
    bodies: tuple[Sequence[int], Sequence[int]],
    ball: Ball,
    rates: Sequence[Float[Array, " nv"]],
    numbers: Any = None,
) -> list[tuple[Float[Array, " pairs"], Float[Array, " pairs"]]]:
    """Sums over the joints between two shapes, by rates of coordinates: of how fast each turns, and of what it gives to
    points of the smaller shape, at most."""
    between = jnp.asarray(np.abs(signs_on_paths(motion.model, *bodies)), motion.columns.dtype)
    between = between if numbers is None else between[numbers]
    # Joints turn about axes through the origins of the bodies that they carry.
    origins = motion.poses.translation[per_dof(motion.model, np.arange(motion.model.nb))]
    reach = _length(ball.centre[:, None] - origins[None]) + ball.radius[:, None]

    def sums(rates):
        turning, moving = jnp.split(motion.model.expand_velocity(rates)[:, None] * motion.columns, 2, axis=1)
        turns, slides = _length(turning), _length(moving + jnp.cross(turning, origins - motion.origin[None]))
        return between @ turns, jnp.sum(between * (slides[None] + turns[None] * reach), axis=1)

    return [sums(each) for each in rates]


def _length(x: Float[Array, "*rows 3"]) -> Float[Array, "*rows"]:
    return jnp.sqrt(jnp.sum(x**2, axis=-1))
