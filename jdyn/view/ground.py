"""The ground that a model brings along."""

from __future__ import annotations

import numpy as np

from jdyn.model import WORLD, Model
from jdyn.spatial import Transform

# Cosine of the steepest slope that is drawn as ground, on which light still falls from above.
_STEEPEST = 0.7


def planes(model: Model) -> list[Transform]:
    """Poses of the planes that are fixed to the world; z points out of what is solid."""
    shapes = model.shapes
    if shapes is None:
        return []
    entries = enumerate(shapes.entries)
    rows = [row for row, entry in entries if entry.kind == "plane" and entry.body == WORLD]
    rotation, translation = (np.asarray(x, float) for x in (shapes.placements.rotation, shapes.placements.translation))
    return [Transform(rotation[row], translation[row]) for row in rows]


def ground_of(model: Model, up: np.ndarray) -> Transform | None:
    """Pose of the most level of these planes, or None where all are steep.

    Args:
        model: The mechanism.
        up: Unit vector of the vertical, shape (3,).
    """
    found = max(planes(model), key=lambda X: X.rotation[:, 2] @ up, default=None)
    return None if found is None or found.rotation[:, 2] @ up < _STEEPEST else found
