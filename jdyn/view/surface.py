"""Parts as a renderer wants them: no finer than a picture shows, with the normals of smooth surfaces."""

import dataclasses
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float32

from jdyn.view.scene import Part
from jdyn.view.winding import turned_outward

# Neighbouring faces that meet at a smaller angle than 40° belong to one smooth surface.
_CREASE = np.cos(np.radians(40))
# A part that is thinner, as a share of its length, is a line, which has no face.
_THINNEST = 1e-4


@dataclasses.dataclass(frozen=True)
class Surface:
    """Triangles of one body, in its frame.

    Attributes:
        body: The body; -1 is the world.
        closed: Whether only faces that face the camera can be seen.
        corners: x, y and z [m] of the three corners of each triangle.
        normals: Unit vectors at the corners.
        colors: Red, green and blue of each triangle, from 0 to 1.
        opacity: From 0 to 1.
    """

    body: int
    closed: bool
    corners: Float32[np.ndarray, "3 3 m"]
    normals: Float32[np.ndarray, "3 3 m"]
    colors: Float32[np.ndarray, "m 3"]
    opacity: float


def surfaces(parts: Iterable[Part], detail: float) -> list[Surface]:
    """The surfaces of the bodies, in at most two pieces each for each opacity.

    Args:
        parts: What is drawn.
        detail: Smallest length that is kept [m]. Vertices in one cube of this size become one.
    """
    alike: dict[tuple[int, bool, float], list] = {}
    for part in parts:
        vertices, faces, kept = simplified(part.vertices, part.faces, detail)
        if len(faces):
            faces, closed = turned_outward(vertices, faces)
            colors = np.broadcast_to(part.color, (len(part.faces), 3))[kept]
            arrays = vertices[faces], corner_normals(vertices, faces), colors
            alike.setdefault((part.body, closed, part.opacity), []).append(arrays)
    return [_surface(*which, *map(np.concatenate, zip(*arrays, strict=True))) for which, arrays in alike.items()]


def _surface(body, closed, opacity, corners, normals, colors) -> Surface:
    corners, normals = (np.ascontiguousarray(x.transpose(2, 1, 0), np.float32) for x in (corners, normals))
    return Surface(body, closed, corners, normals, colors.astype(np.float32), opacity)


def simplified(vertices, faces, detail: float):
    """A coarser mesh: vertices within one cube of a grid become their mean, and faces without an area go.

    Where that would leave no face, the cubes are halved until it does not: what is small or thin is still drawn. What
    has no size has no face.

    Args:
        vertices: Shape (n, 3) [m].
        faces: Shape (m, 3).
        detail: Side of the cubes [m].

    Returns:
        Vertices, faces, and the number of each face in the finer mesh.
    """
    vertices = np.asarray(vertices, float)
    size = np.max(np.ptp(vertices, axis=0)) if len(vertices) else 0.0
    of, kept = _merged(vertices, faces, detail)
    while not len(kept) and detail > _THINNEST * size > 0:
        detail = min(detail / 2, size)
        of, kept = _merged(vertices, faces, detail)
    means = np.stack([np.bincount(of, x) for x in vertices.T], axis=1) / np.bincount(of)[:, None]
    merged = of[faces]
    _, first = np.unique(np.sort(merged[kept], axis=1), axis=0, return_index=True)
    kept = kept[np.sort(first)]
    return means.astype(np.float32), merged[kept], kept


def _merged(vertices, faces, detail: float) -> tuple[np.ndarray, np.ndarray]:
    """The cube that each vertex is in, counted, and the faces whose corners are in three of them."""
    cells = np.floor(vertices / detail).astype(np.int64)
    _, of = np.unique(cells, axis=0, return_inverse=True)
    of = of.ravel()
    a, b, c = of[faces].T
    return of, np.flatnonzero((a != b) & (b != c) & (c != a))


def corner_normals(vertices, faces) -> Float32[np.ndarray, "m 3 3"]:
    """Unit normals at the corners of each face: the mean of the faces around it that belong to one smooth surface,
    weighted by their areas.

    Args:
        vertices: Shape (n, 3).
        faces: Shape (m, 3).
    """
    a, b, c = vertices[faces].astype(float).transpose(1, 0, 2)
    areas = np.cross(b - a, c - a)
    sizes = np.linalg.norm(areas, axis=1)
    flat = areas / np.where(sizes > 0, sizes, 1)[:, None]
    mine, theirs = _corners_at_one_vertex(faces)
    smooth = np.einsum("pi,pi->p", flat[mine // 3], flat[theirs // 3]) >= _CREASE
    sums = np.stack([np.bincount(mine, area[theirs // 3] * smooth, faces.size) for area in areas.T], axis=1)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    normals = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), [0, 0, 1])
    return normals.reshape(-1, 3, 3).astype(np.float32)


def _corners_at_one_vertex(faces):
    """All pairs of corners, numbered as in `faces.ravel()`, that are at one vertex; each with itself as well."""
    vertex = faces.ravel()
    by_vertex, counts = np.argsort(vertex, kind="stable"), np.bincount(vertex)
    first = np.cumsum(counts) - counts
    partners = counts[vertex]
    mine = np.repeat(np.arange(len(vertex)), partners)
    place = np.arange(len(mine)) - np.repeat(np.cumsum(partners) - partners, partners)
    return mine, by_vertex[first[vertex[mine]] + place]
