"""Which side of a mesh is outside."""

import itertools

import numpy as np
from jaxtyping import Float32, Int32

from jdyn.view.rasterizer import nearest
from jdyn.view.solids import onto

# Meshes that look closed show their inside in up to 0.6 % of their pixels, along seams; those of a Panda do. One that
# lacks a face shows it in more than this from some side.
_SEAMS = 0.015
_PIXELS = 64


def turned_outward(
    vertices: Float32[np.ndarray, "n 3"], faces: Int32[np.ndarray, "m 3"]
) -> tuple[Int32[np.ndarray, "m 3"], bool]:
    """Faces that are anticlockwise from outside, and whether the mesh hides its inside.

    It is looked at from the 14 directions to the faces and the corners of a cube. What shows the backs of its faces
    alone is wound the wrong way round. What shows them nowhere needs only those that face a camera.

    Args:
        vertices: Of the mesh.
        faces: Numbers of the vertices of each triangle.
    """
    shares = np.array([_back_share(vertices, faces, direction) for direction in _DIRECTIONS])
    if np.all(shares > 1 - _SEAMS):
        return faces[:, ::-1], True
    return faces, bool(np.all(shares < _SEAMS))


_CUBE = np.array([d for d in itertools.product((-1.0, 0, 1), repeat=3) if np.sum(np.abs(d)) in (1, 3)])
_DIRECTIONS = _CUBE / np.linalg.norm(_CUBE, axis=1, keepdims=True)


def _back_share(vertices, faces, direction) -> float:
    """Share of the pixels that show the back of a face, seen along parallel rays from a direction."""
    seen_from = vertices @ onto(direction)
    offset = seen_from - seen_from.min(axis=0)
    offset *= _PIXELS / max(np.max(offset[:, :2]), np.finfo(np.float32).tiny)
    screen = (offset + np.array([0, 0, 1])).astype(np.float32)[faces].transpose(2, 1, 0)
    (x1, x2), (y1, y2) = screen[:2, 1:] - screen[:2, :1]
    seen = nearest(screen, np.zeros(screen.shape[1:], np.float32), (_PIXELS, _PIXELS))
    return float(np.mean((x1 * y2 < x2 * y1)[seen.triangles])) if len(seen.triangles) else 0.0
