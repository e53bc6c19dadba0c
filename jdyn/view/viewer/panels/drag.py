"""A gizmo that drags a body or frame."""

from __future__ import annotations

from typing import Any

from jdyn.view.viewer.drag import Drag
from jdyn.view.viewer.panels.panel import Ask, Panel
from jdyn.view.viewer.session import Session

POSITION, POSE = "position", "position and orientation"


class DragPanel(Panel):
    """Which body or frame is dragged, and how far it got."""

    def __init__(self, gui: Any, scene: Any, session: Session, size: float, ask: Ask):
        super().__init__(ask)
        self._session, self._drag = session, Drag(session.model)
        self._held = False
        if not self._drag.names:
            return
        deepest = max(range(session.model.nb), key=lambda body: len(session.model.topology.supports[body]))
        self._on = gui.add_checkbox("drag with a gizmo", False)
        self._name = gui.add_dropdown("what", self._drag.names, initial_value=session.model.body_names[deepest])
        self._aim = gui.add_dropdown("to its", (POSITION, POSE), initial_value=POSITION)
        self._says = gui.add_markdown("")
        self._gizmo = scene.add_transform_controls(
            "/gizmo", 0.25 * size, depth_test=False, visible=False, disable_rotations=True
        )
        self.on_change(self._on, self._switch)
        self.on_change(self._name, lambda _: self._follow())
        self.on_change(self._aim, self._aim_at)
        self._gizmo.on_update(self._moved)

    def refresh(self):
        # The gizmo is where the hand is until this lets it go.
        if self._drag.names and self._on.value and not self._held:
            self._follow()

    def _switch(self, on):
        self._gizmo.visible = on
        if on:
            self._follow()

    def _aim_at(self, aim):
        self._gizmo.disable_rotations = aim == POSITION
        self._follow()

    def _follow(self):
        place = self._drag.place(self._session.model, self._session.q, self._name.value)
        self._gizmo.position, self._gizmo.wxyz = place

    async def _moved(self, event):
        # Called in the order of events, since it awaits nothing. The newest place is the one that counts.
        self._ask("drag", self._pull)
        if event.phase == "end":
            self._ask("let go", self._let_go)
        else:
            self._held = True

    def _pull(self):
        rotation = self._gizmo.wxyz if self._aim.value == POSE else None
        session = self._session
        q, said = self._drag.to(session.model, session.q, self._name.value, self._gizmo.position, rotation)
        session.take(q)
        self._says.content = said

    def _let_go(self):
        self._held = False
        self._follow()
