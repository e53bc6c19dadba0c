"""Rods along the links of a model that has no shapes."""

from __future__ import annotations

import collections

import numpy as np
from scipy.spatial.transform import Rotation

from jdyn.model import WORLD, Free, Model, Prismatic
from jdyn.view.inertia_ellipsoids import inertia_ellipsoids
from jdyn.view.solids import Triangles, box, rod, sphere

# Radius of a rod: a share of the usual link, but slender beside the whole mechanism. Every other one of a chain is
# thinner, and so are rods that may begin in one joint, by turns: two surfaces in one place are drawn as a mixture.
_OF_LINK, _OF_WHOLE, _THINNER, _TURNS = 0.12, 1 / 30, 0.93, (1, 0.98, 0.96)
# Longest side of a box within a mechanism, as a share of this.
_LUMP = 0.35
# Radius of a ball for a mechanism without any size [m].
_POINT = 0.05


def skeleton(model: Model) -> dict[int, list[Triangles]]:
    """Solids that show where the bodies of a mechanism are, each in its body's frame [m].

    A rod leads from the origin of a body to every joint that it carries, and from the last body of a branch to its
    frames, or to its centre of mass where it has none. A body without any such length is a box with its inertia, as of
    one density, or a ball where that would be larger than what is around. A joint's place on the world has a rod as
    well, unless the joint is free, and a joint that slides between two ends has a thin rod from one to the other.

    Args:
        model: The mechanism.

    Returns:
        The solids of each body that has some; -1 is the world.
    """
    ends = {body: _ends(model, body) for body in range(WORLD, model.nb)}
    lengths = [length for points in ends.values() if (length := _longest(points)) > 0]
    whole = max([sum(_longest(ends[body]) for body in path) for path in model.topology.supports] + lengths, default=0.0)
    radius = min(_OF_LINK * np.median(lengths), _OF_WHOLE * whole) if lengths else 0.0
    solids, rods = {}, collections.Counter()
    for body, points in ends.items():
        depth = 0 if body == WORLD else len(model.topology.supports[body])
        thickness = radius * (_THINNER if depth % 2 else 1)
        far = [point for point in points if np.linalg.norm(point) > radius]
        if far:
            turns = [_TURNS[(rods[depth] + number) % len(_TURNS)] for number in range(len(far))]
            solids[body] = [rod(np.zeros(3), point, turn * thickness) for point, turn in zip(far, turns, strict=True)]
            rods[depth] += len(far)
        elif body != WORLD:
            solids[body] = [_lump(model, body, thickness, _LUMP * whole if lengths else np.inf)]
    for body, start, end in _rails(model):
        solids.setdefault(body, []).append(rod(start, end, radius / 2 or _POINT / 4))
    return solids


def _rails(model):
    """Rails of joints that slide and have ends: the body that carries the rail, and its ends [m]."""
    topology, lower, upper = model.topology, np.asarray(model.limits.lower), np.asarray(model.limits.upper)
    for group, joints in zip(topology.groups, model.joints, strict=True):
        if not isinstance(joints, Prismatic):
            continue
        for body, axis in zip(group.bodies, np.asarray(joints.axis, float), strict=True):
            (low,), (high,) = lower[topology.q_slice(body)], upper[topology.q_slice(body)]
            origin = np.asarray(model.placements.translation[body], float)
            along = np.asarray(model.placements.rotation[body], float) @ axis
            if np.isfinite(high - low):
                yield topology.parents[body], origin + low * along, origin + high * along


def _ends(model, body) -> list[np.ndarray]:
    """Ends of rods from the origin of a body."""
    topology = model.topology
    children = [child for child, parent in enumerate(topology.parents) if parent == body]
    if body == WORLD:
        children = [child for child in children if topology.kinds[child] is not Free]
    if children or body == WORLD:
        return [np.asarray(model.placements.translation[child], float) for child in children]
    carried = [frame for frame, carrier in enumerate(topology.frame_bodies) if carrier == body]
    frames = [np.asarray(model.frames.translation[frame], float) for frame in carried]
    return [frame for frame in frames if np.any(frame)] or [_center(model, body)]


def _longest(points) -> float:
    return max((float(np.linalg.norm(point)) for point in points), default=0.0)


def _lump(model, body, radius, largest) -> Triangles:
    """The box of one density with a body's inertia, whose second moments along its axes are m s² / 12 for the sides s;
    a ball where that is too thin or too large."""
    center, axes, radii = (x[body] for x in inertia_ellipsoids(model))
    sides = np.sqrt(12 / 5) * radii
    if np.min(sides) <= radius or np.max(sides) > largest:
        return sphere(1.5 * radius or _POINT)
    vertices, faces = box(sides)
    return Rotation.from_quat(np.roll(axes, -1)).apply(vertices).astype(np.float32) + center.astype(np.float32), faces


def _center(model, body) -> np.ndarray:
    mass = float(model.inertias.mass[body])
    return np.asarray(model.inertias.first_moment[body], float) / (mass if mass > 0 else 1)
