"""Figures of formulation stiffness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure


def plot_evaluations(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str = "") -> Figure:
    """Evaluations of forward dynamics over the condition number of the mass matrix, one line for each formulation.

    Args:
        series: By name: condition numbers and evaluations. NaN stands for a failed simulation, and is marked at the
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


def plot_curves(
    x: np.ndarray,
    curves: Mapping[str, np.ndarray],
    xlabel: str,
    ylabel: str,
    *,
    scales: tuple[str, str] = ("linear", "linear"),
) -> Figure:
    """Curves over a common axis.

    Args:
        x: Common axis.
        curves: By name, one value for each entry of `x`.
        xlabel, ylabel: Labels with units.
        scales: Matplotlib's names of the scales of both axes.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for name, values in curves.items():
        axes.plot(x, values, label=name, alpha=0.8)
    axes.set(xlabel=xlabel, ylabel=ylabel, xscale=scales[0], yscale=scales[1])
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
