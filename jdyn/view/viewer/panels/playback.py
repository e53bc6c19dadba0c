"""Play, pause, scrub, record."""

from __future__ import annotations

from typing import Any

from jdyn.view.viewer.panels.panel import Ask, Panel
from jdyn.view.viewer.session import MOST_GHOSTS, Session

SPEEDS = {"1/10": 0.1, "1/4": 0.25, "1/2": 0.5, "1": 1.0, "2": 2.0, "4": 4.0}
NOTHING = "No motion yet: record one here, or simulate one."


class PlaybackPanel(Panel):
    """The motion: time, speed, lanes, recording."""

    def __init__(self, gui: Any, session: Session, ask: Ask):
        super().__init__(ask)
        self._session, self._seen = session, -1
        self._scrubbed: float | None = None
        self._says = gui.add_markdown(NOTHING)
        self._play = gui.add_button("Play")
        self._time = gui.add_slider("time [s]", 0.0, 1.0, 0.001, 0.0)
        self._speed = gui.add_dropdown("speed", tuple(SPEEDS), initial_value="1")
        self._loop = gui.add_checkbox("loop", session.player.looping)
        self._lane = gui.add_slider("lane", 0, 1, 1, 0, visible=False)
        self._ghosts = gui.add_slider(
            "other lanes", 0, MOST_GHOSTS, 1, 0, visible=False, hint="how many are shown besides, in pale blue"
        )
        self._record = gui.add_button("Record", hint="what is shown from now on: move sliders, drag, play")
        self.on_click(self._play, self._play_or_pause)
        self.on_change(self._time, self._scrub)
        self.on_change(self._speed, lambda name: setattr(session.player, "speed", SPEEDS[name]))
        self.on_change(self._loop, lambda value: setattr(session.player, "looping", value))
        self.on_change(self._lane, session.choose)
        self.on_change(self._ghosts, lambda value: setattr(session, "ghosts", value))
        self.on_click(self._record, self._start_or_stop)
        self.refresh()

    def refresh(self):
        session, player = self._session, self._session.player
        if session.motion is not None and session.motions != self._seen:
            self._seen = session.motions
            self._time.min, self._time.max = player.start, max(player.end, player.start + 1e-3)
            self._time.step = max((player.end - player.start) / 1000, 1e-6)
            several = session.lanes > 1
            self._lane.max, self._lane.visible, self._ghosts.visible = max(session.lanes - 1, 1), several, several
            self._lane.value = session.lane
            self._ghosts.max = max(min(session.lanes - 1, MOST_GHOSTS), 1)
            outcome = session.motion.outcome(session.lane)
            name = f"lane {session.lane} of {session.lanes}: " if several else ""
            self._says.content = f"{name}{player.start:.4g} s to {player.end:.4g} s, {outcome}"
        self._time.disabled = self._play.disabled = session.motion is None
        # A slider that is moved would be pulled back to where it was a moment ago.
        if player.time != self._scrubbed:
            self._time.value = player.time
        self._play.label = "Pause" if player.playing else "Play"
        self._record.label = "Stop recording" if session.recorder.recording else "Record"

    def _play_or_pause(self):
        player = self._session.player
        player.pause() if player.playing else player.play()

    def _scrub(self, time):
        self._session.player.pause()
        self._session.jump(time)
        self._scrubbed = self._session.player.time

    def _start_or_stop(self):
        if self._session.recorder.recording:
            self._session.finish_recording()
        else:
            self._session.recorder.start()
