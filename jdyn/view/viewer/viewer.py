"""The viewer: a page in a browser that shows a robot."""

from __future__ import annotations

import atexit
import os
import pathlib
import threading
import traceback
from typing import NamedTuple

import imageio.v3 as iio
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from jdyn.model import Model, checked
from jdyn.simulation import Trajectory
from jdyn.view.look import Look
from jdyn.view.viewer.drawing import Drawing
from jdyn.view.viewer.experiment import Experiment
from jdyn.view.viewer.page import write_page
from jdyn.view.viewer.panels.display import DisplayPanel
from jdyn.view.viewer.panels.drag import DragPanel
from jdyn.view.viewer.panels.joints import JointPanel
from jdyn.view.viewer.panels.panel import Panel
from jdyn.view.viewer.panels.playback import PlaybackPanel
from jdyn.view.viewer.panels.plots import PlotPanel
from jdyn.view.viewer.panels.simulation import SimulationPanel
from jdyn.view.viewer.panels.store import StorePanel
from jdyn.view.viewer.posed import posed, posed_lanes
from jdyn.view.viewer.server import start_server, stop_server
from jdyn.view.viewer.session import Session
from jdyn.view.viewer.stored_lanes import StoredLanes
from jdyn.view.viewer.words import plain
from jdyn.view.viewer.worker import Worker

# Ticks from one refreshing of the panels to the next: numbers that change faster are not read.
REFRESH = 4


class _Shown(NamedTuple):
    """State that the page depends on. Models and arrays are never changed, but replaced."""

    model: Model
    q: Array
    time: float
    playing: bool
    motions: int
    ghosts: int
    recording: bool

    def differs(self, other: _Shown) -> bool:
        return self.model is not other.model or self.q is not other.q or self[2:] != other[2:]


