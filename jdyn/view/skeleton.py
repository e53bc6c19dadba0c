"""Rods along the links of a model that has no shapes."""

from __future__ import annotations

import numpy as np

from jdyn.model import WORLD, Free, Model
from jdyn.spatial import symmetric
from jdyn.view.solids import Triangles, box, rod, sphere

# Radius of a rod: a share of the usual link, but slender beside the whole mechanism.
_OF_LINK, _OF_WHOLE = 0.12, 1 / 30


def skeleton(model: Model) -> dict[int, list[Triangles]]:
    """Solids that show where the bodies of a mechanism are, each in its body's frame [m].

    A rod leads from the origin of a body to every joint that it carries, and from the last body of a branch to its
    frames, or to its centre of mass where it has none. A body without any such length is a box with its inertia, as of
    one density, or a ball. A joint's place on the world has a rod as well, unless the joint is free.

    Args:
        model: The mechanism.

    Returns:
        The solids of each body that has some; -1 is the world.
    """
    ends = {body: _ends(model, body) for body in range(WORLD, model.nb)}
    lengths = [np.linalg.norm(end) for of_body in ends.values() for end in of_body]
    radius = _radius(model, ends, [length for length in lengths if length > 0])
    solids = {}
    for body, points in ends.items():
        far = [point for point in points if np.linalg.norm(point) > radius]
        if far:
            solids[body] = [rod(np.zeros(3), point, radius) for point in far]
        elif body != WORLD:
            solids[body] = [_lump(model, body, radius)]
    return solids


def _ends(model, body) -> list[np.ndarray]:
    """Where rods from the origin of a body end."""
    topology = model.topology
    children = [child for child, parent in enumerate(topology.parents) if parent == body]
    if body == WORLD:
        children = [child for child in children if topology.kinds[child] is not Free]
    if children or body == WORLD:
        return [np.asarray(model.placements.translation[child], float) for child in children]
    carried = [frame for frame, carrier in enumerate(topology.frame_bodies) if carrier == body]
    frames = [np.asarray(model.frames.translation[frame], float) for frame in carried]
    return [frame for frame in frames if np.any(frame)] or [_center(model, body)]


def _radius(model, ends, lengths) -> float:
    if not lengths:
        boxes = [_sides(model, body) for body in range(model.nb)]
        return float(max([np.min(sides) for sides in boxes if np.all(sides > 0)], default=0.1)) / 2
    longest = [max((np.linalg.norm(end) for end in ends[body]), default=0.0) for body in range(WORLD, model.nb)]
    whole = max(sum(longest[body - WORLD] for body in path) for path in model.topology.supports)
    return float(min(_OF_LINK * np.median(lengths), _OF_WHOLE * max(whole, max(lengths))))


def _lump(model, body, radius) -> Triangles:
    sides = _sides(model, body)
    if np.min(sides) <= radius:
        return sphere(1.5 * radius)
    vertices, faces = box(sides)
    return vertices @ _axes(model, body)[1].T.astype(np.float32) + _center(model, body).astype(np.float32), faces


def _sides(model, body) -> np.ndarray:
    """Sides of the box of one density that has a body's inertia [m]."""
    moments, _ = _axes(model, body)
    mass = float(model.inertias.mass[body])
    squares = 12 * (np.sum(moments) / 2 - moments) / mass if mass > 0 else np.zeros(3)
    return np.sqrt(np.maximum(squares, 0))


def _axes(model, body):
    """Principal moments about the centre of mass, and their axes as columns."""
    c, mass = _center(model, body), float(model.inertias.mass[body])
    about_origin = np.asarray(symmetric(model.inertias.rotational[body]), float)
    moments, axes = np.linalg.eigh(about_origin - mass * (c @ c * np.eye(3) - np.outer(c, c)))
    return moments, axes * [1, 1, np.sign(np.linalg.det(axes))]


def _center(model, body) -> np.ndarray:
    mass = float(model.inertias.mass[body])
    return np.asarray(model.inertias.first_moment[body], float) / (mass if mass > 0 else 1)
