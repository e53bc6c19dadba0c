"""The plane of mechanisms that move in one."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from jdyn.dynamics.kinematics import forward_kinematics, joint_kinematics
from jdyn.model import Model


def plane_of_motion(model: Model) -> Float[np.ndarray, "2 3"] | None:
    """The normal of the plane in which all bodies move, towards someone who sees x or y to the right, and the direction
    in it that is up; None if they do not.

    Every joint turns about the normal, or slides in the plane. Up is against gravity; where this has no part in the
    plane, it is z or y.

    Args:
        model: The mechanism.
    """
    turns, slides = _axes(model)
    if not len(turns):
        return None
    normal = turns[0] / np.linalg.norm(turns[0])
    if np.any(np.abs(np.cross(turns, normal)) > 1e-6) or np.any(np.abs(slides @ normal) > 1e-6):
        return None
    up = _up(np.asarray(model.gravity, float), normal)
    right = np.cross(up, normal)
    return np.stack([normal * (1 if right[np.argmax(np.abs(right))] > 0 else -1), up])


def _axes(model):
    """Rotation axes and sliding directions of all joints in the neutral configuration, in the world."""
    q = model.neutral()
    rotations = np.asarray(forward_kinematics(model, q).rotation, float)
    turns, slides = [], []
    for group, subspaces in zip(model.topology.groups, joint_kinematics(model, model.expand(q)).S, strict=True):
        for body, subspace in zip(group.bodies, np.asarray(subspaces, float), strict=True):
            turns.extend((rotations[body] @ subspace[:3]).T)
            slides.extend((rotations[body] @ subspace[3:]).T)
    turns = np.reshape(turns, (-1, 3))
    return turns[np.any(turns != 0, axis=1)], np.reshape(slides, (-1, 3))


def _up(gravity, normal):
    for direction in (-gravity, np.array([0.0, 0, 1]), np.array([0.0, 1, 0])):
        up = direction - normal * (normal @ direction)
        if np.linalg.norm(up) > 1e-6 * max(np.linalg.norm(direction), 1):
            return up / np.linalg.norm(up)
    raise ValueError(f"normal: expected a unit vector, got {normal}")
