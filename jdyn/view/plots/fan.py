"""All lanes of a sweep over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from jdyn.view.plots import styles
from jdyn.view.plots.picture import axes_or_new
from jdyn.view.plots.scales import label

if TYPE_CHECKING:
    import xarray

# Shares of the lanes between whose bounds a fan has a band, and their greys.
BANDS = {0.9: "0.85", 0.5: "0.65"}


def fan(dataset: xarray.Dataset, variable: str, along: str, times=None, *, axes: Axes | None = None) -> Axes:
    """One variable of all lanes of a sweep over time: the median, and bands with half and nine tenths of the lanes.
    The legend says how many lanes failed, which are in none of these.

    >>> times = np.linspace(0.0, 1.0, 5)
    >>> design = jdyn.designs.Grid(speed=[1.0, 2.0, 3.0])
    >>> dataset = jdyn.sweep(lambda p: {"height": p["speed"] * times}, design, progress=False)
    >>> axes = jdyn.plots.fan(dataset, "height", "height_0", times)

    Args:
        dataset: Result of `jdyn.sweep`.
        variable: Name of a variable with one number per lane and time.
        along: Its dimension that is time.
        times: Of the rows [s]; their numbers if left out.
        axes: Where to draw; a new figure if left out.

    Raises:
        ValueError: if the variable does not have this dimension and those of the lanes.
    """
    array, lanes = dataset[variable], dataset["result"].dims
    if set(array.dims) != {*lanes, along}:
        raise ValueError(f"{variable!r}: expected dimensions {(*lanes, along)}, got {array.dims}")
    rows = array.transpose(along, *lanes).values.reshape(array.sizes[along], -1)
    instants = np.arange(len(rows)) if times is None else np.asarray(times)
    axes = axes_or_new(axes)
    good = rows[:, np.all(np.isfinite(rows), axis=0)]
    if good.size:
        for share, grey in BANDS.items():
            low, high = np.quantile(good, [0.5 - share / 2, 0.5 + share / 2], axis=1)
            axes.fill_between(instants, low, high, color=grey, linewidth=0, label=f"{share:.0%} of lanes")
        axes.plot(instants, np.median(good, axis=1), color="black", label="median")
    if failed := rows.shape[1] - good.shape[1]:
        axes.plot([], [], "x", color="black", label=f"{failed} of {rows.shape[1]} lanes failed")
    labels = {"xlabel": "row" if times is None else "time [s]", "ylabel": label(array)}
    return styles.finished(axes, title=dataset.attrs.get("title", ""), **labels)
