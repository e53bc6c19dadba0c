"""A gizmo that drags a body or frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from jdyn.view.viewer.drag import Drag
from jdyn.view.viewer.panels.panel import Ask, Panel, checked
from jdyn.view.viewer.session import Session
from jdyn.view.viewer.words import plain

POSITION, POSE = "position", "position and orientation"
# Farthest place to which something is dragged, in each direction [m].
FARTHEST = 1e6


class DragPanel(Panel):
    """Which body or frame is dragged, and how far it got."""

    def __init__(self, gui: Any, scene: Any, session: Session, size: float, ask: Ask):
        super().__init__(ask)
        self._session, self._drag = session, Drag(session.model)
        self._held = False
        if not self._drag.names:
            return
        self._on = gui.add_checkbox("drag with a gizmo", False)
        self._name = gui.add_dropdown("what", self._drag.names, initial_value=self._drag.hand)
        self._aim = gui.add_dropdown("to its", (POSITION, POSE), initial_value=POSITION)
        self._says = gui.add_markdown("")
        self._gizmo = scene.add_transform_controls(
            "/gizmo", 0.12 * size, depth_test=False, visible=False, disable_rotations=True
        )
        self.on_change(self._on, self._switch)
        self.on_change(self._name, lambda _: self._prepare())
        self.on_change(self._aim, lambda _: self._prepare())
        self._gizmo.on_update(self._moved)

    def refresh(self):
        # The gizmo is where the hand is until this lets it go.
        if self._drag.names and self._on.value and not self._held:
            self._follow()

    def _switch(self, on):
        self._gizmo.visible = on
        self._says.content = ""
        self._prepare()

    def _prepare(self):
        """Compile before a hand moves: to where it is anyhow."""
        self._gizmo.disable_rotations = self._aim.value == POSITION
        if self._on.value:
            self._follow()
            self._says.content = "compiling ..."
            self._says.content = plain(self._reach()[1])

    def _follow(self):
        position, rotation = self._drag.place(self._session.model, self._session.q, self._name.value)
        # A position is dragged along the axes of the world.
        self._gizmo.position = position
        self._gizmo.wxyz = rotation if self._aim.value == POSE else (1.0, 0.0, 0.0, 0.0)

    async def _moved(self, event):
        # Called in the order of events, since it awaits nothing. The newest place is the one that counts.
        self._ask("drag", self._pull)
        if event.phase == "end":
            self._ask("let go", self._let_go)
        else:
            self._held = True

    def _pull(self):
        q, says = self._reach()
        self._says.content = plain(says)
        self._session.take(q)

    def _reach(self):
        session, gizmo = self._session, self._gizmo
        name, aim = checked(self._name, self._name.value), checked(self._aim, self._aim.value)
        position, rotation = np.asarray(gizmo.position, float), np.asarray(gizmo.wxyz, float)
        if not (np.all(np.abs(position) <= FARTHEST) and abs(np.linalg.norm(rotation) - 1) < 1e-3):
            raise ValueError(f"{name}: expected a place within {FARTHEST:g} m and a quaternion of unit length")
        return self._drag.to(session.model, session.q, name, position, rotation if aim == POSE else None)

    def _let_go(self):
        self._held = False
        self._follow()
