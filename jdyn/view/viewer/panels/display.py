"""Panel that says what is visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jdyn.view.look import LOOKS
from jdyn.view.viewer.drawing import Drawing
from jdyn.view.viewer.panels.panel import Ask, Panel

NOBODY = "nobody"


class DisplayPanel(Panel):
    """Choice of how links look, what marks there are, and whom the camera follows."""

    def __init__(self, gui: Any, drawing: Callable[[], Drawing], bodies: tuple[str, ...], ask: Ask):
        """
        Args:
            gui: `server.gui` of viser.
            drawing: What is drawn; another one after another model.
            bodies: Names, for the camera.
            ask: The worker.
        """
        super().__init__(ask)
        now = drawing()
        look = gui.add_dropdown("links", LOOKS, initial_value=now.look)
        self.on_change(look, lambda look: drawing().show_links(look))
        opacity = gui.add_slider("opacity", 0.1, 1.0, 0.05, now.opacity, hint="of links, to see what is within")
        self.on_change(opacity, lambda opacity: drawing().fade(opacity))
        for name, mark in now.marks.items():
            box = gui.add_checkbox(mark.says, mark.shown)
            self.on_change(box, lambda value, name=name: drawing().marks[name].show(value))
        self._followed = gui.add_dropdown("the camera follows", (NOBODY, *bodies), initial_value=NOBODY)
        self._bodies = bodies

    @property
    def followed(self) -> int | None:
        """The body that the camera follows."""
        name = self._followed.value
        return None if name == NOBODY else self._bodies.index(name)
