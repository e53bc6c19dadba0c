"""The distance of a shape from a height field."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Scalar

from jdyn.array.dot import dot
from jdyn.geometry.argmin import first_of_least
from jdyn.geometry.bounds import Bounds, bounds
from jdyn.geometry.directions import unit
from jdyn.geometry.distance import separation
from jdyn.geometry.height_field import HeightField
from jdyn.geometry.hull import ConvexHull, hull_tables
from jdyn.geometry.lanes import in_turn_on_cpus
from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Convex, Sphere
from jdyn.spatial import Transform

Triangle = Float[Array, "3 3"]


def field_separation(a: HeightField, X_a: Transform, b: Convex, X_b: Transform) -> Separation:
    """Distance, normal and nearest points of a height field and a shape, in the frame that their poses are in.

    >>> from jdyn.geometry import HeightField, Sphere, field_separation
    >>> valley = HeightField(jnp.array([[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]), sides=jnp.array([2.0, 1.0]))
    >>> above = jdyn.Transform(jnp.eye(3), jnp.array([0.0, 0.0, 1.0]))
    >>> print(field_separation(valley, jdyn.Transform.identity(), Sphere(jnp.array(0.1)), above).distance.round(4))
    0.6071

    Of the triangles of the field all count, however far they are. The distance of shapes that are apart is exact up to
    rounding. So is that of a sphere that overlaps with the ground: its middle is as far from the surface, above or
    below, as its radius more says. The depth of other shapes is the largest of those in columns of ground, each below
    one triangle: how far the shape has to be moved to leave that column. It is infinite beside the field, where no part
    of the box about the shape, along the axes of the field, is above or below the rectangle.

    Derivatives are those of the nearest points on the triangle that counts.

    Args:
        a: The height field.
        b: The shape.
        X_a, X_b: Their poses in a common frame.
    """
    X = X_a.inverse() @ X_b
    local = _of_sphere(a, b, X.translation) if isinstance(b, Sphere) else _of_columns(a, b, X)
    box = bounds(b, X)
    there = jnp.all((box.lower[:2] <= a.sides / 2) & (box.upper[:2] >= -a.sides / 2))
    return Separation(
        X_a.point_to_parent(local.a), X_a.point_to_parent(local.b), dot(X_a.rotation, local.normal),
        jnp.where(there, local.distance, jnp.inf),
    )  # fmt: skip


def _of_sphere(a: HeightField, b: Sphere, centre: Float[Array, "3"]) -> Separation:
    near = in_turn_on_cpus(_nearest_triangle, *jax.lax.stop_gradient((a, centre)))
    foot, normal = _from_triangle(a.triangles(near[0])[near[1]], centre)
    height, _ = a.surface(centre[:2])
    below = a.covers(centre[:2]) & (centre[2] < height)
    # Beside the field, and below its border, there is a wall.
    border = jnp.clip(centre[:2], -a.sides / 2, a.sides / 2)
    beside = ~a.covers(centre[:2]) & (centre[2] <= a.surface(border)[0])
    foot = jnp.where(beside, jnp.append(border, centre[2]), foot)
    normal = jnp.where(beside, unit(centre - foot), jnp.where(below, -normal, normal))
    return Separation(foot, centre - b.radius * normal, normal, dot(normal, centre - foot) - b.radius)


def _nearest_triangle(a: HeightField, centre: Float[Array, "3"]) -> tuple[Int[Array, ""], Int[Array, ""]]:
    def distance(triangle):
        foot, _ = _from_triangle(triangle, centre)
        return jnp.sqrt(dot(centre - foot, centre - foot))

    return _least(a, _at_least(a, Bounds(centre, centre), columns=False), distance)


def _from_triangle(triangle: Triangle, point: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """The nearest point of a triangle, and the direction from there to the point; upwards if it is in its plane."""
    sides = jnp.roll(triangle, -1, axis=0) - triangle
    upwards = unit(jnp.cross(sides[0], -sides[2]))
    from_corners = point[None] - triangle
    height = dot(upwards, from_corners[0])
    inside = jnp.all(jnp.sum(jnp.cross(upwards[None], sides) * from_corners, axis=1) >= 0)
    along = jnp.clip(jnp.sum(from_corners * sides, axis=1) / jnp.sum(sides**2, axis=1), 0, 1)
    on_sides = triangle + along[:, None] * sides
    on_side = on_sides[jnp.argmin(jnp.sum((point[None] - on_sides) ** 2, axis=1))]
    away = point - on_side
    # In the plane, where a side is, no direction leads away.
    touching = jnp.all(away == 0)
    outwards = unit(jnp.where(touching, upwards, away))
    foot = jnp.where(inside, point - height * upwards, on_side)
    return foot, jnp.where(inside, jnp.where(height < 0, -upwards, upwards), outwards)


def _of_columns(a: HeightField, b: Convex, X: Transform) -> Separation:
    cell, half = in_turn_on_cpus(_nearest_column, *jax.lax.stop_gradient((a, b, X)))
    column = _column(a.triangles(cell)[half], jax.lax.stop_gradient(_base(a, bounds(b, X))))
    return separation(column, Transform.identity(X.rotation.dtype), b, X)


def _nearest_column(a: HeightField, b: Convex, X: Transform) -> tuple[Int[Array, ""], Int[Array, ""]]:
    box, here = bounds(b, X), Transform.identity(X.rotation.dtype)
    base = _base(a, box)
    return _least(
        a,
        _at_least(a, box, columns=True),
        lambda triangle: separation(_column(triangle, base), here, b, X).distance,
    )


def _column(triangle: Triangle, base: Scalar) -> ConvexHull:
    """Column below a triangle and above a plane."""
    faces, edges = _prism()
    return ConvexHull(jnp.concatenate([triangle, triangle.at[:, 2].set(base)]), jnp.array(faces), jnp.array(edges))


@functools.cache
def _prism() -> tuple[Int[np.ndarray, "5 3"], Int[np.ndarray, "9 4"]]:
    corners = np.array([[0, 0, 1], [1, 0, 1], [0, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0]], float)
    _, faces, edges = hull_tables(corners)
    return faces, edges


def _base(a: HeightField, box: Bounds) -> Scalar:
    """A height so low that no shape in the box leaves the ground downwards before it does so upwards."""
    lowest = jnp.minimum(jnp.min(a.heights), box.lower[2])
    return 2 * lowest - jnp.maximum(jnp.max(a.heights), box.upper[2])


def _at_least(a: HeightField, box: Bounds, *, columns: bool) -> Float[Array, " cells"]:
    """Less than or equal to the distance of what is in the box from the triangles of each cell or, below zero where it
    may have to be moved upwards to leave them, from the columns below them."""
    h = a.heights
    corners = jnp.stack([h[:-1, :-1], h[:-1, 1:], h[1:, :-1], h[1:, 1:]])
    y, x = (
        jnp.maximum(jnp.maximum(ends[:-1] - upper, lower - ends[1:]), 0)
        for ends, lower, upper in zip(a.places, box.lower[1::-1], box.upper[1::-1], strict=True)
    )
    beside = x[None] ** 2 + y[:, None] ** 2
    above, below = box.lower[2] - jnp.max(corners, axis=0), jnp.min(corners, axis=0) - box.upper[2]
    if columns:
        return jnp.where((beside > 0) | (above > 0), jnp.sqrt(beside + jnp.maximum(above, 0) ** 2), above).reshape(-1)
    return jnp.sqrt(beside + jnp.maximum(jnp.maximum(above, below), 0) ** 2).reshape(-1)


def _least(
    a: HeightField, bounds: Float[Array, " cells"], distance: Callable[[Triangle], Scalar]
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """The cell and the half of it with the least distance, by bounds of all cells."""

    def going_on(state):
        bounds, least, *_ = state
        return jnp.min(bounds) < least

    def look(state):
        bounds, least, cell, half = state
        nearest = first_of_least(bounds)
        distances = jax.vmap(distance)(a.triangles(nearest))
        nearer = jnp.argmin(distances).astype(jnp.int32)
        better = distances[nearer] < least
        least, cell, half = (
            jnp.where(better, new, old)
            for new, old in zip((distances[nearer], nearest, nearer), (least, cell, half), strict=True)
        )
        return bounds.at[nearest].set(jnp.inf), least, cell, half

    zero = jnp.zeros((), jnp.int32)
    return jax.lax.while_loop(going_on, look, (bounds, jnp.full((), jnp.inf, bounds.dtype), zero, zero))[2:]
