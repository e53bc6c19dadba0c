"""Evaluations of forward dynamics that an adaptive integrator needs for a motion."""

import dataclasses
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics import Method, kinetic_energy, potential_energy
from jdyn.model import Model
from jdyn.simulation import Result, System
from jdyn.studies.cloutier1995.condition import condition_numbers
from jdyn.studies.cloutier1995.numerical_recipes import QualityControl
from jdyn.studies.cloutier1995.rows import in_rows
from jdyn.studies.cloutier1995.steps import Steps, take_steps

# Least scale of an error: Numerical Recipes' number, and a larger one that the rounding of float32 needs.
TINY = {"float64": 1e-30, "float32": 1e-3}


@dataclasses.dataclass(frozen=True)
class Fall:
    """A motion under gravity alone.

    Attributes:
        method: Forward-dynamics method.
        dtype: Floating type of the whole simulation.
        condition: Condition number of the mass matrix at the start.
        steps: The motion, step by step.
        energy_deviation: Mean energy over the steps minus the energy at the start, in % of `energy`; NaN if the
            simulation failed.
        seconds: Time of a run without compiling [s].
    """

    method: Method
    dtype: str
    condition: float
    steps: Steps
    energy_deviation: float
    seconds: float

    @property
    def result(self) -> Result:
        """End of the simulation."""
        return self.steps.result

    @property
    def evaluations(self) -> int:
        """Evaluations of forward dynamics, as Numerical Recipes' program needs them."""
        return self.steps.recipe_evaluations


def fall(
    model: Model,
    t1: float,
    *,
    method: Method,
    q0: Float[Array, " nq"] | None = None,
    energy: float | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 50_000,
) -> Fall:
    """Release a mechanism from rest, and count the evaluations of the thesis' integrator.

    That is Cash and Karp's Runge-Kutta method with the step control of Numerical Recipes. In float32 the scale of an
    error is at least 1e-3, since otherwise rounding alone exceeds what the control accepts near zero.

    Args:
        model: The mechanism; its type is that of the simulation.
        t1: Length of the motion [s].
        method: Forward-dynamics method.
        q0: Start; the neutral configuration if left out.
        energy: Reference of the energy's deviation [J]; the largest kinetic energy if left out.
        tolerance: Relative tolerance of a step.
        max_steps: Most steps to try.

    Source: Cloutier 1995, sections 5.1.5, 5.2.2 and 5.3.
    """
    q0 = model.neutral() if q0 is None else jnp.asarray(q0, model.dtype)
    dtype = np.dtype(model.dtype).name
    control = QualityControl(accuracy=tolerance, tiny=TINY[dtype])

    system = System(model, method=method)

    def run(until):
        return take_steps(system, system.state(q0), until, stepsize_controller=control, max_steps=max_steps)

    # No time takes no steps, and the same program.
    run(0.0)
    started = time.perf_counter()
    steps = run(t1)
    seconds = time.perf_counter() - started
    kinetic, potential = energies(model, steps.q, steps.v)
    deviation = np.mean(kinetic + potential) - potential[0] if steps.result == Result.success else np.nan
    return Fall(
        method=method,
        dtype=dtype,
        condition=float(condition_numbers(model, q0[None])[0]),
        steps=steps,
        energy_deviation=float(100 * deviation / (np.max(kinetic) if energy is None else energy)),
        seconds=seconds,
    )


def energies(
    model: Model, q: Float[Array | np.ndarray, "rows nq"], v: Float[Array | np.ndarray, "rows nv"]
) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " rows"]]:
    """Kinetic and potential energy [J] in each of many states."""
    return in_rows(functools.partial(_energies, model), q, v)


@jax.jit
def _energies(model, q, v):
    return jax.vmap(lambda q, v: (kinetic_energy(model, q, v), potential_energy(model, q)))(q, v)
