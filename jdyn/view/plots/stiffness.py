"""Cost of ill-conditioned mass matrices."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from jdyn.view.plots import styles
from jdyn.view.plots.picture import axes_or_new


def stiffness(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    what: str = "evaluations of forward dynamics",
    axes: Axes | None = None,
) -> Axes:
    """Evaluations of forward dynamics, or errors, over the condition number of the mass matrix, a line for each
    formulation. Crosses at the bottom are failed simulations.

    >>> axes = jdyn.plots.stiffness({"ABA": ([1e2, 1e6], [6500, 31000]), "CRBA": ([1e2, 1e6], [6600, np.nan])})
    >>> axes.get_xscale()
    'log'

    Args:
        series: By name: condition numbers and evaluations. NaN stands for a failed simulation.
        what: Label of what is given for each condition number.
        axes: Where to draw; a new figure if left out.
    """
    axes = axes_or_new(axes)
    for number, (name, columns) in enumerate(series.items()):
        x, y = (np.asarray(column, float) for column in columns)
        (line,) = axes.plot(x, y, label=name, **styles.marked_line(number))
        failed = x[~np.isfinite(y)]
        # Those of different formulations stand above each other.
        height = np.full(len(failed), 0.02 + 0.03 * number)
        axes.plot(failed, height, "x", color=line.get_color(), transform=axes.get_xaxis_transform())
        if len(failed):
            line.set_label(f"{name} (×: failed)")
    return styles.finished(axes, xscale="log", yscale="log", xlabel="condition number of the mass matrix", ylabel=what)
