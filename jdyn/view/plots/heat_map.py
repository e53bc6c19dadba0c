"""A sweep over a grid of two parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from jdyn.view.plots.picture import axes_or_new
from jdyn.view.plots.scales import label, spans_decades

if TYPE_CHECKING:
    import xarray


def heat_map(dataset: xarray.Dataset, variable: str, *, axes: Axes | None = None) -> Axes:
    """One variable of a sweep over a grid of two parameters; the smallest value is marked, failed lanes are hatched.

    >>> design = jdyn.designs.Grid(mass=[1.0, 2.0, 3.0], length=[0.5, 1.0])
    >>> dataset = jdyn.sweep(lambda p: {"moment": p["mass"] * p["length"] ** 2 / 3}, design, progress=False)
    >>> axes = jdyn.plots.heat_map(dataset, "moment")
    >>> sorted([axes.get_xlabel(), axes.get_ylabel()])
    ['length', 'mass']

    Args:
        dataset: Result of `jdyn.sweep` for a `jdyn.designs.Grid` with two axes.
        variable: Name of a variable with one number per lane.
        axes: Where to draw, with a colour bar beside; a new figure if left out.

    Raises:
        ValueError: if the variable does not have exactly two dimensions.
    """
    array = dataset[variable]
    if array.ndim != 2:
        raise ValueError(f"{variable!r}: expected a variable over two parameters, got dimensions {array.dims}")
    down, across = array.dims
    array = array.sortby([down, across])
    x, y, z = array[across].values, array[down].values, np.asarray(array.values, float)
    axes = axes_or_new(axes, 8.0, 5.5)
    axes.patch.set(hatch="xx", edgecolor="0.6")
    mesh = axes.pcolormesh(_edges(x), _edges(y), np.ma.masked_invalid(z), norm=LogNorm() if spans_decades(z) else None)
    figure: Any = axes.figure
    figure.colorbar(mesh, ax=axes, label=label(array))
    if np.any(np.isfinite(z)):
        best = np.unravel_index(np.nanargmin(z), z.shape)
        axes.plot(x[best[1]], y[best[0]], "*", color="white", markeredgecolor="black", markersize=14)
    axes.set(xlabel=label(dataset[across]), ylabel=label(dataset[down]), title=dataset.attrs.get("title", ""))
    axes.set_xscale("log" if spans_decades(x) else "linear")
    axes.set_yscale("log" if spans_decades(y) else "linear")
    return axes


def _edges(values) -> np.ndarray:
    """Cell edges around ascending values, halfway between them on the scale of the plot."""
    if spans_decades(values):
        return np.exp(_edges(np.log(values) - np.log(values[-1])) + np.log(values[-1]))
    middle = (values[1:] + values[:-1]) / 2
    first, last = (middle[0] - values[0], values[-1] - middle[-1]) if len(values) > 1 else (0.5, 0.5)
    return np.concatenate([[values[0] - first], middle, [values[-1] + last]])
