"""What a simulation returns."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int

from jdyn.simulation.result import Result


class Trajectory(eqx.Module):
    """A simulated motion. Under `jax.vmap` every array gains a leading axis of lanes.

    Rows that were not reached are NaN in `q` and `v`.

    Attributes:
        ts: Times [s].
        q: Configurations [rad or m], quaternions of unit length.
        v: Velocities [rad/s or m/s].
        result: How the simulation ended, a `jdyn.Result` as an integer.
        stats: `t_reached`, the time [s] up to which the simulation got; `accepted_steps` and `rejected_steps`;
            `dynamics_calls`, how many times forward dynamics was evaluated, None where that depends on the
            iterations of an implicit solver.
    """

    ts: Float[Array, " times"]
    q: Float[Array, "times nq"]
    v: Float[Array, "times nv"]
    result: Int[Array, ""]
    stats: dict[str, Any]

    @property
    def success(self):
        """Whether the end was reached."""
        return self.result == Result.success
