"""Figures of sweeps: one variable over parameters, or over time for all lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from jdyn.view.scales import label, short_label, spans_decades

if TYPE_CHECKING:
    import xarray

# Shares of the lanes between whose bounds a fan has a band.
BANDS = (0.9, 0.5)


def plot_heat_map(dataset: xarray.Dataset, variable: str) -> Figure:
    """One variable of a sweep over a grid of two parameters; the smallest value is marked, failed lanes are hatched.

    Args:
        dataset: Result of `jdyn.sweep` for a `jdyn.Grid` with two axes.
        variable: Name of a variable with one number per lane.

    Raises:
        ValueError: if the variable does not have exactly two dimensions.
    """
    array = dataset[variable]
    if array.ndim != 2:
        raise ValueError(f"{variable!r}: expected a variable over two parameters, got dimensions {array.dims}")
    down, across = array.dims
    array = array.sortby([down, across])
    x, y, z = array[across].values, array[down].values, np.asarray(array.values, float)
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.subplots()
    axes.patch.set(hatch="xx", edgecolor="0.6")
    mesh = axes.pcolormesh(_edges(x), _edges(y), np.ma.masked_invalid(z), norm=LogNorm() if spans_decades(z) else None)
    figure.colorbar(mesh, label=label(array))
    if np.any(np.isfinite(z)):
        best = np.unravel_index(np.nanargmin(z), z.shape)
        axes.plot(x[best[1]], y[best[0]], "*", color="white", markeredgecolor="black", markersize=14)
    axes.set(xlabel=label(dataset[across]), ylabel=label(dataset[down]), title=dataset.attrs.get("title", ""))
    axes.set_xscale("log" if spans_decades(x) else "linear")
    axes.set_yscale("log" if spans_decades(y) else "linear")
    return figure


def plot_pairs(dataset: xarray.Dataset, variable: str) -> Figure:
    """One variable of a sweep over every pair of its parameters, a point for each lane; below, over each parameter.
    Failed lanes are crosses.

    Args:
        dataset: Result of `jdyn.sweep`, with parameters that are single numbers.
        variable: Name of a variable with one number per lane.

    Raises:
        ValueError: if the variable has more than one number per lane, or no parameter is a single number.
    """
    if dataset[variable].dims != dataset["result"].dims:
        raise ValueError(f"{variable!r}: expected one number per lane, got dimensions {dataset[variable].dims}")
    values = np.ravel(dataset[variable].values).astype(float)
    names = [
        name for name, x in dataset.coords.items() if set(x.dims) <= set(dataset["result"].dims) and name != "lane"
    ]
    if not names:
        raise ValueError(f"{variable!r}: there is no parameter with a single number per lane to draw it over")
    spread = {name: np.ravel(dataset[name].broadcast_like(dataset[variable]).values) for name in names}
    figure = Figure(figsize=(2.4 * len(names) + 1.5, 2.4 * len(names)), layout="constrained")
    grid = figure.subplots(len(names), len(names), squeeze=False, sharex="col")
    norm = LogNorm() if spans_decades(values) else None
    for row, down in enumerate([*names[1:], variable]):
        for column, across in enumerate(names):
            if column > row:
                grid[row, column].set_visible(False)
            else:
                _draw_lanes(grid[row, column], spread[across], spread.get(down, values), values, norm)
        grid[row, 0].set_ylabel(short_label(dataset[down]), fontsize="small")
        grid[-1, row].set_xlabel(short_label(dataset[names[row]]), fontsize="small")
    figure.colorbar(grid[-1, 0].collections[0], ax=grid, label=label(dataset[variable]))
    return figure


def _draw_lanes(axes, x, y, values, norm):
    """A point for each lane in the colour of its value, a cross for one that failed."""
    good = np.isfinite(values)
    axes.scatter(x[good], y[good], c=values[good], s=6, norm=norm)
    axes.plot(x[~good], y[~good], "x", color="0.6", markersize=3)
    axes.set_xscale("log" if spans_decades(x) else "linear")
    axes.set_yscale("log" if spans_decades(y) else "linear")


def plot_fan(dataset: xarray.Dataset, variable: str, along: str, times=None) -> Figure:
    """One variable of all lanes of a sweep over time: the median, and bands with half and nine tenths of the lanes.

    Args:
        dataset: Result of `jdyn.sweep`.
        variable: Name of a variable with one number per lane and time.
        along: Its dimension that is time.
        times: Of the rows [s]; their numbers if left out.

    Raises:
        ValueError: if the variable does not have this dimension and those of the lanes.
    """
    array, lanes = dataset[variable], dataset["result"].dims
    if set(array.dims) != {*lanes, along}:
        raise ValueError(f"{variable!r}: expected dimensions {(*lanes, along)}, got {array.dims}")
    rows = array.transpose(along, *lanes).values.reshape(array.sizes[along], -1)
    times = np.arange(len(rows)) if times is None else np.asarray(times)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for share in BANDS:
        low, high = np.nanquantile(rows, [0.5 - share / 2, 0.5 + share / 2], axis=1)
        axes.fill_between(times, low, high, color="tab:blue", alpha=0.25, label=f"{share:.0%} of lanes")
    axes.plot(times, np.nanmedian(rows, axis=1), color="black", label="median")
    axes.set(xlabel="row" if times.dtype.kind == "i" else "time [s]", ylabel=label(array))
    axes.set_title(dataset.attrs.get("title", ""))
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def _edges(values) -> np.ndarray:
    """Cell edges around ascending values, halfway between them on the scale of the plot."""
    if spans_decades(values):
        return np.exp(_edges(np.log(values) - np.log(values[-1])) + np.log(values[-1]))
    middle = (values[1:] + values[:-1]) / 2
    first, last = (middle[0] - values[0], values[-1] - middle[-1]) if len(values) > 1 else (0.5, 0.5)
    return np.concatenate([[values[0] - first], middle, [values[-1] + last]])
