"""Figures without pyplot: no global state changes and no window opens. Save one with `figure.savefig(path)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from jdyn.dynamics import kinetic_energy, potential_energy
from jdyn.model import Model, checked
from jdyn.simulation import Trajectory

if TYPE_CHECKING:
    import xarray

# Ratio of largest to smallest value from which a logarithmic scale is easier to read.
DECADES = 10.0


def plot_motion(model: Model, trajectory: Trajectory) -> Figure:
    """Energies and joint coordinates of one motion over time.

    Args:
        model: The mechanism.
        trajectory: One motion of it, not a batch.

    Raises:
        ValueError: if `trajectory` is a batch.
    """
    checked(model)
    _single(trajectory)
    figure = Figure(figsize=(8, 6), layout="constrained")
    energies, coordinates = figure.subplots(2, sharex=True)
    kinetic = np.asarray(_along(kinetic_energy)(model, trajectory.q, trajectory.v))
    potential = np.asarray(_along(potential_energy)(model, trajectory.q))
    for name, energy in (("kinetic", kinetic), ("potential", potential), ("total", kinetic + potential)):
        energies.plot(trajectory.ts, energy, label=name)
    energies.set(title=f"{model.name}", ylabel="energy [J]")
    _plot_coordinates(coordinates, model, trajectory)
    for axes in (energies, coordinates):
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return figure


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
    mesh = axes.pcolormesh(_edges(x), _edges(y), np.ma.masked_invalid(z), norm=LogNorm() if _spans_decades(z) else None)
    figure.colorbar(mesh, label=_label(array))
    if np.any(np.isfinite(z)):
        best = np.unravel_index(np.nanargmin(z), z.shape)
        axes.plot(x[best[1]], y[best[0]], "*", color="white", markeredgecolor="black", markersize=14)
    axes.set(xlabel=_label(dataset[across]), ylabel=_label(dataset[down]), title=dataset.attrs.get("title", ""))
    axes.set_xscale("log" if _spans_decades(x) else "linear")
    axes.set_yscale("log" if _spans_decades(y) else "linear")
    return figure


def plot_tuning(model: Model, losses, motions: Mapping[str, Trajectory], target) -> Figure:
    """The loss over the tuning steps, and the distance to a target during given motions.

    Args:
        model: The mechanism.
        losses: Loss after each step, as in a `jdyn.TuneResult`.
        motions: Single motions by name, such as `{"before": ..., "after": ...}`.
        target: Configuration that the motions should reach, of shape (nq,).
    """
    checked(model)
    figure = Figure(figsize=(10, 4), layout="constrained")
    history, errors = figure.subplots(1, 2)
    best = int(np.nanargmin(losses))
    history.plot(losses, color="black")
    history.plot(best, losses[best], "*", markersize=12)
    history.set(xlabel="step", ylabel="loss", yscale="log" if _spans_decades(losses) else "linear")
    for name, trajectory in motions.items():
        _single(trajectory)
        distance = _along(lambda model, q: model.difference(q, target))(model, trajectory.q)
        errors.plot(trajectory.ts, np.linalg.norm(distance, axis=1), label=name)
    errors.set(xlabel="time [s]", ylabel="distance to the target [rad or m]", title=model.name)
    errors.legend()
    for axes in (history, errors):
        axes.grid(alpha=0.3)
    return figure


def _along(function):
    """`function(model, *rows)` at every instant of a motion."""
    return jax.jit(lambda model, *rows: jax.vmap(lambda *row: function(model, *row))(*rows))


def _plot_coordinates(axes, model, trajectory):
    for name, coordinate in zip(model.topology.q_names, np.asarray(trajectory.q).T, strict=True):
        axes.plot(trajectory.ts, coordinate, label=name)
    axes.set(xlabel="time [s]", ylabel="q [rad, m, or quaternion]")


def _single(trajectory):
    if np.ndim(trajectory.ts) != 1:
        raise ValueError(
            f"trajectory: expected one motion, got a batch of shape {np.shape(trajectory.ts)[:-1]}; pick a lane with "
            "jax.tree.map(lambda leaf: leaf[i], trajectory)"
        )


def _edges(values) -> np.ndarray:
    """Cell edges around ascending values, halfway between them on the scale of the plot."""
    if _spans_decades(values):
        return np.exp(_edges(np.log(values) - np.log(values[-1])) + np.log(values[-1]))
    middle = (values[1:] + values[:-1]) / 2
    first, last = (middle[0] - values[0], values[-1] - middle[-1]) if len(values) > 1 else (0.5, 0.5)
    return np.concatenate([[values[0] - first], middle, [values[-1] + last]])


def _spans_decades(values) -> bool:
    values = np.asarray(values)[np.isfinite(values)]
    return bool(values.size) and values.min() > 0 and values.max() > DECADES * values.min()


def _label(array) -> str:
    name = array.attrs.get("long_name", array.name)
    return f"{name} [{array.attrs['units']}]" if "units" in array.attrs else str(name)
