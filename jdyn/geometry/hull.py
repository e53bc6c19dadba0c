"""Convex hulls of points."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.spatial
from jaxtyping import Array, ArrayLike, Float, Int, Scalar

from jdyn.array.dot import dot
from jdyn.geometry.argmin import first_of_least
from jdyn.geometry.shapes import Convex

# Facets whose normals differ by less than this angle [rad] are parts of one face: triangles of files in single
# precision that lie in one plane differ by about 1e-6.
_ONE_FACE = 1e-5
# A hull with less of its length across is flat.
_FLAT = 1e-9


class ConvexHull(Convex):
    """The convex hull of points; make it by `ConvexHull.of`.

    >>> from jdyn.geometry import ConvexHull
    >>> hull = ConvexHull.of([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.1, 0.1, 0.1]])
    >>> print(hull.vertices.shape, hull.faces.shape, hull.edges.shape)
    (4, 3) (4, 3) (6, 4)

    Vertices may be scaled, moved and differentiated, as long as the same ones remain corners of the same faces. To have
    tables of one length for several hulls, repeat the last row of each.

    Attributes:
        vertices: [m].
        faces: Three vertices of each face, counter-clockwise seen from outside.
        edges: Of each edge, its two vertices and the two faces beside it.
    """

    vertices: Float[Array, "vertices 3"]
    faces: Int[Array, "faces 3"]
    edges: Int[Array, "edges 4"]

    @classmethod
    def of(cls, points: ArrayLike, dtype=None) -> "ConvexHull":
        """The hull of points, which may lie within it.

        Args:
            points: Shape (n, 3) [m].
            dtype: Of the vertices; that of the points if left out.

        Raises:
            ValueError: if there are fewer than four points, some are not finite, or all lie in one plane.
        """
        # The tables follow from the numbers: points cannot be traced.
        array = np.asarray(points)
        dtype = dtype or (array.dtype if np.issubdtype(array.dtype, np.floating) else jnp.zeros(()).dtype)
        vertices, faces, edges = hull_tables(array)
        return cls(jnp.asarray(vertices, dtype), jnp.asarray(faces), jnp.asarray(edges))

    @property
    def thickness(self) -> Scalar:
        """Twice the distance of the middle of the vertices from the nearest face."""
        first, second, third = (self.vertices[self.faces[:, k]] for k in range(3))
        normals, middle = jnp.cross(second - first, third - first), jnp.mean(self.vertices, axis=0)
        size = jnp.sqrt(jnp.sum(normals**2, axis=1))
        heights = jnp.abs(jnp.sum(normals * (first - middle[None]), axis=1)) / jnp.where(size > 0, size, 1)
        return 2 * jnp.min(jnp.where(size > 0, heights, jnp.inf))

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        return self.vertices[first_of_least(-dot(self.vertices, direction))]

    def corners_at(self, places: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
        """The vertices that are nearest to places, with derivatives with respect to vertices alone."""
        away = jax.lax.stop_gradient(places[:, None] - self.vertices[None])
        return self.vertices[jnp.argmin(jnp.sum(away**2, axis=-1), axis=1)]


def hull_tables(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices, faces and edges of a hull, as `ConvexHull` has them; edges within a face are left out.

    Raises:
        ValueError: as `ConvexHull.of`.
    """
    hull = _enclosing(points)
    triangles, normals = hull.simplices.copy(), hull.equations[:, :3]
    corners = hull.points[triangles]
    turned = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    clockwise = np.sum(turned * normals, axis=1) < 0
    triangles[clockwise] = triangles[clockwise][:, ::-1]
    face_of = _faces(hull.neighbors, normals)
    # Three vertices of a face, those of its largest triangle, whose plane is known best.
    area, rows = np.linalg.norm(turned, axis=1), np.arange(len(triangles))
    largest = [max(rows[face_of == face], key=area.__getitem__) for face in range(face_of.max() + 1)]
    edges = np.array(
        [
            (*sorted(set(triangles[row]) & set(triangles[other])), face_of[row], face_of[other])
            for row in rows
            for other in hull.neighbors[row]
            if row < other and face_of[row] != face_of[other]
        ]
    )
    kept, numbers = np.unique(edges[:, :2], return_inverse=True)
    renumbered = np.zeros(len(points), int)
    renumbered[kept] = np.arange(len(kept))
    edges = np.concatenate([numbers.reshape(-1, 2), edges[:, 2:]], axis=1)
    return hull.points[kept], renumbered[triangles[largest]], edges


def _enclosing(points: np.ndarray) -> scipy.spatial.ConvexHull:
    if points.ndim != 2 or points.shape[1:] != (3,) or len(points) < 4:
        raise ValueError(f"points of a hull: expected shape (n, 3) with n ≥ 4, got {points.shape}")
    if not np.isfinite(points).all():
        row = int(np.argmin(np.isfinite(points).all(axis=1)))
        raise ValueError(f"points of a hull: expected finite numbers, got {points[row].tolist()} in row {row}")
    exact = points.astype(np.float64)
    spread = np.linalg.svd(exact - exact.mean(axis=0), compute_uv=False)
    if spread[2] <= _FLAT * spread[0]:
        raise ValueError(
            f"points of a hull: expected points that enclose a volume, got {len(points)} points within one plane; use "
            "a thin box instead"
        )
    try:
        return scipy.spatial.ConvexHull(exact)
    except scipy.spatial.QhullError as error:
        raise ValueError(f"points of a hull: {str(error).splitlines()[0]}") from None


def _faces(neighbors: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """The number of the face that each triangle is part of."""
    face_of = np.full(len(normals), -1)
    for first in range(len(normals)):
        if face_of[first] >= 0:
            continue
        face_of[first] = face_of.max() + 1
        pending = [first]
        while pending:
            for other in neighbors[pending.pop()]:
                # Compared with the first one, so that a finely faceted sphere does not become one face.
                if face_of[other] < 0 and np.linalg.norm(normals[other] - normals[first]) < _ONE_FACE:
                    face_of[other] = face_of[first]
                    pending.append(other)
    return face_of
