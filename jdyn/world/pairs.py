"""Pairs of shapes of different objects, and which of them may meet in a window of time.

Source: Ruspini, Lee and Khatib, section 5.1: boxes about shapes first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jdyn.contact import colliders, pairs_if_any
from jdyn.contact.points import placed
from jdyn.dynamics import forward_kinematics
from jdyn.model import WORLD
from jdyn.simulation import System
from jdyn.world.boxes import boxes_of
from jdyn.world.places import owner


class ShapePairs(NamedTuple):
    """Pairs of shapes of different objects that may touch.

    Attributes:
        owners: Number of the object of each shape.
        first, second: Shapes of each pair.
        planes: Normal and distance from the origin of each shape that is a plane in the world, else NaN.
        lower, upper: Ends of the boxes about shapes that do not move [m].
    """

    owners: np.ndarray
    first: np.ndarray
    second: np.ndarray
    planes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def of(cls, system: System, names: tuple[str, ...]) -> ShapePairs:
        """All pairs of a merged system of objects with these names."""
        if not pairs_if_any(system.model):
            none = np.zeros(0, int)
            return cls(none, none, none, np.zeros((0, 4)), np.zeros((0, 3)), np.zeros((0, 3)))
        found = colliders(system.model)
        owners = np.array([names.index(owner(entry.name)) for entry in found.entries])
        first, second = np.array(found.pairs).T
        apart = owners[first] != owners[second]
        poses = forward_kinematics(system.model, system.model.neutral())
        X, box = placed(found, poses), boxes_of(found, poses)
        normals = np.asarray(X.rotation)[:, :, 2]
        planes = np.column_stack([normals, np.sum(normals * np.asarray(X.translation), axis=1)])
        still = [entry.kind == "plane" and entry.body == WORLD for entry in found.entries]
        planes = np.where(np.array(still)[:, None], planes, np.nan)
        return cls(owners, first[apart], second[apart], planes, np.asarray(box.lower), np.asarray(box.upper))

    def meeting(self, lower: np.ndarray, upper: np.ndarray) -> list[tuple[int, int]]:
        """Objects of pairs of which the boxes meet, each pair of objects once.

        Args:
            lower, upper: Ends of a box about each shape [m].
        """
        a, b = self.first, self.second
        meet = np.all((lower[a] <= upper[b]) & (lower[b] <= upper[a]), axis=1)
        for plane, other in ((a, b), (b, a)):
            normal, height = self.planes[plane, :3], self.planes[plane, 3]
            # Infinite boxes have no lowest corner.
            with np.errstate(invalid="ignore"):
                lowest = np.sum(np.where(normal > 0, lower[other], upper[other]) * normal, axis=1)
                meet &= ~(lowest > height)
        pairs = np.column_stack([self.owners[a[meet]], self.owners[b[meet]]])
        return [(int(i), int(j)) for i, j in np.unique(np.sort(pairs, axis=1), axis=0)]
