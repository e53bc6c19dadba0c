"""Energies of a motion."""

import jax
import numpy as np
from jaxtyping import Array, Float
from matplotlib.axes import Axes

from jdyn.dynamics import kinetic_energy, potential_energy
from jdyn.model import Model
from jdyn.model.model import compiled
from jdyn.simulation import Trajectory
from jdyn.view.plots.curves import curves
from jdyn.view.plots.one_motion import one_motion


def energy(trajectory: Trajectory, *, axes: Axes | None = None) -> Axes:
    """Kinetic, potential and total energy of one motion over time [J]; that of force elements, if there are some, and
    what it received, if an `jdyn.solvers.EnergyError` has counted it.

    >>> model = jdyn.load("pendulum")
    >>> motion = jdyn.simulate(model, jnp.array([1.0]), jnp.zeros(1), 1.0)
    >>> [line.get_label() for line in jdyn.plots.energy(motion).lines]
    ['total', 'kinetic', 'potential']

    Args:
        trajectory: One motion, not a batch.
        axes: Where to draw; a new figure if left out.

    Raises:
        ValueError: if `trajectory` is a batch.
    """
    one_motion("trajectory", trajectory)
    kinetic, potential = (np.asarray(row) for row in energies(trajectory.system.model, trajectory.q, trajectory.v))
    rows = {"total": kinetic + potential, "kinetic": kinetic, "potential": potential}
    if trajectory.system.elements:
        rows["total"] = np.asarray(trajectory.energy)
        rows["elements"] = rows["total"] - kinetic - potential
    if "supplied" in trajectory.parts:
        rows["supplied"] = np.asarray(trajectory.parts["supplied"])
    return curves(trajectory.ts, rows, "time [s]", "energy [J]", axes=axes)


@compiled
def energies(model: Model, qs: Float[Array, "times nq"], vs: Float[Array, "times nv"]) -> tuple[Array, Array]:
    """Kinetic and potential energy in each of many states [J]."""
    return jax.vmap(lambda q, v: (kinetic_energy(model, q, v), potential_energy(model, q)))(qs, vs)
