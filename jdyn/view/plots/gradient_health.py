"""Derivatives by autodiff beside finite differences."""

import numpy as np
from matplotlib.axes import Axes

from jdyn.tuning import GradientHealth
from jdyn.view.plots import styles
from jdyn.view.plots.picture import axes_or_new

# By verdict.
MARKS = {"agrees": "o", "disagrees": "X", "cannot tell": "$?$", "not finite": "^"}
# Where derivatives agree to the last digit, and the end of the axis.
EXACT = 1e-16


def gradient_health(health: GradientHealth, *, axes: Axes | None = None) -> Axes:
    """Plot how far autodiff and finite differences are apart in each direction of the parameters, relative to the
    derivative. A grey bar reaches to the error of the differences: they say nothing of what lies within. The mark is
    the verdict.

    >>> health = jdyn.gradient_health(lambda p: (p["kp"] - 7.0) ** 2, {"kp": 1.0})
    >>> axes = jdyn.plots.gradient_health(health)

    Args:
        health: What `jdyn.gradient_health` returned.
        axes: Where to draw; a new figure if left out.

    Raises:
        ValueError: if it has no derivatives, since the loss was not finite.
    """
    found = health.derivatives
    if not found:
        raise ValueError(
            "health: expected derivatives, got none, since the loss is not finite; print(health) says where"
        )
    axes = axes_or_new(axes, 8.0, 1.2 + 0.35 * len(found))
    places = np.arange(len(found))
    apart, error = np.array([_relative(one) for one in found]).T
    axes.barh(places, error - EXACT, left=EXACT, color="0.85", label="error of differences")
    verdicts = np.array([one.verdict for one in found])
    for verdict, mark in MARKS.items():
        these = verdicts == verdict
        if np.any(these):
            axes.plot(apart[these], places[these], mark, color="black", label=verdict)
    axes.set(
        xscale="log", xlim=(EXACT, 10), xlabel="|autodiff − differences| / |derivative|", ylim=(len(found) - 0.5, -0.5)
    )
    axes.set_yticks(places, [f"{one.leaf}{one.direction}" for one in found])
    axes.grid(alpha=0.3, axis="x")
    styles.legend(axes)
    return axes


def _relative(one) -> tuple[float, float]:
    """Difference of the two derivatives and error of the differences, as shares of the larger derivative."""
    size = max(abs(one.autodiff), abs(one.differences), np.finfo(float).tiny)
    # What is not finite is as far apart as can be.
    parts = [np.nan_to_num(x / size, nan=1, posinf=1) for x in (abs(one.autodiff - one.differences), one.error)]
    return tuple(np.clip(parts, EXACT, 1))
