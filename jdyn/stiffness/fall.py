"""How many evaluations of forward dynamics an adaptive integrator needs for a motion."""

import dataclasses
import time

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics import Method, kinetic_energy, potential_energy
from jdyn.model import Model
from jdyn.simulation import Result, Trajectory, simulate
from jdyn.simulation.energy_control import largest
from jdyn.stiffness.condition import condition_numbers


@dataclasses.dataclass(frozen=True)
class Fall:
    """A motion under gravity alone.

    Attributes:
        method: Forward-dynamics method.
        dtype: Floating type of the whole simulation.
        condition: Condition number of the mass matrix at the start.
        result: How the simulation ended.
        evaluations: Evaluations of forward dynamics.
        energy_deviation: Mean over the motion of the energy, less that at the start [%] of `energy`; NaN where the
            simulation failed.
        seconds: Time of a run, compiling apart [s].
    """

    method: Method
    dtype: str
    condition: float
    result: Result
    evaluations: int
    energy_deviation: float
    seconds: float


def fall(
    model: Model,
    t1: float,
    *,
    method: Method,
    q0: Float[Array, " nq"] | None = None,
    energy: float | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 20_000,
) -> Fall:
    """Let a mechanism go from rest, by a fifth-order Runge-Kutta method that adapts its steps, and count.

    The largest error of any coordinate is held below `tolerance` times (1 + the coordinate). The thesis has Cash and
    Karp's pair and another measure of the error; here it is Dormand and Prince's, so that evaluations compare between
    methods and not with the thesis.

    Args:
        model: The mechanism, whose type is that of the simulation.
        t1: Length of the motion [s].
        method: Forward-dynamics method.
        q0: Where it starts; the neutral configuration if left out.
        energy: What to relate the energy's deviation to [J]; the largest kinetic energy if left out.
        tolerance: Of a step.
        max_steps: Most steps to try.

    Source: Cloutier 1995, sections 5.2.2 and 5.3.
    """
    q0 = model.neutral() if q0 is None else jnp.asarray(q0, model.dtype)
    arguments = model, q0, jnp.asarray(t1, model.dtype), jnp.asarray(tolerance, model.dtype), method, max_steps
    trajectory = jax.block_until_ready(_simulated(*arguments))
    started = time.perf_counter()
    jax.block_until_ready(_simulated(*arguments))
    seconds = time.perf_counter() - started
    kinetic, potential = map(np.asarray, energies(model, trajectory.q, trajectory.v))
    deviation = np.mean(kinetic + potential) - potential[0]
    return Fall(
        method=method,
        dtype=np.dtype(model.dtype).name,
        condition=float(condition_numbers(model, q0[None])[0]),
        result=Result(int(trajectory.result)),
        evaluations=int(trajectory.stats["dynamics_calls"]),
        energy_deviation=float(100 * deviation / (np.max(kinetic) if energy is None else energy)),
        seconds=seconds,
    )


def _simulated(model, q0, t1, tolerance, method, max_steps) -> Trajectory:
    return simulate(
        model,
        q0,
        jnp.zeros(model.nv, model.dtype),
        t1,
        method=method,
        solver=diffrax.Dopri5(),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance, norm=largest),
        max_steps=max_steps,
        throw=False,
    )


@jax.jit
def energies(model: Model, q: Float[Array, "rows nq"], v: Float[Array, "rows nv"]):
    """Kinetic and potential energy [J] in each of many states."""
    return jax.vmap(lambda q, v: (kinetic_energy(model, q, v), potential_energy(model, q)))(q, v)
