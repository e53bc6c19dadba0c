"""Convex hulls of the meshes that robots touch with."""

import functools
import warnings
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import scipy.spatial
from jaxtyping import Array, Float, Int

from jdyn.geometry import ConvexHull
from jdyn.geometry.hull import hull_tables
from jdyn.io.mesh_files import Mesh, MeshError, read_mesh
from jdyn.model import ModelError, ModelWarning
from jdyn.model.shapes import Shape
from jdyn.terminal.messages import listed

# Vertices that are left out are named where they stick out by more than this part of the hull's diagonal.
_SEEN = 1e-2


def hulls_of(source: str, entries: Sequence[Shape], dtype) -> ConvexHull:
    """The hulls of meshes, in the files' units, one after the other.

    A hull has no more vertices than the shape says, each chosen as the one that sticks out farthest of those before.
    Tables are as long as the longest one, by repetition of the last row.

    Args:
        source: What the shapes belong to, for messages.
        entries: The shapes that are meshes, one at least.
        dtype: Floating type of the vertices.

    Raises:
        ModelError: naming every shape whose mesh cannot be read, has no file, or encloses no volume.

    Warns:
        ModelWarning: once, naming every file that is not a closed surface, or of whose hull vertices are left out by
            which it sticks out visibly.
    """
    problems, doubts, found = [], {}, []
    for entry in entries:
        try:
            hull, doubt = _hull(*mesh_of(entry), entry.hull_vertices)
            found.append(hull)
            if doubt:
                doubts[f"{entry.path}: {doubt}"] = None
        except ValueError as error:
            problems.append(f"collision shape {entry.name!r} of link {entry.link!r}: {error}")
    if problems:
        raise ModelError(listed(source, "problem", problems))
    if doubts:
        warnings.warn(listed(source, "warning", [*doubts]), ModelWarning, stacklevel=4)
    vertices, faces, edges = (_of_one_length(tables) for tables in zip(*found, strict=True))
    # The model may be traced; files are not.
    with jax.ensure_compile_time_eval():
        return ConvexHull(jnp.asarray(vertices, dtype), jnp.asarray(faces, jnp.int32), jnp.asarray(edges, jnp.int32))


def scaled(hull: ConvexHull, scale: Float[Array, "3"]) -> ConvexHull:
    """A hull with other units along each axis; negative ones mirror it."""
    faces = jnp.where(jnp.prod(scale) < 0, hull.faces[:, ::-1], hull.faces)
    return ConvexHull(hull.vertices * scale[None], faces, hull.edges)


def mesh_of(entry: Shape) -> tuple[str, Mesh]:
    """The file of a shape, and the mesh in it.

    Raises:
        MeshError: if it has no file, or one that cannot be read.
    """
    if entry.path is None:
        raise MeshError("its mesh has no file that may be read; name its folder in package_dirs")
    return entry.path, read_mesh(entry.path)


@functools.lru_cache(maxsize=1024)
def _hull(path: str, mesh: Mesh, most: int) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], str]:
    """Vertices, faces and edges of the hull of a mesh, and what is doubtful about it."""
    points = mesh.vertices.astype(float)
    kept, beyond = _corners(points, most)
    try:
        tables = hull_tables(kept)
    except ValueError as error:
        raise MeshError(f"{path}: {error}") from None
    doubts = [] if _is_closed(mesh.faces) else ["it is not a closed surface"]
    if beyond > _SEEN * np.linalg.norm(np.ptp(points, axis=0)):
        doubts.append(f"it sticks out of the hull of {len(kept)} of its vertices by {beyond:.2g} of its units")
    return tables, f"{' and '.join(doubts)}; it touches as this hull" if doubts else ""


def _corners(points: Float[np.ndarray, "n 3"], most: int) -> tuple[Float[np.ndarray, "k 3"], float]:
    """The vertices of their hull that are kept, and by how much others stick out of the hull of these."""
    try:
        points = points[scipy.spatial.ConvexHull(points).vertices]
    except (scipy.spatial.QhullError, ValueError):
        # `hull_tables` says why there is none.
        return points, 0.0
    if len(points) <= most:
        return points, 0.0
    hull = scipy.spatial.ConvexHull(_corner_points(points), incremental=True)
    while True:
        heights = np.max(points @ hull.equations[:, :3].T + hull.equations[:, 3], axis=1)
        if len(hull.vertices) >= most or np.max(heights) <= 0:
            return hull.points[hull.vertices], float(np.max(heights))
        hull.add_points(points[[np.argmax(heights)]])


def _corner_points(points: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "4 3"]:
    """Four points that enclose a large volume."""
    first = points[np.argmax(points[:, 0])]
    chosen = [first, points[np.argmax(np.linalg.norm(points - first, axis=1))]]
    for _ in range(2):
        # Away from the line or the plane through those before.
        span = np.linalg.qr(np.transpose(chosen[1:] - first))[0]
        rest = points - first - (points - first) @ span @ span.T
        chosen.append(points[np.argmax(np.linalg.norm(rest, axis=1))])
    return np.array(chosen)


def _is_closed(faces: Int[np.ndarray, "m 3"]) -> bool:
    """Tell whether each edge belongs to two triangles, or to an even number where parts of a surface meet."""
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    counts = np.unique(edges, axis=0, return_counts=True)[1]
    return not np.any(counts % 2)


def _of_one_length(tables: Sequence[np.ndarray]) -> np.ndarray:
    """With the last row of shorter ones repeated."""
    longest = max(map(len, tables))
    return np.stack([np.pad(table, [(0, longest - len(table)), (0, 0)], mode="edge") for table in tables])
