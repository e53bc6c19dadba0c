"""Where two segments are nearest, in closed form."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array.dot import dot
from jdyn.geometry.directions import perpendicular, unit
from jdyn.geometry.search import Found, reach_between
from jdyn.geometry.shapes import Capsule
from jdyn.spatial import Transform


def nearest_of_segments(a: Capsule, b: Capsule, X: Transform) -> Found:
    """Of the cores of two capsules, b with pose X in the frame of a.

    Five candidates: within both segments, and an end of either against the other segment. Segments that cross leave
    each other at right angles to both.

    Source: Ericson 2005, Real-time collision detection, section 5.1.9.
    """
    ends_a, ends_b = a.ends, jax.vmap(X.point_to_parent)(b.ends)
    way_a, way_b = ends_a[1] - ends_a[0], ends_b[1] - ends_b[0]
    across = jnp.cross(way_a, way_b)
    square, between = dot(across, across), ends_b[0] - ends_a[0]
    skew = square > 0
    shares = jnp.stack([dot(jnp.cross(between, way), across) for way in (way_b, way_a)]) / jnp.where(skew, square, 1)
    inside = skew & jnp.all((shares >= 0) & (shares <= 1))
    on_b, on_a = (jax.vmap(_foot, (0, None))(*x) for x in ((ends_a, ends_b), (ends_b, ends_a)))
    points_a = jnp.concatenate([(ends_a[0] + shares[0] * way_a)[None], ends_a, on_a])
    points_b = jnp.concatenate([(ends_b[0] + shares[1] * way_b)[None], on_b, ends_b])
    squares = jnp.sum((points_b - points_a) ** 2, axis=1)
    best = jnp.argmin(squares.at[0].set(jnp.where(inside, squares[0], jnp.inf)))
    point_a, point_b = points_a[best], points_b[best]
    way, size = point_b - point_a, a.length + b.length + jnp.sqrt(dot(between, between))
    beside = jnp.where(jnp.any(across != 0), unit(across), perpendicular(unit(way_a)))
    beside = jnp.where(dot(beside, way) < 0, -beside, beside)
    # Rounding leaves the direction across them more digits the less they are parallel, that between points that are
    # far apart.
    crossing = (best == 0) & (squares[best] * dot(way_a, way_a) * dot(way_b, way_b) < square * size**2)
    touching = squares[best] <= (100 * jnp.finfo(size.dtype).eps * size) ** 2
    normal = jnp.where(crossing | touching, beside, unit(jnp.where(touching, 1, way)))
    rows_a, rows_b = (jnp.broadcast_to(point, (3, 3)) for point in (point_a, point_b))
    reach = reach_between(a.length / 2 + a.radius, b.length / 2 + b.radius, size)
    return Found(rows_a, rows_b, jnp.array([1, 0, 0], size.dtype), normal, dot(normal, way), reach)


def _foot(point: Float[Array, "3"], ends: Float[Array, "2 3"]) -> Float[Array, "3"]:
    """The point of a segment that is nearest to a point."""
    way = ends[1] - ends[0]
    square = dot(way, way)
    share = dot(point - ends[0], way) / jnp.where(square > 0, square, 1)
    return ends[0] + jnp.clip(share, 0, 1) * way
