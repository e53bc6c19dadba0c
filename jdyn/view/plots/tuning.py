"""The history of a tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from jdyn.tuning import StartsResult, TuneResult
from jdyn.view.plots import styles
from jdyn.view.plots.picture import axes_or_new
from jdyn.view.plots.scales import spans_decades

if TYPE_CHECKING:
    import xarray


def tuning(result: TuneResult | StartsResult | xarray.Dataset, *, axes: Axes | None = None) -> Axes:
    """The loss after each step, a line for each start; stars at the best parameters of each. Where a step sees some of
    the rows of data, circles are losses of all of them, by which the best are chosen.

    >>> import optax
    >>> found = jdyn.tune(lambda p: (p["kp"] - 7.0) ** 2, {"kp": 1.0}, optimizer=optax.adam(0.2), steps=50)
    >>> axes = jdyn.plots.tuning(found)

    Args:
        result: What `jdyn.tune`, `jdyn.tune_starts` or `jdyn.tune_least_squares` returned, or its `to_xarray()`.
        axes: Where to draw; a new figure if left out.
    """
    data: Any = result.to_xarray() if isinstance(result, TuneResult | StartsResult) else result
    starts = [data.isel(start=i) for i in range(data.sizes["start"])] if "start" in data.dims else [data]
    axes = axes_or_new(axes)
    losses = np.concatenate([one["loss"].values for one in starts])
    for number, one in enumerate(starts):
        name = f"start {number}" if len(starts) > 1 else "loss"
        _draw(axes, one, styles.line(number, one.sizes["step"]), name)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return styles.finished(axes, xlabel="step", ylabel="loss", yscale="log" if spans_decades(losses) else "linear")


def _draw(axes, one, style, name):
    steps, losses, judged = (one[variable].values for variable in ("step", "loss", "judged_loss"))
    axes.plot(steps, losses, label=name, **style)
    of_all = np.isfinite(judged)
    if np.any(judged[of_all] != losses[of_all]):
        axes.plot(steps[of_all], judged[of_all], "o", color=style["color"], markersize=4, label=f"{name} of all rows")
    # An attribute of one tuning, a variable of many.
    best = int(one["best_step"] if "best_step" in one else one.attrs["best_step"])
    if np.isfinite(judged[best]):
        axes.plot(steps[best], judged[best], "*", color=style["color"], markersize=12)
