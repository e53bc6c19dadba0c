"""Lanes of a sweep's store."""

from __future__ import annotations

from typing import Any

import numpy as np

from jdyn.view.viewer.panels.panel import Ask, Panel
from jdyn.view.viewer.session import Session
from jdyn.view.viewer.stored_lanes import StoredLanes
from jdyn.view.viewer.words import plain


class StorePanel(Panel):
    """Which lane is simulated again, and its parameters and results."""

    def __init__(self, gui: Any, session: Session, stored: StoredLanes, ask: Ask):
        super().__init__(ask)
        self._session, self._stored = session, stored
        self._lane = gui.add_number("lane of the store", stored.lane, min=0, max=stored.size - 1, step=1)
        self._says = gui.add_markdown("")
        self.on_change(self._lane, self._take)
        self._tell()

    def _take(self, number):
        self._says.content = f"simulating lane {number} ..."
        try:
            lane = self._stored.take(int(number))
            self._session.load(lane.motion, model=lane.model)
        finally:
            self._tell()

    def _tell(self):
        rows = [f"| {plain(name)} | {_short(value)} |" for name, value in self._stored.words.items()]
        self._says.content = "\n".join([f"| lane {self._stored.lane} | |", "|---|---|", *rows])


def _short(value):
    return " ".join(f"{x:.4g}" for x in np.ravel(value)[:4]) + (" ..." if np.size(value) > 4 else "")