class Viewer:
    """A page that shows a robot, until it is closed. `jdyn.view` opens one.

    Everything happens in one thread of its own: the methods below ask for it, and return at once
    unless they say that they wait.
    """

    def __init__(
        self, model: Model, trajectory: Trajectory | None, lane: int, experiment: Experiment,
        stored: StoredLanes | None, look: Look, seconds: float | None, host: str, port: int,
    ):  # fmt: skip
        # Threads begin in the precision that JAX is set to, which may not be the model's.
        self._x64 = model.dtype == jnp.float64
        with jax.enable_x64(self._x64):
            self._session = Session(model, trajectory, lane)
        self._server = start_server(host, port)
        # Whether there is something new for the panels, and when they were refreshed last.
        self._stale, self._ticks = False, 0
        self._drawn: _Shown | None = None
        # Where the body was that cameras follow.
        self._followed: np.ndarray | None = None
        self._worker = Worker(self._tick, self._tell_error, self._x64)
        try:
            with jax.enable_x64(self._x64):
                self._add(experiment, stored, look, seconds)
        except BaseException:
            stop_server(self._server)
            raise
        self._worker.start()
        # Threads that compute while Python ends make it crash.
        atexit.register(self.close)
        if experiment.gains and trajectory is None:
            self.simulate()

    def _add(self, experiment, stored, look, seconds):
        gui, scene, session = self._server.gui, self._server.scene, self._session
        self._drawing = Drawing(scene, session.model, session.stations(), look)
        self._drawing.look_at(self._server)
        gui.set_panel_label(session.model.name)
        gui.configure_theme(control_width="large", show_share_button=False)
        self._errors = gui.add_markdown("", visible=False)
        tabs = gui.add_tab_group()
        self._panels: list[Panel] = []
        with tabs.add_tab("Motion"):
            if stored is not None:
                self._panels.append(StorePanel(gui, session, stored, self.ask))
            self._panels.append(PlaybackPanel(gui, session, self.ask))
            self._panels.append(PlotPanel(gui, session, self.ask))
        with tabs.add_tab("Joints"):
            self._panels.append(DragPanel(gui, scene, session, self._drawing.size, self.ask))
            self._panels.append(JointPanel(gui, session, self.ask))
        with tabs.add_tab("Simulate"):
            self._simulation = SimulationPanel(gui, session, experiment, seconds, self.ask)
            self._panels.append(self._simulation)
        with tabs.add_tab("Show"):
            self._display = DisplayPanel(gui, lambda: self._drawing, session.model.body_names, self.ask)
            self._panels.append(self._display)

    @property
    def url(self) -> str:
        """Address of the page, with the token that whoever opens it has to know."""
        return self._server.url

    @property
    def q(self) -> np.ndarray:
        """Configuration that is shown, of shape (nq,) [rad or m]."""
        return np.array(self._session.q)

    @property
    def time(self) -> float:
        """Present time in the motion [s]."""
        return self._session.player.time

    @property
    def trajectory(self) -> Trajectory | None:
        """Trajectory that plays: what was given, simulated or recorded last."""
        return self._session.trajectory

    def show(self, q: ArrayLike) -> None:
        """Show a configuration, of shape (nq,) [rad or m]."""
        with jax.enable_x64(self._x64):
            (q,) = checked(self._session.model, q=q)
            configuration = jnp.asarray(q, self._session.model.dtype)
        self.ask("show", lambda: self._session.take(configuration))

    def play(self, trajectory: Trajectory | None = None) -> None:
        """Play a motion, or the present one.

        Args:
            trajectory: A motion or a batch of the same model; the present one if left out.
        """

        def begin():
            if trajectory is not None:
                self._session.load(trajectory)
                self._session.jump(self._session.player.start)
            self._session.player.play()

        self.ask("play", begin)

    def simulate(self) -> None:
        """Simulate with the gains of the sliders, as the button on the page does."""
        self.ask("simulate", self._simulation.run)

    def ask(self, kind: str, action) -> None:
        """Have the viewer's thread do something, in place of what waits of the same kind."""

        def done():
            action()
            # What went wrong before is told no longer, and told again if it comes again.
            if self._errors.visible:
                self._errors.content, self._errors.visible = "", False

        self._worker.post(kind, done)

    def wait(self, timeout: float = 60.0) -> bool:
        """Wait until nothing that was asked for is left to do, at most so many seconds; whether this was reached."""
        return self._worker.finish(timeout)

    def screenshot(self, path: str | os.PathLike | None = None, *, width: int = 960, height: int = 720) -> np.ndarray:
        """Picture that the first browser sees which shows the page, as an array of shape (height, width, 3).

        Args:
            path: Where to write it as a picture, too.
            width, height: In pixels.

        Raises:
            RuntimeError: if no browser shows the page, or none answers.
        """
        clients = list(self._server.get_clients().values())
        if not clients:
            raise RuntimeError(f"no browser shows {self.url}: open it first, the browser draws the picture")
        try:
            picture = clients[0].get_render(height, width, transport_format="png", timeout=60)
        except TimeoutError as error:
            raise RuntimeError(f"the browser that shows {self.url} does not answer: is its window hidden?") from error
        opaque = picture[..., 3:] / 255
        picture = np.round(picture[..., :3] * opaque + 255 * (1 - opaque)).astype(np.uint8)
        if path is not None:
            iio.imwrite(pathlib.Path(path), picture)
        return picture

    def export(self, path: str | os.PathLike, *, frames_per_second: float = 30.0) -> pathlib.Path:
        """Write the present motion, or the robot as it stands, as one page that needs no server.

        It waits for what was asked for before.

        Args:
            path: Of the page, such as `motion.html`.
            frames_per_second: Of the motion.

        Returns:
            The path.
        """
        session = self._session
        model, q, motion, lane, look = self._worker.answer(
            lambda: (session.model, session.q, session.motion, session.lane, self._drawing.look)
        )
        with jax.enable_x64(self._x64):
            return write_page(path, model, q, motion, lane=lane, look=look, frames_per_second=frames_per_second)

    def close(self) -> None:
        """End the page and everything behind it."""
        atexit.unregister(self.close)
        self._worker.stop()
        stop_server(self._server)

    def _repr_html_(self) -> str:
        """The page within a notebook that runs on the same machine."""
        return f'<iframe src="{self.url}" width="100%" height="600"></iframe>'

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def wait_for_interrupt(self) -> None:
        """Print the address, wait until Ctrl-C, and close."""
        try:
            print(f"{self.url} shows {self._session.model.name}; Ctrl-C ends it", flush=True)
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    # What the thread does.

    def _tick(self, seconds):
        session = self._session
        session.tick(seconds)
        self._ticks += 1
        now = _Shown(
            session.model,
            session.q,
            session.player.time,
            session.player.playing,
            session.motions,
            session.ghosts,
            session.recorder.recording,
        )
        if self._drawn is None or now.differs(self._drawn):
            self._draw(now)
        if self._stale and self._ticks % REFRESH == 0:
            self._stale = False
            for panel in self._panels:
                panel.refresh()

    def _draw(self, now):
        session = self._session
        if self._drawn is not None and session.model is not self._drawn.model:
            self._draw_anew()
        with self._server.atomic():
            places = posed(session.model, session.q)
            self._follow(places)
            self._drawing.move(places)
            self._show_ghosts(session.ghost_configurations())
        self._drawn, self._stale = now, True

    def _show_ghosts(self, configurations):
        nb = self._session.model.nb
        places = np.zeros((0, nb, 3)), np.zeros((0, nb, 4))
        if len(configurations):
            places = map(np.asarray, posed_lanes(self._session.model, configurations))
        self._drawing.show_ghosts(*places)

    def _draw_anew(self):
        """Draw another model: masses, lengths and shapes may differ."""
        before = self._drawing
        before.remove()
        self._drawing = Drawing(self._server.scene, self._session.model, self._session.stations(), before.look)
        self._drawing.fade(before.opacity)
        for name, mark in before.marks.items():
            self._drawing.marks[name].show(mark.shown)

    def _follow(self, places):
        """Let cameras go with a body."""
        body = self._display.followed
        place = None if body is None else np.asarray(places.positions[body], float)
        before, self._followed = self._followed, place
        if place is None or before is None:
            return
        for client in self._server.get_clients().values():
            client.camera.position = client.camera.position + place - before

    def _tell_error(self, error):
        says = f"**{type(error).__name__}** {plain(str(error))}"
        # One that comes again with every tick is told once.
        if says == self._errors.content:
            return
        traceback.print_exception(error)
        self._errors.content, self._errors.visible = says, True
        for client in self._server.get_clients().values():
            client.add_notification(type(error).__name__, str(error), color="red")
