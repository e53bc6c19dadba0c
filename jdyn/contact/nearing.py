"""Bounds on how fast shapes come nearer to each other, whatever way they turn."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Scalar

from jdyn.contact.colliders import GROUND, Colliders
from jdyn.contact.points import placed_pairs
from jdyn.dynamics.kinematics import per_dof
from jdyn.dynamics.paths import signs_on_paths
from jdyn.dynamics.relative_motion import RelativeMotion
from jdyn.geometry import Convex
from jdyn.geometry.bounds import bounds
from jdyn.spatial import Transform


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
    ball = _about(b, X_b)
    if not isinstance(a, Convex):
        return Extent(ball, jnp.full_like(ball.radius, jnp.inf))
    other = _about(a, X_a)
    smaller = jax.tree.map(lambda x, y: jnp.where(ball.radius <= other.radius, x, y), ball, other)
    return Extent(smaller, a.thickness + b.thickness)


def _about(shape: Convex, X: Transform) -> Ball:
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
        between = jnp.asarray(np.abs(signs_on_paths(motion.model, colliders.bodies(0), colliders.bodies(1))), v.dtype)
        between = between if numbers is None else between[numbers]
        # Joints turn about axes through the origins of the bodies that they carry.
        origins = motion.poses.translation[per_dof(motion.model, np.arange(motion.model.nb))]
        reach = _length(ball.centre[:, None] - origins[None]) + ball.radius[:, None]

        def turning_and_moving(rates):
            turning, moving = jnp.split(motion.model.expand_velocity(rates)[:, None] * motion.columns, 2, axis=1)
            turns, slides = _length(turning), _length(moving + jnp.cross(turning, origins - motion.origin[None]))
            return between @ turns, jnp.sum(between * (slides[None] + turns[None] * reach), axis=1)

        (turning, fastest), (_, faster) = turning_and_moving(v), turning_and_moving(a)
        growth, w_and_u, arms = 3 * turning * fastest + faster, motion.twists(v), ball.centre - motion.origin[None]
        rows = growth, turning, w_and_u, arms, ball.radius
        growth, turning, w_and_u, arms, radius = rows if pair is None else jax.tree.map(lambda x: x[pair], rows)
        w, u = jnp.split(w_and_u, 2, axis=1)
        leaving = jnp.sum(normal * (u + jnp.cross(w, arms)), axis=1)
        return cls(jnp.maximum(_length(jnp.cross(w, normal)) * radius - leaving, 0), growth, turning)

    def time(self, way: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """Least time to come nearer by so much [s]."""
        # Infinite where nothing moves.
        return jnp.minimum(2 * way / (self.speed + jnp.sqrt(self.speed**2 + 2 * self.growth * way)), 1 / self.turning)


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


def _length(x: Float[Array, "*rows 3"]) -> Float[Array, "*rows"]:
    return jnp.sqrt(jnp.sum(x**2, axis=-1))
