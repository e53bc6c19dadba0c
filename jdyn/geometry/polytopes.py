"""Cores of shapes as polytopes."""

import dataclasses
import functools
import itertools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jdyn.array import Structure
from jdyn.array.dot import dot
from jdyn.geometry.hull import ConvexHull, hull_tables
from jdyn.geometry.shapes import Box, Capsule, Convex, Cylinder, Ellipsoid, Sphere
from jdyn.spatial import Transform

# Of the prism for a cylinder: its corners are within a fiftieth of the radius of all points of the circle.
_PRISM_SIDES = 12

# Kinds of shapes whose cores are no polytopes.
CURVED = (Cylinder, Ellipsoid)


class Polytope(Structure):
    """Corners, faces and edges, in a frame of its own or in another's.

    Points and segments are polytopes as well: planes through them that touch nothing else stand for faces, so that
    every edge is between two, less than half a turn apart.

    Attributes:
        vertices: [m].
        normals: Of the faces, outwards.
        corners: A vertex of each face.
        starts: A vertex of each edge.
        beside: The two faces beside each edge.
    """

    vertices: Float[Array, "vertices 3"]
    normals: Float[Array, "faces 3"]
    corners: Int[np.ndarray | Array, " faces"]
    starts: Int[np.ndarray | Array, " edges"]
    beside: Int[np.ndarray | Array, "edges 2"]

    def ball(self) -> tuple[Float[Array, "3"], Float[Array, ""]]:
        """Centre and radius of a ball about it."""
        centre = jnp.mean(self.vertices, axis=0)
        return centre, jnp.sqrt(jnp.max(jnp.sum((self.vertices - centre[None]) ** 2, axis=1)))

    def to_parent(self, X: Transform) -> "Polytope":
        """The same in the frame in which its own has pose X."""
        vertices = dot(self.vertices, X.rotation.T) + X.translation[None]
        return dataclasses.replace(self, vertices=vertices, normals=dot(self.normals, X.rotation.T))


@functools.singledispatch
def polytope(shape: Convex) -> Polytope:
    """The core of a shape as a polytope; for curved ones, one within it with faces that are as small as is cheap."""
    raise TypeError(f"expected a convex shape of jdyn.geometry, got {type(shape).__name__}")


@polytope.register
def _(shape: ConvexHull) -> Polytope:
    first, second, third = (shape.vertices[shape.faces[:, k]] for k in range(3))
    normals = jnp.cross(second - first, third - first)
    size = jnp.sqrt(jnp.sum(normals**2, axis=1))
    # Those of scaled vertices may be the wrong way round.
    outwards = jnp.sum(normals * (first - jnp.mean(shape.vertices, axis=0)[None]), axis=1) > 0
    normals = normals * (jnp.where(outwards, 1, -1) / jnp.where(size > 0, size, 1))[:, None]
    return Polytope(shape.vertices, normals, shape.faces[:, 0], shape.edges[:, 0], shape.edges[:, 2:])


@polytope.register
def _(shape: Box) -> Polytope:
    return _scaled("box", shape.sides / 2)


@polytope.register
def _(shape: Cylinder) -> Polytope:
    return _scaled("prism", jnp.stack([shape.radius, shape.radius, shape.length / 2]))


@polytope.register
def _(shape: Ellipsoid) -> Polytope:
    return _scaled("icosahedron", shape.radii)


@polytope.register
def _(shape: Sphere) -> Polytope:
    dtype = shape.radius.dtype
    none = np.zeros((0, 2), int)
    return Polytope(jnp.zeros((1, 3), dtype), jnp.array([[0, 0, 1]], dtype), np.zeros(1, int), none[:, 0], none)


@polytope.register
def _(shape: Capsule) -> Polytope:
    around = jnp.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], shape.length.dtype)
    every, zero = np.arange(4), np.zeros(4, int)
    return Polytope(shape.ends, around, zero, zero, np.stack([every, np.roll(every, -1)], axis=1))


def _scaled(name: str, scale: Float[Array, "3"]) -> Polytope:
    """A polytope within the cube from −1 to 1, scaled along the axes."""
    *points, corners, starts, beside = _unscaled(name)
    vertices, normals = (jnp.asarray(x, scale.dtype) for x in points)
    # Tangents are scaled, so normals are divided.
    upright = normals / jnp.where(scale > 0, scale, 1)[None]
    upright = upright / jnp.sqrt(jnp.sum(upright**2, axis=1, keepdims=True))
    return Polytope(vertices * scale[None], upright, corners, starts, beside)


@functools.cache
def _unscaled(name: str) -> tuple[np.ndarray, ...]:
    """Vertices, normals, a vertex of each face, one of each edge, and the faces beside each edge."""
    vertices, faces, edges = hull_tables(_corners(name))
    first, second, third = vertices[faces].swapaxes(0, 1)
    return vertices, np.cross(second - first, third - first), faces[:, 0], edges[:, 0], edges[:, 2:]


def _corners(name: str) -> np.ndarray:
    if name == "box":
        return np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    if name == "prism":
        angles = np.arange(_PRISM_SIDES) * 2 * np.pi / _PRISM_SIDES
        return np.array([(np.cos(t), np.sin(t), z) for t in angles for z in (-1.0, 1.0)])
    golden = (1 + np.sqrt(5)) / 2
    rectangles = [np.roll((0, one, other), k) for k in range(3) for one in (-1, 1) for other in (-golden, golden)]
    return np.array(rectangles) / np.hypot(1, golden)
