"""A sweep over every pair of its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LogNorm

from jdyn.view.plots.picture import Picture
from jdyn.view.plots.scales import label, short_label, spans_decades

if TYPE_CHECKING:
    import xarray


def pairs(dataset: xarray.Dataset, variable: str, *, axes: np.ndarray | None = None) -> np.ndarray:
    """One variable of a sweep over every pair of its parameters, a point for each lane; below, over each parameter.
    Failed lanes are crosses.

    >>> design = jdyn.designs.Sobol(16, mass=(1.0, 3.0), length=(0.5, 1.0))
    >>> dataset = jdyn.sweep(lambda p: {"moment": p["mass"] * p["length"] ** 2 / 3}, design, progress=False)
    >>> jdyn.plots.pairs(dataset, "moment").shape
    (2, 2)

    Args:
        dataset: Result of `jdyn.sweep`, with n parameters that are single numbers.
        variable: Name of a variable with one number per lane.
        axes: Where to draw, an array of axes of shape (n, n); a new figure if left out.

    Returns:
        The array of axes; those above the diagonal are hidden.

    Raises:
        ValueError: if the variable has more than one number per lane, no parameter is a single number, or `axes` has
            another shape.
    """
    if dataset[variable].dims != dataset["result"].dims:
        raise ValueError(f"{variable!r}: expected one number per lane, got dimensions {dataset[variable].dims}")
    values = np.ravel(dataset[variable].values).astype(float)
    names = [
        str(name) for name, x in dataset.coords.items() if set(x.dims) <= set(dataset["result"].dims) and name != "lane"
    ]
    if not names:
        raise ValueError(f"{variable!r}: there is no parameter with a single number per lane to draw it over")
    spread = {name: np.ravel(dataset[name].broadcast_like(dataset[variable]).values) for name in names}
    grid = _new_grid(len(names)) if axes is None else np.asarray(axes)
    if grid.shape != (len(names), len(names)):
        raise ValueError(f"axes: expected shape {(len(names), len(names))} for {', '.join(names)}, got {grid.shape}")
    norm = LogNorm() if spans_decades(values) else None
    for row, down in enumerate([*names[1:], variable]):
        for column, across in enumerate(names):
            if column > row:
                grid[row, column].set_visible(False)
            else:
                points = _draw_lanes(grid[row, column], spread[across], spread.get(down, values), values, norm)
        grid[row, 0].set_ylabel(short_label(dataset[down]), fontsize="small")
        grid[-1, row].set_xlabel(short_label(dataset[names[row]]), fontsize="small")
    grid[-1, 0].figure.colorbar(points, ax=grid, label=label(dataset[variable]))
    return grid


def _new_grid(n):
    figure = Picture(figsize=(2.4 * n + 1.5, 2.4 * n), layout="constrained")
    return figure.subplots(n, n, squeeze=False, sharex="col")


def _draw_lanes(axes, x, y, values, norm):
    """A point for each lane in the colour of its value, a cross for one that failed."""
    good = np.isfinite(values)
    points = axes.scatter(x[good], y[good], c=values[good], s=6, norm=norm)
    # Over the value itself, which what failed has not, it stands at the bottom.
    bottom = ~good & ~np.isfinite(y)
    axes.plot(x[~good & ~bottom], y[~good & ~bottom], "x", color="0.4", markersize=4)
    axes.plot(
        x[bottom], np.full(bottom.sum(), 0.03), "x", color="0.4", markersize=4, transform=axes.get_xaxis_transform()
    )
    axes.set_xscale("log" if spans_decades(x) else "linear")
    axes.set_yscale("log" if spans_decades(y) else "linear")
    return points
