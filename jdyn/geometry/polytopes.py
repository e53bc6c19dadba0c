"""Cores of shapes as polytopes, and the direction along which two of them overlap least."""

import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array import Structure
from jdyn.geometry.directions import unit
from jdyn.geometry.hull import ConvexHull, hull_tables
from jdyn.geometry.shapes import Box, Capsule, Convex, Cylinder, Ellipsoid, Sphere
from jdyn.spatial import Transform

# Of the prism for a cylinder: its corners are within a fiftieth of the radius of all points of the circle.
_PRISM_SIDES = 12
_EDGES_AT_ONCE = 16
# Edges are taken for parallel where the square of the sine between them is less than this power of rounding.
_PARALLEL = 0.75

# Kinds of shapes whose cores are no polytopes.
CURVED = (Cylinder, Ellipsoid)
_Gap = tuple[Float[Array, ""], Float[Array, "3"]]


class Polytope(Structure):
    """Corners, faces and edges, in a frame of its own or in another's.

    Points and segments are polytopes as well: planes through them that touch nothing else stand for faces, so that
    every edge is between two, less than half a turn apart.

    Attributes:
        vertices: [m].
        normals: Of the faces, outwards.
        starts: A point of each edge [m].
        edges: Directions of the edges; their lengths do not matter.
        before, after: Normals of the two faces beside each edge.
    """

    vertices: Float[Array, "vertices 3"]
    normals: Float[Array, "faces 3"]
    starts: Float[Array, "edges 3"]
    edges: Float[Array, "edges 3"]
    before: Float[Array, "edges 3"]
    after: Float[Array, "edges 3"]

    def ball(self) -> tuple[Float[Array, "3"], Float[Array, ""]]:
        """Centre and radius of a ball about it."""
        centre = jnp.mean(self.vertices, axis=0)
        return centre, jnp.sqrt(jnp.max(jnp.sum((self.vertices - centre[None]) ** 2, axis=1)))

    def to_parent(self, X: Transform) -> "Polytope":
        """The same in the frame in which its own has pose X."""
        turned = jax.tree.map(lambda vectors: vectors @ X.rotation.T, self)
        moved = {name: getattr(turned, name) + X.translation[None] for name in ("vertices", "starts")}
        return Polytope(**(vars(turned) | moved))


def least_overlap(a: Polytope, b: Polytope) -> Float[Array, "3"]:
    """The unit vector along which b must be moved least to leave a: a normal of a face of their difference.

    Faces of the difference are faces of one of them, or made of one edge of each, where the arcs that their normals
    span on the unit sphere cross.

    Source: Gregorius 2013, The separating axis test between convex polyhedra (Game Developers Conference).
    """
    of_a = jnp.min(b.vertices @ a.normals.T, axis=0) - jnp.max(a.vertices @ a.normals.T, axis=0)
    of_b = jnp.min(a.vertices @ b.normals.T, axis=0) - jnp.max(b.vertices @ b.normals.T, axis=0)
    # Faces without area have no normal.
    gaps = jnp.concatenate([
        jnp.where(jnp.any(normals != 0, axis=1), of, -jnp.inf) for normals, of in ((a.normals, of_a), (b.normals, of_b))
    ])  # fmt: skip
    directions = jnp.concatenate([a.normals, -b.normals])
    best = jnp.argmax(gaps)
    if not len(a.edges) or not len(b.edges):
        return directions[best]
    return _best_edges(a, b, (gaps[best], directions[best]))[1]


