"""Designs that show which parameters a result depends on; by SALib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from jdyn.sweep.drawn import Drawn

if TYPE_CHECKING:
    import xarray

# Levels of each interval that one-at-a-time steps go between.
LEVELS = 4


class Saltelli(Drawn):
    """n (d + 2) lanes over d intervals, for variance-based indices: `design = jdyn.designs.Saltelli(256, mass=(0.5,
    2.0), kp=jdyn.designs.Log(10.0, 1000.0))`, then `design.indices(dataset["error"])`; along the axis `sample`.

    >>> design = jdyn.designs.Saltelli(64, mass=(0.5, 2.0), kp=jdyn.designs.Log(10.0, 1000.0))
    >>> dataset = jdyn.sweep(lambda p: {"weight": 9.81 * p["mass"]}, design, progress=False)
    >>> print(design.indices(dataset["weight"])["total"].values.round(1))
    [1. 0.]

    Args:
        n: A power of 2; intervals of the indices shrink with its root.
        seed: Of the draw.
        **intervals: (low, high) of each parameter, or `jdyn.designs.Log(low, high)`.

    Raises:
        ValueError: if there is no parameter, an interval is none, or n is not a power of 2.
        ImportError: without SALib, `pip install "jdyn[sensitivity]"`.

    Source: Saltelli et al., Variance based sensitivity analysis of model output, Computer Physics Communications 181,
    2010; by SALib.
    """

    def _points(self, n, dimensions, seed):
        if n < 1 or n & (n - 1):
            raise ValueError(f"Saltelli: expected a power of 2, got {n}")
        sampled = _salib("sample.sobol").sample
        return sampled(_unit_cube(dimensions), n, calc_second_order=False, seed=seed)

    def indices(self, values: Float[np.ndarray, " sample"] | xarray.DataArray, *, seed: int = 0) -> xarray.Dataset:
        """Shares of the variance of a result, by parameter.

        Args:
            values: A number for each lane, such as an entry of a sweep's dataset.
            seed: Of the resampling for intervals.

        Returns:
            `first_order`, the share that a parameter has by itself, and `total`, that which would be left without it
            fixed, each with `_interval`, half of the 95 % interval; along `parameter`.

        Raises:
            ValueError: if a lane has no finite number.
        """
        values = _finite(values, self.size)
        analyzed = _salib("analyze.sobol").analyze
        found = analyzed(_unit_cube(len(self.values)), values, calc_second_order=False, seed=seed)
        names = {"S1": "first_order", "S1_conf": "first_order_interval", "ST": "total", "ST_conf": "total_interval"}
        return _by_parameter(self, {name: found[key] for key, name in names.items()})


class Morris(Drawn):
    """n (d + 1) lanes over d intervals, each one step in one parameter from the one before, to screen many parameters:
    `design = jdyn.designs.Morris(20, mass=(0.5, 2.0), kp=jdyn.designs.Log(10.0, 1000.0))`, then
    `design.indices(dataset["error"])`; along the axis `sample`.

    >>> design = jdyn.designs.Morris(10, mass=(0.5, 2.0), kp=jdyn.designs.Log(10.0, 1000.0))
    >>> dataset = jdyn.sweep(lambda p: {"weight": 9.81 * p["mass"]}, design, progress=False)
    >>> print(design.indices(dataset["weight"])["mean_size"].values.round(1))
    [14.7  0. ]

    Args:
        n: Number of walks.
        seed: Of the draw.
        **intervals: (low, high) of each parameter, or `jdyn.designs.Log(low, high)`.

    Raises:
        ValueError: if there is no parameter, an interval is none, or n is not positive.
        ImportError: without SALib, `pip install "jdyn[sensitivity]"`.

    Source: Morris, Factorial sampling plans for preliminary computational experiments, Technometrics 33, 1991; for the
    mean size, Campolongo, Cariboni, Saltelli 2007; by SALib.
    """

    def _points(self, n, dimensions, seed):
        if n < 1:
            raise ValueError(f"Morris: expected a positive number of walks, got {n}")
        return _salib("sample.morris").sample(_unit_cube(dimensions), n, num_levels=LEVELS, seed=seed)

    def indices(self, values: Float[np.ndarray, " sample"] | xarray.DataArray, *, seed: int = 0) -> xarray.Dataset:
        """Effects of moving each parameter through its whole interval, by steps.

        Args:
            values: A number for each lane, such as an entry of a sweep's dataset.
            seed: Of the resampling for intervals.

        Returns:
            `mean`, `mean_size` with `mean_size_interval`, half of the 95 % interval, and `spread`, which is large for
            effects that bend or depend on other parameters; along `parameter`.

        Raises:
            ValueError: if a lane has no finite number.
        """
        values, dimensions = _finite(values, self.size), len(self.values)
        points = self._points(self.n, dimensions, self.seed)
        analyzed = _salib("analyze.morris").analyze
        found = analyzed(_unit_cube(dimensions), points, values, num_levels=LEVELS, seed=seed)
        names = {"mu": "mean", "mu_star": "mean_size", "mu_star_conf": "mean_size_interval", "sigma": "spread"}
        return _by_parameter(self, {name: found[key] for key, name in names.items()})


def _salib(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"SALib.{module}")
    except ImportError as error:
        raise ImportError('indices of sensitivity need SALib; pip install "jdyn[sensitivity]"') from error


def _unit_cube(dimensions):
    names = [str(i) for i in range(dimensions)]
    return {"num_vars": dimensions, "names": names, "bounds": [[0.0, 1.0]] * dimensions}


def _finite(values, lanes) -> np.ndarray:
    values = np.asarray(values, float)
    if values.shape != (lanes,):
        raise ValueError(f"values: expected a number for each of {lanes} lanes, got shape {values.shape}")
    if bad := int(np.sum(~np.isfinite(values))):
        raise ValueError(
            f"values: {bad} of {lanes} lanes have no finite number, and indices need all; narrow the intervals"
        )
    return values


def _by_parameter(design, variables) -> xarray.Dataset:
    import xarray

    return xarray.Dataset(
        {name: ("parameter", np.asarray(x, float)) for name, x in variables.items()}, {"parameter": list(design.values)}
    )
