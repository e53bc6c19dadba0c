"""Sliders of joints."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jdyn.view.viewer.coordinates import coordinates, from_sliders, to_sliders
from jdyn.view.viewer.panels.panel import Ask, Panel
from jdyn.view.viewer.session import Session

# Steps of a slider from end to end.
STEPS = 1000


class JointPanel(Panel):
    """A slider for each degree of freedom; joints that follow others have none."""

    def __init__(self, gui: Any, session: Session, ask: Ask):
        super().__init__(ask)
        self._session, self._draws = session, 0
        # The configuration that sliders asked for last.
        self._own: Array | None = None
        home, random = gui.add_button("Home"), gui.add_button("Random")
        self._text = gui.add_text("q", "", hint="the configuration, to copy, or to paste another one [rad or m]")
        self._ranges = coordinates(session.model)
        self._sliders = [
            gui.add_slider(
                f"{of.name} [{of.unit}]", of.lower, of.upper, (of.upper - of.lower) / STEPS,
                min(max(0.0, of.lower), of.upper),
            )
            for of in self._ranges
        ]  # fmt: skip
        self.on_click(home, lambda: session.take(session.model.neutral()))
        self.on_click(random, self._draw)
        self.on_change(self._text, self._read)
        for number, slider in enumerate(self._sliders):
            self.on_change(slider, lambda value, number=number: self._take(number, value))
        self.refresh()

    def refresh(self):
        # A slider that is moved would be pulled back to where it was a moment ago.
        if self._session.q is not self._own:
            numbers = np.asarray(to_sliders(self._session.model, self._session.q))
            for slider, number, of in zip(self._sliders, numbers, self._ranges, strict=True):
                slider.value = float(np.clip(number, of.lower, of.upper))
        self._text.value = ", ".join(f"{x:.5g}" for x in np.asarray(self._session.q))

    def _take(self, number, value):
        model = self._session.model
        numbers = to_sliders(model, self._session.q).at[number].set(value)
        self._own = from_sliders(model, numbers)
        self._session.take(self._own)

    def _draw(self):
        self._draws += 1
        self._session.take(self._session.model.random(jax.random.key(self._draws)))

    def _read(self, text):
        model = self._session.model
        try:
            q = np.array([float(word) for word in text.replace("[", " ").replace("]", " ").replace(",", " ").split()])
        except ValueError:
            q = np.zeros(0)
        if q.shape != (model.nq,) or not np.isfinite(q).all():
            raise ValueError(f"q: expected {model.nq} numbers for {model.name!r}, got {text!r}")
        self._session.take(model.normalize(jnp.asarray(q, model.dtype)))
