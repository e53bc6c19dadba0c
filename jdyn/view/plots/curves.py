"""Curves over a common axis."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import ArrayLike
from matplotlib.axes import Axes

from jdyn.view.plots import styles
from jdyn.view.plots.picture import axes_or_new


def curves(
    x: ArrayLike,
    values: Mapping[str, ArrayLike],
    xlabel: str,
    ylabel: str,
    *,
    scales: tuple[str, str] = ("linear", "linear"),
    axes: Axes | None = None,
) -> Axes:
    """Curves over a common axis.

    ```
    jdyn.plots.curves(motion.ts, {"motor 1": tau[:, 0], "motor 2": tau[:, 1]}, "time [s]", "torque [N m]")
    ```

    >>> t = np.linspace(0.0, 1.0, 50)
    >>> axes = jdyn.plots.curves(t, {"sine": np.sin(t), "cosine": np.cos(t)}, "time [s]", "value")
    >>> axes.get_xlabel()
    'time [s]'

    Args:
        x: Common axis, of shape (n,).
        values: By name, of shape (n,). NaN leaves a gap.
        xlabel, ylabel: Labels with units.
        scales: Matplotlib's names of the scales of both axes.
        axes: Where to draw; a new figure if left out.

    Raises:
        ValueError: if a curve has not one value for each entry of `x`.
    """
    x = np.asarray(x)
    axes = axes_or_new(axes)
    for number, (name, y) in enumerate(values.items()):
        if np.shape(y) != x.shape:
            raise ValueError(f"{name!r}: expected a value for each entry of x, of shape {x.shape}, got {np.shape(y)}")
        axes.plot(x, np.asarray(y), label=name, **styles.line(number, len(x)))
    return styles.finished(axes, xlabel=xlabel, ylabel=ylabel, xscale=scales[0], yscale=scales[1])
