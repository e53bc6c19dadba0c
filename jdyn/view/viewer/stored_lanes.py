"""Lanes of a sweep's store, simulated again."""

from __future__ import annotations

import os
from typing import Any

from jdyn.sweep.contents import contents_of
from jdyn.sweep.outputs import Lane
from jdyn.sweep.replay import spec_of
from jdyn.sweep.stored import lane_of


class StoredLanes:
    """A store, and one lane of it.

    Attributes:
        size: Number of lanes.
        lane: The one that was taken last.
        words: Its parameters, and what is stored of it, by name.
    """

    def __init__(self, store: str | os.PathLike):
        """
        Raises:
            ValueError: if it is no store, or one of a sweep of a function, which says no more than its name.
            OSError: if it cannot be read.
        """
        self.lane = 0
        self.words: dict[str, Any] = {}
        self._contents = contents_of(store)
        self.size = self._contents.size
        self._spec = spec_of(self._contents, "simulate a lane with this function, and give jdyn.view its motion")

    def take(self, number: int) -> Lane:
        """Simulate a lane again, with its own model.

        Raises:
            ValueError: if there is no such lane.
            OSError: if it cannot be read.
        """
        parameters, stored = lane_of(self._contents, number)
        with self._spec.precision():
            lane = self._spec.lane(parameters)
        self.lane = number
        self.words = parameters | stored
        return lane