def _best_edges(a: Polytope, b: Polytope, best: _Gap) -> _Gap:
    """The best of a gap along a direction and of those of pairs of edges."""
    # A few edges of a at a time, since the pairs of a batch of large hulls would not fit into memory.
    edges = a.starts, a.edges, a.before, a.after
    blocks = -(-len(a.edges) // _EDGES_AT_ONCE)
    rows = np.resize(np.arange(len(a.edges)), (blocks, -(-len(a.edges) // blocks)))

    def block(best, edges):
        gaps, across = _edge_pairs(edges, b)
        row, column = jnp.unravel_index(jnp.argmax(gaps), gaps.shape)
        better = gaps[row, column] > best[0]
        return (jnp.maximum(gaps[row, column], best[0]), jnp.where(better, across(row, column), best[1])), None

    return jax.lax.scan(block, best, jax.tree.map(lambda x: x[rows], edges))[0]


def _edge_pairs(edges: tuple[Array, ...], b: Polytope) -> tuple[Float[Array, "m n"], Callable[..., Array]]:
    """For each pair of an edge of a and one of b, how far apart they are along the normal of both, −∞ where they make
    no face; and the normal of one pair, out of a."""
    starts, edges_a, before, after = edges
    edges_a, edges_b = _oriented(before, after, edges_a), _oriented(b.before, b.after, b.edges)
    b_before, b_after = -(edges_a @ b.before.T), -(edges_a @ b.after.T)
    a_before, a_after = before @ edges_b.T, after @ edges_b.T
    # Triple products of vectors of one edge each, so that no vector of a pair is written down.
    volumes = edges_a @ jnp.cross(edges_b, b.starts).T - jnp.cross(starts, edges_a) @ edges_b.T
    lengths = jnp.sum(edges_a**2, axis=1)[:, None] * jnp.sum(edges_b**2, axis=1)[None]
    square = lengths - (edges_a @ edges_b.T) ** 2
    # Rounding chooses the direction across edges that are nearly parallel; that of a face is nearly as good there.
    skew = square > float(jnp.finfo(square.dtype).eps) ** _PARALLEL * lengths
    crossing = (b_before * b_after < 0) & (a_before * a_after < 0) & (b_before * a_after > 0) & skew
    gaps = jnp.where(crossing, volumes * jnp.sign(a_before) / jnp.sqrt(jnp.where(crossing, square, 1)), -jnp.inf)
    return gaps, lambda row, column: unit(jnp.cross(edges_a[row], edges_b[column]) * jnp.sign(a_before[row, column]))


def _oriented(before: Array, after: Array, edges: Array) -> Array:
    """Edges so that the turn from the first normal to the second is about them."""
    return edges * jnp.where(jnp.sum(jnp.cross(before, after) * edges, axis=1) < 0, -1, 1)[:, None]


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
    starts, ends = (shape.vertices[shape.edges[:, k]] for k in range(2))
    before, after = (normals[shape.edges[:, k]] for k in range(2, 4))
    return Polytope(shape.vertices, normals, starts, ends - starts, before, after)


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
    none = jnp.zeros((0, 3), dtype)
    return Polytope(jnp.zeros((1, 3), dtype), jnp.array([[0, 0, 1]], dtype), none, none, none, none)


@polytope.register
def _(shape: Capsule) -> Polytope:
    ends = shape.ends
    around = jnp.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], ends.dtype)
    starts, edges = (jnp.broadcast_to(x, (4, 3)) for x in (ends[0], jnp.array([0, 0, 1], ends.dtype)))
    return Polytope(ends, around, starts, edges, around, jnp.roll(around, -1, axis=0))


def _scaled(name: str, scale: Float[Array, "3"]) -> Polytope:
    """A polytope within the cube from −1 to 1, scaled along the axes."""
    *points, before, after = _unscaled(name)
    vertices, normals, starts, edges = (jnp.asarray(x, scale.dtype) for x in points)
    # Tangents are scaled, so normals are divided.
    upright = normals / jnp.where(scale > 0, scale, 1)[None]
    upright = upright / jnp.sqrt(jnp.sum(upright**2, axis=1, keepdims=True))
    return Polytope(
        vertices * scale[None], upright, starts * scale[None], edges * scale[None],
        upright[before], upright[after],
    )  # fmt: skip


@functools.cache
def _unscaled(name: str) -> tuple[np.ndarray, ...]:
    """Vertices, normals, starts of edges, their directions, and the faces before and after each."""
    vertices, faces, edges = hull_tables(_corners(name))
    first, second, third = vertices[faces].swapaxes(0, 1)
    starts, ends, before, after = edges.T
    normals = np.cross(second - first, third - first)
    return vertices, normals, vertices[starts], vertices[ends] - vertices[starts], before, after


def _corners(name: str) -> np.ndarray:
    if name == "box":
        return np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    if name == "prism":
        angles = np.arange(_PRISM_SIDES) * 2 * np.pi / _PRISM_SIDES
        return np.array([(np.cos(t), np.sin(t), z) for t in angles for z in (-1.0, 1.0)])
    golden = (1 + np.sqrt(5)) / 2
    rectangles = [np.roll((0, one, other), k) for k in range(3) for one in (-1, 1) for other in (-golden, golden)]
    return np.array(rectangles) / np.hypot(1, golden)
