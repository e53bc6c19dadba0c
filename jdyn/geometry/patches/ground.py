"""Contact points with a half-space or a height field: points that belong to the shape."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array.dot import dot
from jdyn.geometry.directions import length_and_unit
from jdyn.geometry.height_field import HeightField
from jdyn.geometry.hull import ConvexHull
from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Box, Capsule, Convex, Cylinder, Ellipsoid, HalfSpace, Sphere
from jdyn.spatial import Transform

# Of hulls with more vertices, only the deepest ones: others lie higher than sixteen that may touch.
_MOST_VERTICES = 16
# Rounds in which an ellipsoid looks for its point that is next to curved ground.
_ROUNDS = 3


def on_half_space(a: HalfSpace, X_a: Transform, b: Convex, X_b: Transform) -> Separation:
    """The points of a shape that may touch a half-space, in world axes.

    Each is a row of its own, with a smooth distance: both ends of a capsule, the corners of a box and of a hull (the
    sixteen deepest), four points of each rim of a cylinder.
    """
    normal = X_a.rotation[:, 2]
    points, radius = _probes(b, -dot(X_b.rotation.T, normal))
    points = jax.vmap(X_b.point_to_parent)(points)
    heights = dot(points - X_a.translation[None], normal) - radius
    return _rows(points - radius * normal[None], jnp.broadcast_to(normal, points.shape), heights)


def on_height_field(a: HeightField, X_a: Transform, b: Convex, X_b: Transform) -> Separation:
    """The points of a shape that may touch a height field, in world axes: those that may touch a half-space.

    A distance is that from the plane through the surface below or above a point with the surface's normal there, which
    is exact where the ground is even, and smooth elsewhere; `field_separation` has that of the nearest triangle. Points
    beyond the border touch nothing. Peaks between the points of a shape are not seen: cells should not be much smaller
    than shapes.
    """
    X_ab = X_a.inverse() @ X_b
    points, radius = _probes(b, -dot(X_ab.rotation.T, _normal(a, X_ab.translation)))
    if isinstance(b, Ellipsoid):
        for _ in range(_ROUNDS - 1):
            points, _ = _probes(b, -dot(X_ab.rotation.T, _normal(a, X_ab.point_to_parent(points[0]))))
    points = jax.vmap(X_ab.point_to_parent)(points)
    height, normals = jax.vmap(a.surface)(points[:, :2])
    distances = (points[:, 2] - height) * normals[:, 2] - radius
    distances = jnp.where(jax.vmap(a.covers)(points[:, :2]), distances, jnp.inf)
    nearest = jax.vmap(X_a.point_to_parent)(points - radius * normals)
    return _rows(nearest, dot(normals, X_a.rotation.T), distances)


def _normal(ground: HeightField, point: Float[Array, "3"]) -> Float[Array, "3"]:
    return ground.surface(point[:2])[1]


def _rows(b: Array, normals: Array, distances: Array) -> Separation:
    depths = jnp.where(jnp.isfinite(distances), distances, 0)
    return Separation(b - depths[:, None] * normals, b, normals, distances, jnp.ones_like(distances))


@functools.singledispatch
def _probes(shape, direction: Float[Array, "3"]) -> tuple[Float[Array, "n 3"], Scalar]:
    """Centres of balls in a shape that reach its surface where it faces a direction, and their radius."""
    raise TypeError(f"contact with ground: expected a shape, got {type(shape).__name__}")


@_probes.register
def _(shape: Sphere, direction):
    return jnp.zeros_like(direction)[None], shape.radius


@_probes.register
def _(shape: Capsule, direction):
    return shape.ends, shape.radius


@_probes.register
def _(shape: Box, direction):
    return shape.corners, jnp.zeros_like(direction[0])


@_probes.register
def _(shape: Ellipsoid, direction):
    return shape.support(direction)[None], jnp.zeros_like(direction[0])


@_probes.register
def _(shape: Cylinder, direction):
    rim = rim_points(shape.radius, direction)
    ends = jnp.stack([-shape.length, shape.length]) / 2
    points = jnp.concatenate([jnp.broadcast_to(rim, (2, 4, 2)), jnp.broadcast_to(ends[:, None, None], (2, 4, 1))], -1)
    return points.reshape(8, 3), jnp.zeros_like(direction[0])


@_probes.register
def _(shape: ConvexHull, direction):
    vertices = shape.vertices
    if len(vertices) > _MOST_VERTICES:
        vertices = vertices[jax.lax.top_k(dot(vertices, direction), _MOST_VERTICES)[1]]
    return vertices, jnp.zeros_like(direction[0])


def rim_points(radius: Scalar, direction: Float[Array, "3"]) -> Float[Array, "4 2"]:
    """Four points of a circle about the z axis, a quarter turn apart: first the one that is farthest in a direction.

    The sum of their forces, and of their torques, depends on where the first one is only in the fourth power of the
    angle between direction and axis. Where that is lost in rounding, the first one is on the x axis.
    """
    length, outwards = length_and_unit(direction[:2])
    first = jnp.where(length > jnp.sqrt(jnp.finfo(length.dtype).eps), outwards, jnp.array([1, 0], outwards.dtype))
    second = jnp.stack([-first[1], first[0]])
    return radius * jnp.stack([first, second, -first, -second])
