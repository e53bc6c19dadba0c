"""Simulating again, with other gains."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jdyn.view.viewer.experiment import Experiment
from jdyn.view.viewer.panels.panel import Ask, Panel, checked
from jdyn.view.viewer.session import Session

# Length of a simulation where nothing says it [s].
USUAL = 5.0


class SimulationPanel(Panel):
    """A simulation from the start of the motion, or from where the robot is at rest; gains simulate again at once."""

    def __init__(self, gui: Any, session: Session, experiment: Experiment, seconds: float | None, ask: Ask):
        super().__init__(ask)
        self._session, self._experiment = session, experiment
        self._start = session.q, jnp.zeros(session.model.nv, session.model.dtype)
        # Number of the motion whose start this is.
        self._of = 0
        self._begin_where_the_motion_does()
        if session.motion is not None:
            seconds = seconds or session.motion.end(session.lane) - session.motion.start(session.lane)
        self._length = gui.add_number("for [s]", float(seconds or USUAL), min=0.01, max=1e6, step=0.01)
        self._gains = {
            name: gui.add_slider(name, low, high, (high - low) / 500, (low + high) / 2)
            for name, (low, high) in experiment.gains.items()
        }
        here = gui.add_button("Simulate from here", hint="from the configuration that is shown, at rest")
        again = gui.add_button("Simulate again", hint="from the same start as before")
        self._says = gui.add_markdown("The first simulation compiles, which takes a while.")
        self.on_click(here, self._from_here)
        self.on_click(again, self.run)
        for slider in self._gains.values():
            self.on_change(slider, lambda _: self.run())

    def run(self) -> None:
        """Simulate from the start of the motion that is shown."""
        self._begin_where_the_motion_does()
        self._says.content = "simulating ..."
        try:
            gains = {name: checked(slider, slider.value) for name, slider in self._gains.items()}
            length = checked(self._length, self._length.value)
            trajectory, seconds = self._experiment.run(self._session.model, *self._start, length, gains)
            self._session.load(trajectory)
            self._of = self._session.motions
        except Exception:
            self._says.content = "the simulation failed"
            raise
        outcome = self._session.motion.outcome(0)  # type: ignore[union-attr]
        self._says.content = f"{outcome}, {self._session.player.end:.4g} s of motion in {seconds:.3g} s"

    def _begin_where_the_motion_does(self):
        """Unless the motion was simulated here, from a start that is known."""
        session = self._session
        if session.motion is not None and self._of != session.motions:
            start = session.motion.q[session.lane, 0], session.motion.v[session.lane, 0]
            self._start, self._of = (jnp.asarray(start[0]), jnp.asarray(start[1])), session.motions

    def _from_here(self):
        self._start = self._session.q, jnp.zeros_like(self._start[1])
        self._of = self._session.motions
        self.run()
        self._session.jump(0.0)
        self._session.player.play()
