"""What a simulation returns."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int, PyTree

from jdyn.simulation.result import succeeded


class Events(eqx.Module):
    """What happened, in order, as far as there is room for; beyond it NaN, and -1 in `which`.

    Attributes:
        ts: Times [s].
        which: Number of the event, as `simulate` was given it.
        q, v: State after it.
    """

    ts: Float[Array, " events"]
    which: Int[Array, " events"]
    q: Float[Array, "events nq"]
    v: Float[Array, "events nv"]


class Trajectory(eqx.Module):
    """A simulated motion. Under `jax.vmap` every array gains a leading axis of lanes.

    Rows that were not reached are NaN in `q` and `v`.

    Attributes:
        ts: Times [s].
        q: Configurations [rad or m], quaternions of unit length.
        v: Velocities [rad/s or m/s].
        memory: What the controller remembered, a row a time; None for a function of the state.
        energy: What the mechanism was given, by its start and by work [J]; None unless the solver is an `EnergyError`.
        events: What happened.
        result: How the simulation ended, a `jdyn.Result` as an integer.
        stats: `t_reached`, the time [s] up to which the simulation got; `accepted_steps` and `rejected_steps`;
            `dynamics_calls`, how many times forward dynamics was evaluated, None where that depends on the
            iterations of an implicit solver.
    """

    ts: Float[Array, " times"]
    q: Float[Array, "times nq"]
    v: Float[Array, "times nv"]
    memory: PyTree[Array]
    energy: Float[Array, " times"] | None
    events: Events
    result: Int[Array, ""]
    stats: dict[str, Any]

    @property
    def success(self):
        """Whether the end was reached, or an event that ends the simulation."""
        return succeeded(self.result)
