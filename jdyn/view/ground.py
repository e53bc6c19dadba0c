"""The ground that a model brings along."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jdyn.model import WORLD, Model

# Cosine of the steepest slope that is drawn as ground, on which light still falls from above.
_STEEPEST = 0.7


class Plane(NamedTuple):
    """The surface of a half-space.

    Attributes:
        axes: Rows are two directions in the plane, and its normal, which points out of what is solid.
        point: On the plane [m].
    """

    axes: np.ndarray
    point: np.ndarray


def planes(model: Model) -> list[Plane]:
    """Planes that are fixed to the world."""
    shapes = model.shapes
    if shapes is None:
        return []
    rotation, translation = (np.asarray(x, float) for x in (shapes.placements.rotation, shapes.placements.translation))
    return [
        Plane(rotation[row].T, translation[row])
        for row, entry in enumerate(shapes.entries)
        if entry.kind == "plane" and entry.body == WORLD
    ]


def ground_of(model: Model, up: np.ndarray) -> Plane | None:
    """The most level of these planes, or None where all are steep.

    Args:
        model: The mechanism.
        up: Unit vector of the vertical, shape (3,).
    """
    found = max(planes(model), key=lambda plane: plane.axes[2] @ up, default=None)
    return None if found is None or found.axes[2] @ up < _STEEPEST else found
