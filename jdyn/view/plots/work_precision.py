"""Error against time."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from jdyn.view.plots import styles
from jdyn.view.plots.picture import axes_or_new


def work_precision(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    bold: Collection[str] = (),
    work: str = "time [s]",
    axes: Axes | None = None,
) -> Axes:
    """Plot the cost of an error, a line for each solver; small errors are on the right, and lower lines are better.

    ```
    jdyn.plots.work_precision({"Tsit5": (errors, seconds), "default": (other_errors, other_seconds)})
    ```

    >>> errors = [1e-3, 1e-6, 1e-9]
    >>> curves = {"order 4": (errors, [1.0, 5.6, 32.0]), "order 8": (errors, [1.5, 3.6, 8.4])}
    >>> axes = jdyn.plots.work_precision(curves)

    Args:
        curves: By name: errors, and the work that each takes. What is not finite and positive is left out.
        bold: Names of lines that are thick.
        work: Label of the work, with its unit.
        axes: Where to draw; a new figure if left out.
    """
    axes = axes_or_new(axes)
    for number, (name, columns) in enumerate(curves.items()):
        errors, costs = (np.asarray(column, float) for column in columns)
        good = np.isfinite(errors) & np.isfinite(costs) & (errors > 0) & (costs > 0)
        if np.any(good):
            width = 3 if name in bold else 1.2
            axes.plot(errors[good], costs[good], label=name, linewidth=width, **styles.marked_line(number))
    styles.finished(axes, xlabel="error", ylabel=work, xscale="log", yscale="log")
    # One that the caller inverted, or a second call in the same axes, stays as it is.
    if not axes.xaxis_inverted():
        axes.invert_xaxis()
    return axes
