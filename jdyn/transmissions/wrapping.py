"""Shortest paths between two points around spheres and cylinders, and through rings.

All stand at the origin; the axis of a cylinder is z. A path is straight, touches the surface and is straight again.
Lengths are stationary in the points where it touches: what these move by changes a length by nothing.

Source: Garner, Pandy, The obstacle-set method for representing muscle paths in musculoskeletal models, Computer Methods
in Biomechanics and Biomedical Engineering 2000, with lengths in closed form; sides and rings as in MuJoCo (XML
reference, tendon).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.array.dot import dot
from jdyn.geometry.directions import length_and_unit, perpendicular, unit

Vector = Float[Array, "3"]
Planar = Float[Array, "2"]

# Steps of Newton's method to a point of a ring. From its guess four are enough in double precision.
ITERATIONS = 5


class WrappedPath(NamedTuple):
    """A path from one point to another.

    Attributes:
        length: [m].
        touches: Whether it touches the surface; it is straight, where not.
        points: Where it meets the surface, and where it leaves [m].
        directions: Unit vectors along the path at its start and at its end.
    """

    length: Scalar
    touches: Bool[Array, ""]
    points: Float[Array, "2 3"]
    directions: Float[Array, "2 3"]


class PlanarPath(NamedTuple):
    """The same in the plane of a circle, if it touches: with the lengths of the straight parts, and of all."""

    touches: Bool[Array, ""]
    length: Scalar
    straight: tuple[Scalar, Scalar]
    points: Float[Array, "2 2"]
    directions: Float[Array, "2 2"]


def straight_path(start: Vector, end: Vector) -> tuple[Scalar, Vector]:
    """Length of the straight path and its direction, zero for the way from a point to itself."""
    return length_and_unit(end - start)


def around_sphere(start: Vector, end: Vector, radius: Scalar, side: Vector | None, inside: bool) -> WrappedPath:
    """Path from `start` to `end` around a sphere, in the plane of the two points and its centre.

    Args:
        start, end: Two points [m]. The path is straight if one is within the sphere.
        radius: [m].
        side: A point on whose side the path passes [m]; None for the shorter way, which a straight path that touches
            nothing never leaves.
        inside: Whether the path goes through a ring of this radius, which is free to turn, and not around the sphere.
    """
    outside, ends = _outside((start, end), radius)
    axes = _axes_of_plane(*ends)
    path = _path((axes @ ends[0], axes @ ends[1]), radius, None if side is None else axes @ side, inside)
    touches = outside & path.touches
    return _where_it_touches(touches, start, end, path.length, path.points @ axes, path.directions @ axes)


def around_cylinder(start: Vector, end: Vector, radius: Scalar, side: Vector | None, inside: bool) -> WrappedPath:
    """Path from `start` to `end` around a cylinder without ends, a line on the surface that is rolled out; arguments
    are those of `around_sphere`."""
    outside, ends = _outside((start[:2], end[:2]), radius)
    path = _path(ends, radius, None if side is None else side[:2], inside)
    touches, climb = outside & path.touches, end[2] - start[2]
    length, (along, up) = length_and_unit(jnp.stack([path.length, climb]))
    first, last = path.straight
    whole = jnp.where(touches, path.length, 1)
    heights = jnp.stack([start[2] + climb * first / whole, end[2] - climb * last / whole])
    points = jnp.concatenate([path.points, heights[:, None]], axis=1)
    directions = jnp.concatenate([along * path.directions, jnp.broadcast_to(up, (2, 1))], axis=1)
    return _where_it_touches(touches, start, end, length, points, directions)


def _where_it_touches(touches, start, end, length, points, directions) -> WrappedPath:
    direct, direction = straight_path(start, end)
    directions = jnp.where(touches, directions, direction[None])
    return WrappedPath(jnp.where(touches, length, direct), touches, points, directions)


def _outside(ends: tuple[Array, Array], radius: Scalar) -> tuple[Bool[Array, ""], tuple[Array, Array]]:
    """Tell whether both ends are outside of the surface, with others in their place if not: near the centre their
    directions have no derivatives."""
    outside = jnp.all(jnp.stack([dot(x, x) for x in ends]) >= radius**2)
    start, end = (jnp.where(outside, x, 1) for x in ends)
    return outside, (start, end)


def _axes_of_plane(start: Vector, end: Vector) -> Float[Array, "2 3"]:
    """Axes of the plane of two points and the origin; the first one leads to `start`."""
    x, normal = unit(start), unit(jnp.cross(start, end))
    # Any plane will do if the points are on one line.
    normal = jnp.where(jnp.all(normal == 0), perpendicular(x), normal)
    return jnp.stack([x, jnp.cross(normal, x)])


def _path(ends: tuple[Planar, Planar], radius: Scalar, side: Planar | None, inside: bool) -> PlanarPath:
    return _through_ring(ends, radius) if inside else _around_circle(ends, radius, side)


# Around a circle.


def _around_circle(ends: tuple[Planar, Planar], radius: Scalar, side: Planar | None) -> PlanarPath:
    """Path around a circle. From an end at the distance d, lines touch it at cos β = r / d from the end's direction."""
    (start, towards_start), (end, towards_end) = (length_and_unit(x) for x in ends)
    turn = _angle(*ends) if side is None else _turn_on_side(side, *ends)
    sense = jnp.where(turn < 0, -1, 1).astype(turn.dtype)
    tangents = _tangent(start, radius), _tangent(end, radius)
    lags = [jnp.arctan2(tangent, radius) for tangent in tangents]
    touches = jnp.abs(turn) > lags[0] + lags[1]
    length = _detour(start, radius) + _detour(end, radius) + radius * jnp.abs(turn)
    touching = jnp.stack([_turned(towards_start, sense * lags[0]), _turned(towards_end, -sense * lags[1])])
    directions = sense * jnp.stack([-touching[:, 1], touching[:, 0]], axis=1)
    return PlanarPath(touches, length, tangents, radius * touching, directions)


