"""Plots of the motion with a line at the present time."""

from __future__ import annotations

from typing import Any

import numpy as np

from jdyn.view.plots.styles import COLORS
from jdyn.view.viewer.panels.panel import Ask, Panel
from jdyn.view.viewer.session import Session

# Most rows of a plot: more than it has pixels across are not seen.
ROWS = 300
# Most coordinates of a plot: more are not told apart.
CURVES = 12


class PlotPanel(Panel):
    """Configuration, velocity and energy over time."""

    def __init__(self, gui: Any, session: Session, ask: Ask):
        super().__init__(ask)
        self._gui, self._session, self._seen = gui, session, -1
        self._folder = gui.add_folder("over time")
        self._says = gui.add_markdown("There is no motion yet.")
        self._plots: list[tuple[Any, list[np.ndarray], np.ndarray]] = []
        self.refresh()

    def refresh(self):
        if self._session.motion is not None and self._session.motions != self._seen:
            self._seen = self._session.motions
            self._draw()
        for plot, curves, t in self._plots:
            plot.data = with_cursor(t, curves, self._session.player.time)

    def _draw(self):
        session = self._session
        topology = session.model.topology
        rows = session.motion.rows(session.model, session.lane, ROWS)  # type: ignore[union-attr]
        energies = ("kinetic", "potential", "total")
        rows["total"] = rows["kinetic"] + rows["potential"]
        wanted = (
            ("q [rad, m]", topology.q_names, list(rows["q"].T)),
            ("v [rad/s, m/s]", topology.v_names, list(rows["v"].T)),
            ("energy [J]", energies, [rows[name] for name in energies]),
        )
        for plot, *_ in self._plots:
            plot.remove()
        self._says.visible = False
        with self._folder:
            self._plots = [self._plot(title, names, rows["t"], y) for title, names, y in wanted if y]

    def _plot(self, title, names, t, curves):
        if len(curves) > CURVES:
            title = f"{title}: the first {CURVES} of {len(curves)}"
            names, curves = names[:CURVES], curves[:CURVES]
        series: list[Any] = [{"label": "t [s]"}]
        for number, name in enumerate(names):
            # With dashes where colours begin again.
            style: dict[str, Any] = {"label": name, "stroke": COLORS[number % len(COLORS)], "width": 2}
            series.append(style | ({"dash": (8, 4)} if number >= len(COLORS) else {}))
        series.append({"label": "now", "stroke": "#888888", "width": 1})
        plot = self._gui.add_uplot(
            with_cursor(t, curves, self._session.player.time), tuple(series), title=title, aspect=1.5,
            scales={"x": {"time": False, "auto": True}, "y": {"auto": True}}, legend={"show": True},
        )  # fmt: skip
        return plot, curves, t


def with_cursor(t: np.ndarray, curves: list[np.ndarray], now: float) -> tuple[np.ndarray, ...]:
    """Columns of a plot: time, the curves, and a line that stands up at the present time.

    The line has the least value but for that time, at which it goes up to the largest value and back: uPlot does not
    draw what is NaN somewhere. That takes three more rows, in which the curves have their values.

    Args:
        t: Times [s], rising.
        curves: Values at these times.
        now: Present time [s].
    """
    places = [int(np.searchsorted(t, now))] * 3
    finite = np.concatenate([curve[np.isfinite(curve)] for curve in curves])
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    line = np.insert(np.full(len(t), low), places, [low, high, low])
    columns = [np.insert(curve, places, np.interp(now, t, curve)) for curve in curves]
    return tuple(np.asarray(x, float) for x in (np.insert(t, places, now), *columns, line))
