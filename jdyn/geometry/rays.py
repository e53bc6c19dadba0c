"""Places where rays meet shapes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import Structure
from jdyn.array.dot import dot
from jdyn.geometry.directions import length_and_unit, unit
from jdyn.geometry.height_field import HeightField
from jdyn.geometry.hull import ConvexHull
from jdyn.geometry.shapes import Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Plane, Sphere


class RayHit(Structure):
    """The place where a ray meets a shape.

    Attributes:
        distance: From the origin of the ray [m]; infinite where it meets nothing.
        normal: Unit normal of the surface there, out of the shape; zero where the ray meets nothing.
    """

    distance: Float[Array, "*rays"]
    normal: Float[Array, "*rays 3"]


class Span(NamedTuple):
    """The part of a line that is within a convex set: from infinite to minus infinite if none is.

    Attributes:
        start, end: Distances along the line, infinite where the set has no end [m].
        start_normal, end_normal: Normals there, out of the set.
    """

    start: Scalar
    end: Scalar
    start_normal: Float[Array, "3"]
    end_normal: Float[Array, "3"]


def ray_hit(shape: Any, origin: Float[Array, "3"], direction: Float[Array, "3"]) -> RayHit:
    """The first place where a ray meets the surface of a shape.

    A ray that starts within a bounded shape or a height field meets the surface on its way out. Half-spaces are met
    from above alone, and a `Plane` within its sides. A height field is made of its triangles, and of walls below its
    border.

    >>> from jdyn.geometry import Box, ray_hit
    >>> hit = ray_hit(Box(jnp.ones(3)), jnp.array([2.0, 0.0, 0.0]), jnp.array([-1.0, 0.0, 0.0]))
    >>> print(hit.distance, hit.normal + 0.0)
    1.5 [1. 0. 0.]

    Derivatives of both modes are those of the face that the ray meets; zero where it meets nothing or only touches the
    shape, where the true ones have no limit. None is NaN.

    Args:
        shape: One of `jdyn.geometry`.
        origin: In the frame of the shape [m].
        direction: Unit vector in the frame of the shape.

    Raises:
        ValueError: if the shape is none of these.

    Source: Kay and Kajiya 1986 for intersections of slabs.
    """
    if isinstance(shape, HalfSpace):
        found = _of_half_space(shape, origin, direction)
    elif isinstance(shape, HeightField):
        found = _of_field(shape, origin, direction)
    else:
        found = _first(_span(shape, origin, direction))
    # What is not a number is not a miss.
    distance = jnp.where(jnp.isnan(jnp.sum(origin) + jnp.sum(direction)), jnp.nan, found.distance)
    return RayHit(distance, found.normal)


def _span(shape: Any, origin: Float[Array, "3"], direction: Float[Array, "3"]) -> Span:
    match shape:
        case Sphere():
            return _within_ball(shape.radius, origin, direction)
        case Ellipsoid():
            span = _within_ball(jnp.ones_like(shape.radii[0]), origin / shape.radii, direction / shape.radii)
            normals = (unit(normal / shape.radii) for normal in (span.start_normal, span.end_normal))
            return Span(span.start, span.end, *normals)
        case Box():
            x, y, z = (_between_planes(shape.sides[axis] / 2, axis, origin, direction) for axis in range(3))
            return _both(_both(x, y), z)
        case Cylinder():
            return _within_cylinder(shape, origin, direction)
        case Capsule():
            middle = _within_cylinder(shape, origin, direction)
            first, second = (_within_ball(shape.radius, origin - end, direction) for end in shape.ends)
            return _either(_either(first, second), middle)
        case ConvexHull():
            return _within_hull(shape, origin, direction)
        case _:
            raise ValueError(f"ray_hit: shape: expected a shape of jdyn.geometry, got {type(shape).__name__}")


def _first(span: Span) -> RayHit:
    """The start of a span, or the end for an origin within."""
    from_outside, from_inside = span.start >= 0, (span.start < 0) & (span.end >= 0)
    distance = jnp.where(from_outside, span.start, jnp.where(from_inside, span.end, jnp.inf))
    normal = jnp.where(from_outside, span.start_normal, span.end_normal)
    return RayHit(distance, jnp.where(jnp.isfinite(distance), normal, 0))


def _both(a: Span, b: Span) -> Span:
    """The intersection of two convex sets."""
    later, earlier = b.start > a.start, b.end < a.end
    start, end = jnp.where(later, b.start, a.start), jnp.where(earlier, b.end, a.end)
    empty = start > end
    return Span(
        jnp.where(empty, jnp.inf, start), jnp.where(empty, -jnp.inf, end),
        jnp.where(later, b.start_normal, a.start_normal), jnp.where(earlier, b.end_normal, a.end_normal),
    )  # fmt: skip


def _either(a: Span, b: Span) -> Span:
    """The union of two convex sets, if it is convex."""
    earlier, later = b.start < a.start, b.end > a.end
    return Span(
        jnp.where(earlier, b.start, a.start), jnp.where(later, b.end, a.end),
        jnp.where(earlier, b.start_normal, a.start_normal), jnp.where(later, b.end_normal, a.end_normal),
    )  # fmt: skip


def _moves(rate: Float[Array, "..."]) -> Bool[Array, "..."]:
    """Tell whether a component of a unit vector is more than rounding: what divides by less has no digit."""
    return jnp.abs(rate) > 16 * jnp.finfo(rate.dtype).eps


def _ends(moves: Bool[Array, ""], inside: Bool[Array, ""], start: Scalar, end: Scalar) -> tuple[Array, Array]:
    """Start and end for a ray that moves; all or nothing for one that is at rest."""
    always = jnp.where(inside, jnp.inf, -jnp.inf)
    return jnp.where(moves, start, -always), jnp.where(moves, end, always)


def _between_planes(half: Scalar, axis: int, origin: Float[Array, "3"], direction: Float[Array, "3"]) -> Span:
    """The span within half a distance of the middle along an axis."""
    place, rate = origin[axis], direction[axis]
    moves, sign = _moves(rate), jnp.where(rate < 0, -1, 1).astype(rate.dtype)
    divisor = jnp.where(moves, rate, 1)
    start, end = (-sign * half - place) / divisor, (sign * half - place) / divisor
    normal = sign * (jnp.arange(3) == axis).astype(rate.dtype)
    return Span(*_ends(moves, jnp.abs(place) <= half, start, end), -normal, normal)


def _within_ball(radius: Scalar, origin: Float[Array, " n"], direction: Float[Array, " n"]) -> Span:
    """The span in a ball, or in a circle of the plane across z; the direction may have any length."""
    speed, forwards = length_and_unit(direction)
    along = dot(origin, forwards)
    aside = origin - along * forwards
    square = radius**2 - dot(aside, aside)
    moves, touches = _moves(speed), square >= 0
    half = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
    divisor = jnp.where(moves, speed, 1)
    start, end = (-along - half) / divisor, (-along + half) / divisor
    normals = (jnp.zeros(3, origin.dtype).at[: len(origin)].set(unit(aside + way * forwards)) for way in (-half, half))
    start = jnp.where(touches, start, jnp.inf)
    end = jnp.where(touches, end, -jnp.inf)
    return Span(*_ends(moves, dot(origin, origin) <= radius**2, start, end), *normals)


def _within_cylinder(shape: Cylinder | Capsule, origin: Float[Array, "3"], direction: Float[Array, "3"]) -> Span:
    around = _within_ball(shape.radius, origin[:2], direction[:2])
    return _both(around, _between_planes(shape.length / 2, 2, origin, direction))


def _within_hull(hull: ConvexHull, origin: Float[Array, "3"], direction: Float[Array, "3"]) -> Span:
    first, second, third = (hull.vertices[hull.faces[:, k]] for k in range(3))
    normals = jax.vmap(lambda a, b: unit(jnp.cross(a, b)))(second - first, third - first)
    above = jnp.sum(normals * (origin[None] - first), axis=1)
    rates = jnp.sum(normals * direction[None], axis=1)
    moves = _moves(rates)
    times = -above / jnp.where(moves, rates, 1)
    start = jnp.argmax(jnp.where(moves & (rates < 0), times, -jnp.inf))
    end = jnp.argmin(jnp.where(moves & (rates > 0), times, jnp.inf))
    # A ray at rest meets no face, and its span is all or nothing.
    crosses = jnp.any(moves & (rates < 0)) & jnp.any(moves & (rates > 0))
    beside, inside = jnp.any(~moves & (above > 0)), jnp.all(above <= 0)
    empty = beside | (crosses & (times[start] > times[end]))
    ends = _ends(crosses, inside, times[start], times[end])
    return Span(jnp.where(empty, jnp.inf, ends[0]), jnp.where(empty, -jnp.inf, ends[1]), normals[start], normals[end])


def _of_half_space(shape: HalfSpace, origin: Float[Array, "3"], direction: Float[Array, "3"]) -> RayHit:
    falls = _moves(direction[2]) & (direction[2] < 0)
    distance = origin[2] / jnp.where(falls, -direction[2], 1)
    met = falls & (distance >= 0)
    if isinstance(shape, Plane):
        place = origin[:2] + distance * direction[:2]
        met &= jnp.all((jnp.abs(place) <= shape.sides / 2) | (shape.sides <= 0))
    up = jnp.array([0, 0, 1], direction.dtype)
    return RayHit(jnp.where(met, distance, jnp.inf), jnp.where(met, up, 0))


def _of_field(field: HeightField, origin: Float[Array, "3"], direction: Float[Array, "3"]) -> RayHit:
    """The triangle is found by where the ray crosses lines of the grid, between which all is straight."""
    x, y = (_between_planes(field.sides[axis] / 2, axis, origin, direction) for axis in range(2))
    over = _both(x, y)
    found = _crossing(*jax.lax.stop_gradient((field, origin, direction, over)))
    corners = field.triangles(found.cell)[found.triangle]
    normal = unit(jnp.cross(corners[1] - corners[0], corners[2] - corners[0]))
    rate = dot(normal, direction)
    moves = _moves(rate)
    on_triangle = jnp.where(moves, dot(normal, corners[0] - origin) / jnp.where(moves, rate, 1), found.time)
    # Rounding may put what begins on the surface behind the origin.
    on_triangle = jnp.where(on_triangle < 0, 0, on_triangle)
    distance = jnp.where(found.kind == _SURFACE, on_triangle, jnp.where(found.kind == _ENTRY, over.start, over.end))
    distance = jnp.where(found.kind == _NOTHING, jnp.inf, distance)
    wall = jnp.where(found.kind == _ENTRY, over.start_normal, over.end_normal)
    normal = jnp.where(found.kind == _SURFACE, normal, wall)
    return RayHit(distance, jnp.where(jnp.isfinite(distance), normal, 0))


_NOTHING, _SURFACE, _ENTRY, _EXIT = range(4)


class _Crossing(NamedTuple):
    """The first part of a height field that a ray meets.

    Attributes:
        kind: `_NOTHING`, `_SURFACE`, or a wall, from outside at the `_ENTRY` or from below the surface at the `_EXIT`.
        cell, triangle: Numbers of the triangle.
        time: About where [m].
    """

    kind: Int[Array, ""]
    cell: Int[Array, ""]
    triangle: Int[Array, ""]
    time: Scalar


def _crossing(field: HeightField, origin: Float[Array, "3"], direction: Float[Array, "3"], over: Span) -> _Crossing:
    # The ray from where it comes over the field to where it leaves it, or is above or below all heights.
    rises = _moves(direction[2])
    beyond = jnp.where(direction[2] < 0, jnp.min(field.heights) - 1, jnp.max(field.heights) + 1) - origin[2]
    clear = jnp.where(rises, beyond / jnp.where(rises, direction[2], 1), jnp.inf)
    meets = (over.start <= over.end) & (over.end >= 0)
    start = jnp.where(meets, jnp.maximum(over.start, 0), 0)
    end = jnp.where(meets, jnp.minimum(over.end, jnp.maximum(clear, start)), 0)
    end = jnp.where(jnp.isfinite(end), end, start)
    times = jnp.sort(jnp.clip(jnp.concatenate([_lines(field, origin, direction), start[None], end[None]]), start, end))

    def cell_and_step(place):
        """The cell of a place and the part of the cell's sides that is before it."""
        count = jnp.array(field.heights.shape[::-1]) - 1
        steps = (place + field.sides / 2) / field.sides * count.astype(place.dtype)
        cell = jnp.clip(jnp.floor(steps).astype(count.dtype), 0, count - 1)
        return cell, steps - cell.astype(steps.dtype)

    def above(time):
        place = jnp.clip(origin[:2] + time * direction[:2], -field.sides / 2, field.sides / 2)
        return origin[2] + time * direction[2] - field.surface(place)[0] >= 0

    upper = jax.vmap(above)(times)
    changes = upper[1:] != upper[:-1]
    first = jnp.argmax(changes)
    middle = (times[first] + times[first + 1]) / 2
    cell, within = cell_and_step(origin[:2] + middle * direction[:2])
    enters_wall = ~upper[0] & (over.start > 0)
    leaves_wall = ~upper[-1] & (over.end < jnp.inf)
    kind = jnp.where(jnp.any(changes), _SURFACE, jnp.where(leaves_wall, _EXIT, _NOTHING))
    kind = jnp.where(meets, jnp.where(enters_wall, _ENTRY, kind), _NOTHING)
    number = cell[1] * (field.heights.shape[1] - 1) + cell[0]
    return _Crossing(kind, number, (within[0] < within[1]).astype(number.dtype), middle)


def _lines(field: HeightField, origin: Float[Array, "3"], direction: Float[Array, "3"]) -> Float[Array, " lines"]:
    """Times at which a ray crosses lines of the grid along y, along x and along the diagonals of cells; 0 for those
    that it never does."""
    rows, columns = field.heights.shape
    cells = jnp.array([columns - 1, rows - 1], origin.dtype)
    place = (origin[:2] + field.sides / 2) / field.sides * cells
    rate = direction[:2] / field.sides * cells

    def crossings(numbers, start, rate):
        moves = rate != 0
        times = (jnp.asarray(numbers, origin.dtype) - start) / jnp.where(moves, rate, 1)
        return jnp.where(moves & jnp.isfinite(times), times, 0)

    return jnp.concatenate(
        [
            crossings(range(columns), place[0], rate[0]),
            crossings(range(rows), place[1], rate[1]),
            crossings(range(1 - rows, columns), place[0] - place[1], rate[0] - rate[1]),
        ]
    )