def _turn_on_side(side: Planar, start: Planar, end: Planar) -> Scalar:
    """Angle from one end to the other that does not lead past the direction opposite to a side."""
    # The side chooses between two angles, and changes neither.
    side = jax.lax.stop_gradient(side)
    return _angle(side, end) - _angle(side, start)


def _tangent(distance: Scalar, radius: Scalar) -> Scalar:
    """Length of the tangents from a point to a circle."""
    square = (distance - radius) * (distance + radius)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


@jax.custom_jvp
def _detour(distance: Scalar, radius: Scalar) -> Scalar:
    """Length of a tangent to a circle less the arc that it spares, r (tan β − β)."""
    tangent = _tangent(distance, radius)
    return tangent - radius * jnp.arctan2(tangent, radius)


@_detour.defjvp
def _detour_jvp(x, dx):
    # The derivatives of both parts have poles on the circle, their sum has none.
    (distance, radius), (distance_dot, radius_dot) = x, dx
    tangent = _tangent(distance, radius)
    along = tangent / jnp.where(distance > 0, distance, 1) * distance_dot
    return _detour(distance, radius), along - jnp.arctan2(tangent, radius) * radius_dot


# Through a ring.


def _through_ring(ends: tuple[Planar, Planar], radius: Scalar) -> PlanarPath:
    """Shortest path by a point of a circle, if the straight path misses the circle: both parts make the same angle α
    with the radius there."""
    (start, direction), (end, _) = (length_and_unit(x) for x in ends)
    turn = _angle(*ends)
    lags = (jnp.arctan2(_tangent(distance, radius), radius) for distance in (start, end))
    touches = (start > radius) & (end > radius) & (jnp.abs(turn) < sum(lags))
    safe = jnp.where(touches, jnp.stack([radius / start, radius / end]), 0.5)
    turn = jnp.where(touches, turn, 0)
    incidence = _incidence(safe, turn)
    touching = _turned(direction, _lead(safe[0], incidence))
    point = radius * touching
    (first, inward), (last, outward) = length_and_unit(point - ends[0]), length_and_unit(ends[1] - point)
    points = jnp.stack([point, point])
    return PlanarPath(touches, first + last, (first, last), points, jnp.stack([inward, outward]))


def _lead(ratio: Array, incidence: Array) -> Array:
    """Angle about the centre between an end, whose distance is the radius over `ratio`, and the point of the ring."""
    return incidence - jnp.arcsin(ratio * jnp.sin(incidence))


def _incidence(ratios: Planar, turn: Scalar) -> Scalar:
    """Angle α for which both leads add up to the angle between the ends."""
    fixed, sought = jax.lax.stop_gradient((ratios, jnp.abs(turn)))
    half = sought / 2
    # Exact for ends at the same distance. Leads are convex: from above the root, no step goes beyond.
    root = jnp.arctan2(jnp.sin(half), jnp.cos(half) - jnp.mean(fixed))
    for _ in range(ITERATIONS):
        root = jnp.clip(_newton(fixed, sought, root), 0, jnp.pi / 2)
    # One more step has the derivative of the root.
    return _newton(ratios, turn, jnp.where(turn < 0, -root, root))


def _newton(ratios: Planar, turn: Scalar, angle: Scalar) -> Scalar:
    slopes = 1 - ratios * jnp.cos(angle) / jnp.sqrt(1 - (ratios * jnp.sin(angle)) ** 2)
    slope = jnp.maximum(jnp.sum(slopes), jnp.finfo(angle.dtype).eps)
    return angle - (jnp.sum(_lead(ratios, angle)) - turn) / slope


# Angles.


def _turned(direction: Planar, angle: Scalar) -> Planar:
    c, s = jnp.cos(angle), jnp.sin(angle)
    x, y = direction
    return jnp.stack([c * x - s * y, s * x + c * y])


def _angle(start: Planar, end: Planar) -> Scalar:
    """Angle from one vector to another, from -π to π; zero if one is zero."""
    sine, cosine = start[0] * end[1] - start[1] * end[0], dot(start, end)
    none = (sine == 0) & (cosine == 0)
    return jnp.arctan2(jnp.where(none, 0, sine), jnp.where(none, 1, cosine))
