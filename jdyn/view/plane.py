"""The plane of mechanisms that move in one."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from jdyn.model import WORLD, Continuous, Model, Planar, Prismatic, Revolute


def plane_of_motion(model: Model) -> Float[np.ndarray, "2 3"] | None:
    """The normal of the plane in which all bodies move, towards someone who sees x or y to the right, and the direction
    in it that is up; None if they do not.

    Every joint turns about the normal, or slides in the plane. Up is against gravity; where this has no part in the
    plane, it is z or y.

    Args:
        model: The mechanism.
    """
    axes = _axes(model)
    if axes is None or not len(axes[0]):
        return None
    turns, slides = axes
    normal = turns[0] / np.linalg.norm(turns[0])
    if np.any(np.abs(np.cross(turns, normal)) > 1e-6) or np.any(np.abs(slides @ normal) > 1e-6):
        return None
    up = _up(np.asarray(model.gravity, float), normal)
    right = np.cross(up, normal)
    return np.stack([normal * (1 if right[np.argmax(np.abs(right))] > 0 else -1), up])


def _axes(model):
    """Directions in the world about which joints turn, and along which they slide, where all coordinates are zero; None
    if a joint does anything else."""
    turns, slides = [], []
    rotations = _rotations(model)
    for group, joints in zip(model.topology.groups, model.joints, strict=True):
        if isinstance(joints, Revolute | Continuous):
            directions, found = joints.axis, turns
        elif isinstance(joints, Planar):
            directions, found = joints.normal, turns
        elif isinstance(joints, Prismatic):
            directions, found = joints.axis, slides
        else:
            return None
        bodies = zip(group.bodies, np.asarray(directions, float), strict=True)
        found.extend(rotations[body] @ direction for body, direction in bodies)
    return np.reshape(turns, (-1, 3)), np.reshape(slides, (-1, 3))


def _rotations(model):
    """Rotations of the bodies in the world, where all coordinates are zero."""
    rotations = []
    for parent, placement in zip(model.topology.parents, np.asarray(model.placements.rotation, float), strict=True):
        rotations.append(placement if parent == WORLD else rotations[parent] @ placement)
    return rotations


def _up(gravity, normal):
    for direction in (-gravity, np.array([0.0, 0, 1]), np.array([0.0, 1, 0])):
        up = direction - normal * (normal @ direction)
        if np.linalg.norm(up) > 1e-6 * max(np.linalg.norm(direction), 1):
            return up / np.linalg.norm(up)
    raise ValueError(f"normal: expected a unit vector, got {normal}")
