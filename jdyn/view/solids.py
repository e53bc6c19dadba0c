"""Closed triangle meshes of simple solids, with outward normals."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Int32

Triangles = tuple[Float32[np.ndarray, "n 3"], Int32[np.ndarray, "m 3"]]

# Sides of what is round. A polygon with so many is 0.9 % thinner than its circle.
SIDES = 24


def box(sides) -> Triangles:
    """A box about the origin.

    Args:
        sides: Full lengths along x, y and z [m].

    Returns:
        Vertices [m] and the vertex numbers of each triangle.
    """
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))]
    return _triangles(corners * np.asarray(sides) / 2, faces)


def sphere(radius: float) -> Triangles:
    """A ball about the origin; `radius` in [m]."""
    return ellipsoid((radius, radius, radius))


def ellipsoid(semiaxes) -> Triangles:
    """An ellipsoid about the origin.

    Args:
        semiaxes: Half its lengths along x, y and z [m].
    """
    latitude = np.linspace(-np.pi / 2, np.pi / 2, SIDES // 2 + 1)[1:-1]
    vertices, faces = _revolved(np.cos(latitude), np.sin(latitude), -1, 1)
    return _triangles(vertices * np.asarray(semiaxes), faces)


def cylinder(radius: float, length: float) -> Triangles:
    """A cylinder about the origin, along z; sizes in [m]."""
    end = length / 2
    return _revolved(np.array([radius, radius]), np.array([-end, end]), -end, end)


def capsule(radius: float, length: float) -> Triangles:
    """A cylinder along z with half balls on its ends, about the origin.

    Args:
        radius: Of the cylinder and the balls [m].
        length: Of the cylinder, without the balls [m].
    """
    latitude = np.linspace(0, np.pi / 2, SIDES // 4 + 1)[:-1]
    radii, heights = radius * np.cos(latitude), length / 2 + radius * np.sin(latitude)
    top = length / 2 + radius
    return _revolved(np.concatenate([radii[::-1], radii]), np.concatenate([-heights[::-1], heights]), -top, top)


def rod(start, end, radius: float) -> Triangles:
    """A capsule from one point to another.

    Args:
        start, end: Centres of its half balls [m].
        radius: Of the capsule [m].
    """
    start, end = np.asarray(start, float), np.asarray(end, float)
    length = float(np.linalg.norm(end - start))
    vertices, faces = capsule(radius, length)
    if length > 0:
        vertices = vertices @ onto((end - start) / length).T
    return _triangles(vertices + (start + end) / 2, faces)


def surface(heights, sides) -> Triangles:
    """A height field: the triangles of its cells, open below.

    Args:
        heights: A row for each y, a column for each x [m].
        sides: Lengths along x and y [m].
    """
    heights = np.asarray(heights)
    rows, columns = heights.shape
    x, y = (np.linspace(-side / 2, side / 2, count) for side, count in zip(sides, (columns, rows), strict=True))
    vertices = np.stack([*np.meshgrid(x, y), heights], axis=-1).reshape(-1, 3)
    first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    faces = [[first, first + 1, first + columns + 1], [first, first + columns + 1, first + columns]]
    return _triangles(vertices, np.concatenate([np.stack(corners, axis=-1) for corners in faces]))


def _revolved(radii, heights, bottom, top) -> Triangles:
    """The surface that a line from the pole at `bottom` over rings to the pole at `top` sweeps about z."""
    angle = 2 * np.pi * np.arange(SIDES) / SIDES
    circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(SIDES)], axis=-1)
    rings = radii[:, None, None] * circle + heights[:, None, None] * np.array([0, 0, 1])
    vertices = np.concatenate([rings.reshape(-1, 3), [[0, 0, bottom], [0, 0, top]]])
    here = np.arange(len(radii) * SIDES).reshape(len(radii), SIDES)
    after = np.roll(here, -1, axis=1)
    lower, upper = len(vertices) - 2, len(vertices) - 1
    faces = [
        np.stack([here[:-1], after[:-1], after[1:]], axis=-1),
        np.stack([here[:-1], after[1:], here[1:]], axis=-1),
        np.stack([np.full(SIDES, lower), after[0], here[0]], axis=-1),
        np.stack([np.full(SIDES, upper), here[-1], after[-1]], axis=-1),
    ]
    return _triangles(vertices, np.concatenate([part.reshape(-1, 3) for part in faces]))


def onto(direction: np.ndarray) -> np.ndarray:
    """A rotation that takes z to `direction`, a unit vector."""
    other = np.eye(3)[np.argmin(np.abs(direction))]
    x = np.cross(other, direction)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(direction, x), direction], axis=-1)


def _triangles(vertices, faces) -> Triangles:
    return np.asarray(vertices, np.float32), np.asarray(faces, np.int32)
