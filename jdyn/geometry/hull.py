"""Convex hulls of points."""

import jax.numpy as jnp
import numpy as np
import scipy.spatial
from jaxtyping import Array, ArrayLike, Float, Int

from jdyn.geometry.shapes import Convex

# Facets whose normals differ by less than this angle [rad] are parts of one face: triangles of files in single
# precision that lie in one plane differ by about 1e-6.
_ONE_FACE = 1e-5


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
        if array.ndim != 2 or array.shape[1:] != (3,) or len(array) < 4:
            raise ValueError(f"points of a hull: expected shape (n, 3) with n ≥ 4, got {array.shape}")
        if not np.isfinite(array).all():
            row = int(np.argmin(np.isfinite(array).all(axis=1)))
            raise ValueError(f"points of a hull: expected finite numbers, got {array[row].tolist()} in row {row}")
        dtype = dtype or (array.dtype if np.issubdtype(array.dtype, np.floating) else jnp.zeros(()).dtype)
        exact = array.astype(np.float64)
        spread = np.linalg.svd(exact - exact.mean(axis=0), compute_uv=False)
        if spread[2] <= 1e-9 * spread[0]:
            raise ValueError(
                f"points of a hull: expected points that enclose a volume, got {len(array)} points within one plane; "
                "use a thin box instead"
            )
        try:
            hull = scipy.spatial.ConvexHull(exact)
        except scipy.spatial.QhullError as error:
            raise ValueError(f"points of a hull: {str(error).splitlines()[0]}") from None
        faces, edges = _tables(hull)
        corners = np.unique(edges[:, :2])
        renumbered = np.zeros(len(exact), int)
        renumbered[corners] = np.arange(len(corners))
        edges = np.concatenate([renumbered[edges[:, :2]], edges[:, 2:]], axis=1)
        return cls(jnp.asarray(exact[corners], dtype), jnp.asarray(renumbered[faces]), jnp.asarray(edges))

    def core_support(self, direction: Float[Array, "3"]) -> Float[Array, "3"]:
        return self.vertices[jnp.argmax(self.vertices @ direction)]


def _tables(hull: scipy.spatial.ConvexHull) -> tuple[np.ndarray, np.ndarray]:
    """Three vertices for each face, and for each edge its vertices and faces, without edges within a face."""
    triangles, normals = hull.simplices.copy(), hull.equations[:, :3]
    corners = hull.points[triangles]
    turned = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    clockwise = np.sum(turned * normals, axis=1) < 0
    triangles[clockwise] = triangles[clockwise][:, ::-1]
    face_of = _faces(hull.neighbors, normals)
    # Three vertices of a face, those of its largest triangle, whose plane is known best.
    area, rows = np.linalg.norm(turned, axis=1), np.arange(len(triangles))
    largest = [max(rows[face_of == face], key=area.__getitem__) for face in range(face_of.max() + 1)]
    edges = []
    for row, triangle in enumerate(triangles):
        for k in range(3):
            start, end = triangle[k], triangle[(k + 1) % 3]
            if start < end:
                [other] = [n for n in hull.neighbors[row] if {start, end} <= set(triangles[n])]
                if face_of[other] != face_of[row]:
                    edges.append((start, end, face_of[row], face_of[other]))
    return triangles[largest], np.array(edges)


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
