"""Figures of formulation stiffness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure


def plot_evaluations(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str = "") -> Figure:
    """Evaluations of forward dynamics over the condition number of the mass matrix, a line a formulation.

    Args:
        series: By name: condition numbers, and evaluations, NaN where the simulation failed; those are marked at the
            bottom.
        title: Title of the figure.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for name, (condition, evaluations) in series.items():
        x, y = np.asarray(condition, float), np.asarray(evaluations, float)
        (line,) = axes.plot(x, y, "o-", label=name, alpha=0.8)
        failed = ~np.isfinite(y)
        axes.plot(x[failed], np.zeros(failed.sum()), "x", color=line.get_color(), transform=axes.get_xaxis_transform())
    axes.set(
        xscale="log", yscale="log", title=title,
        xlabel="condition number of the mass matrix (x: failed)", ylabel="evaluations of forward dynamics",
    )  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def plot_turn(angles: np.ndarray, curves: Mapping[str, np.ndarray], ylabel: str, *, log: bool = False) -> Figure:
    """Curves over the angle of one joint.

    Args:
        angles: Angles [rad].
        curves: By name, a value an angle.
        ylabel: What the values are.
        log: Whether the values are drawn on a logarithmic scale.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for name, values in curves.items():
        axes.plot(angles, values, label=name, alpha=0.8)
    axes.set(xlabel="angle of joint 2 [rad]", ylabel=ylabel, yscale="log" if log else "linear")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
