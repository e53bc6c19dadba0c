"""Figures without pyplot: no global state changes and no window opens. Save one with `figure.savefig(path)`."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np
from matplotlib.figure import Figure

from jdyn.dynamics import kinetic_energy, potential_energy
from jdyn.model import Model, checked
from jdyn.simulation import Trajectory
from jdyn.view.scales import spans_decades


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
    history.set(xlabel="step", ylabel="loss", yscale="log" if spans_decades(losses) else "linear")
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
