"""The flat or straight part of a shape that faces a direction."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.array import Structure
from jdyn.array.dot import dot
from jdyn.geometry.directions import length_and_unit, unit
from jdyn.geometry.hull import ConvexHull
from jdyn.geometry.patches.ground import rim_points
from jdyn.geometry.shapes import Box, Capsule, Cylinder
from jdyn.spatial import Transform

# Of a face of a hull with more corners, those that are farthest in so many directions, and the one that is nearest.
_SIDES = 8


class Feature(Structure):
    """A polygon, or a line: from its first corner to the second one, and back from the third one to the fourth one.

    Attributes:
        corners: Counter-clockwise, seen from outside of the shape [m]; corners may be in one place.
        rounding: How far the surface of the shape is outside of it [m].
        bend: Radius of the surface across a line [m]; zero for a polygon.
        weight: Of each end of a line [1].
    """

    corners: Float[Array, "corners 3"]
    rounding: Scalar
    bend: Scalar
    weight: Scalar

    def to_parent(self, X: Transform) -> "Feature":
        """The same in the frame in which its own has pose X."""
        return dataclasses.replace(self, corners=jax.vmap(X.point_to_parent)(self.corners))


@functools.singledispatch
def feature(shape, direction: Float[Array, "3"]) -> Feature:
    """Feature of a shape which is nearest to right angles with a direction, in the frame of the shape.

    It contains the point of the shape's core that is farthest in the direction. A cylinder has the cap that faces the
    direction, as a square on its rim, up to an angle of 45 degrees with its axis; then the line on its side.

    Args:
        shape: A capsule, box, cylinder or hull.
        direction: A unit vector in the frame of the shape.
    """
    raise TypeError(f"flat part of a shape: expected one that has flat or straight parts, got {type(shape).__name__}")


@feature.register
def _(shape: Capsule, direction):
    start, end = shape.ends
    return Feature(jnp.stack([start, end, end, start]), shape.radius, shape.radius, jnp.ones_like(shape.radius))


@feature.register
def _(shape: Box, direction):
    half, size = shape.sides / 2, jnp.abs(direction)
    # The axis of the face, and the next two in cyclic order.
    axes = [jnp.roll(jnp.arange(3) == jnp.argmax(size), k) for k in range(3)]
    outwards, first, second = (jnp.where(axis, half, 0) for axis in axes)
    # Corners of the opposite face would be clockwise.
    side = jnp.where(jnp.sum(jnp.where(axes[0], direction, 0)) < 0, -1, 1).astype(half.dtype)
    outwards, first = side * outwards, side * first
    corners = jnp.stack([first + second, second - first, -first - second, first - second]) + outwards[None]
    return _polygon(corners)


@feature.register
def _(shape: Cylinder, direction):
    rim = rim_points(shape.radius, direction)
    half = shape.length / 2
    up = direction[2] >= 0
    # Clockwise seen from below.
    cap = jnp.where(up, rim, jnp.stack([rim[0], rim[3], rim[2], rim[1]]))
    cap = jnp.concatenate([cap, jnp.broadcast_to(jnp.where(up, half, -half), (4, 1))], axis=1)
    ends = jnp.stack([-half, half, half, -half])
    line = jnp.concatenate([jnp.broadcast_to(rim[0], (4, 2)), ends[:, None]], axis=1)
    lies = 2 * direction[2] ** 2 < dot(direction, direction)
    # One where it lies; at 45 degrees that of the square's corner, by the angle at which it is seen there.
    weight = jnp.arctan2(length_and_unit(direction[:2])[0], length_and_unit(direction)[0])
    bend = jnp.where(lies, shape.radius, 0)
    return Feature(jnp.where(lies, line, cap), jnp.zeros_like(half), bend, weight / (jnp.pi / 4))


@feature.register
def _(shape: ConvexHull, direction):
    heights = dot(shape.vertices, direction)
    nearest = jnp.argmax(heights)
    starts, ends, left, right = shape.edges.T
    normals = _normals(shape)
    # Of the faces with the most corners among the highest, one or the two of an edge, the one that faces the direction.
    size = jnp.max(jnp.abs(heights - heights[nearest]))
    highest = heights >= heights[nearest] - jnp.sqrt(jnp.finfo(size.dtype).eps) * size
    count = highest[starts].astype(size.dtype) + highest[ends].astype(size.dtype)
    score = 4 * count[:, None] + dot(normals, direction)[shape.edges[:, 2:]]
    face = shape.edges[:, 2:].reshape(-1)[jnp.argmax(score)]
    bounds = (left == face) | (right == face)
    of_face = jnp.zeros(len(shape.vertices), bool).at[shape.edges[:, :2]].max(bounds[:, None])
    chosen = _extreme(shape.vertices, of_face, normals[face], shape.faces[face], nearest)
    return _polygon(shape.vertices[chosen])


def _polygon(corners: Float[Array, "corners 3"]) -> Feature:
    return Feature(corners, *jnp.zeros(3, corners.dtype))


def _normals(hull: ConvexHull) -> Float[Array, "faces 3"]:
    first, second, third = (hull.vertices[hull.faces[:, k]] for k in range(3))
    return jax.vmap(unit)(jnp.cross(second - first, third - first))


def _extreme(vertices, of_face, normal, triangle, nearest):
    """Numbers of the corners of a face that are farthest in evenly spaced directions, and of one more, in order."""
    axis = jax.lax.stop_gradient(unit(vertices[triangle[1]] - vertices[triangle[0]]))
    plane = jnp.stack([axis, jnp.cross(jax.lax.stop_gradient(normal), axis)])
    places = dot(jax.lax.stop_gradient(vertices), plane.T)
    angles = jnp.arange(_SIDES, dtype=places.dtype) * (2 * jnp.pi / _SIDES)
    heights = dot(places, jnp.stack([jnp.cos(angles), jnp.sin(angles)]))
    chosen = jnp.argmax(jnp.where(of_face[:, None], heights, -jnp.inf), axis=0)
    # Where the extreme corners of two neighbouring directions differ, others lie between them, in order of angle about
    # the middle of the face.
    chosen = jnp.append(chosen, nearest)
    middle = jnp.sum(jnp.where(of_face[:, None], places, 0), axis=0) / jnp.sum(of_face).astype(places.dtype)
    x, y = (places[chosen] - middle[None]).T
    return chosen[jnp.argsort(jnp.arctan2(y, x))]
