"""Datasets of stores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jdyn.sweep.contents import Contents, contents_of

if TYPE_CHECKING:
    import xarray


def open_sweep(path: str | os.PathLike) -> xarray.Dataset:
    """The dataset of a store along the axes of its design, as a sweep in memory has it, whether it is finished or not.

    Variables are read as they are needed; `.load()` reads all. Lanes that are not finished, or whose files are not as
    they were written, have the result `not_run`, and are NaN, or 0 where that is no number.

    >>> design = jdyn.designs.Grid(mass=[1.0, 2.0])
    >>> kept = jdyn.sweep(lambda p: {"weight": 9.81 * p["mass"]}, design, store="masses.zarr", progress=False)
    >>> print(jdyn.open_sweep("masses.zarr")["weight"].values)
    [ 9.81 19.62]

    Args:
        path: Of the store.

    Raises:
        ValueError: if something else is there, or it is damaged.
        OSError: if it cannot be read.

    Warns:
        UserWarning: when lanes are read that are damaged.
    """
    import xarray
    from xarray.core.indexing import LazilyIndexedArray

    from jdyn.sweep.lanes_along_axes import LanesAlongAxes

    contents = contents_of(path)
    lanes, axes = dataset_of(contents), contents.axes

    def spread(name, along: Sequence[str] = tuple(axes)):
        of = lanes[name].variable
        return xarray.Variable((*along, *of.dims[1:]), LazilyIndexedArray(LanesAlongAxes(of, axes, along)), of.attrs)

    variables = {name: spread(name) for name in contents.outputs}
    coordinates = {name: spread(name, along) for name, along in contents.parameter_axes.items()}
    return xarray.Dataset(variables, coordinates, lanes.attrs)


def lane_of(contents: Contents, number: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Parameters and outputs of one lane of a store, these without those that have several axes.

    Raises:
        ValueError: if there is no such lane.
        OSError: if it cannot be read.
    """
    if not 0 <= number < contents.size:
        raise ValueError(f"{contents.path}: expected a lane from 0 to {contents.size - 1}, got {number}")
    lane = dataset_of(contents).isel(lane=number)
    parameters = {name: lane[name].values for name in contents.parameters}
    outputs = {name: lane[name].values for name, output in contents.outputs.items() if len(output.shape) < 2}
    return parameters, outputs


def dataset_of(contents: Contents) -> xarray.Dataset:
    """Dataset of a store along `lane`, read as it is needed."""
    import xarray

    from jdyn.sweep.guarded_files import GuardedFiles

    files: Any = GuardedFiles(contents)
    # As the numbers are: attributes such as `scale_factor` are no one's business here.
    found = xarray.open_zarr(files, chunks=None, decode_cf=False, consolidated=True, zarr_format=3)
    attributes = contents.words | {
        "axes": [*map(list, contents.axes.items())],
        "parameter_axes": contents.parameter_axes,
    }
    return found.set_coords(list(contents.parameters)).assign_attrs(attributes)
