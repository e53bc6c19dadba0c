"""The statistics of a motion that the thesis' simulator writes."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jdyn.dynamics import ABA, CRBA, forward_dynamics
from jdyn.simulation import Trajectory
from jdyn.studies.cloutier1995.condition import condition_numbers
from jdyn.studies.cloutier1995.fall import energies
from jdyn.studies.cloutier1995.rows import in_rows
from jdyn.studies.cloutier1995.steps import Steps


@dataclasses.dataclass(frozen=True)
class Statistics:
    """A motion and its statistics, one row for each time; NaN for times that the motion did not reach.

    >>> model = jdyn.load("double_pendulum")
    >>> motion = jdyn.simulate(model, jnp.ones(2), jnp.zeros(2), 1.0)
    >>> found = jdyn.studies.statistics(motion)
    >>> bool(np.max(np.abs(found.difference)) < 1e-3)
    True

    Attributes:
        ts: Times [s], shape (rows,).
        q: Configurations [rad or m], shape (rows, nq).
        v: Velocities [rad/s or m/s], shape (rows, nv).
        a: Accelerations [rad/s² or m/s²], shape (rows, nv).
        kinetic, potential: Energies [J], shape (rows,).
        condition: Condition number of the mass matrix, shape (rows,).
        difference: Relative difference of each of CRBA's accelerations from ABA's, shape (rows, nv).
        evaluations: Evaluations of forward dynamics since the row before, shape (rows,); None if not counted.
    """

    ts: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    kinetic: np.ndarray
    potential: np.ndarray
    condition: np.ndarray
    difference: np.ndarray
    evaluations: np.ndarray | None

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy [J], shape (rows,)."""
        return self.kinetic + self.potential


def statistics(motion: Trajectory | Steps) -> Statistics:
    """Accelerations, energies, condition number, and how far CRBA is from ABA, along a motion.

    ```
    system = jdyn.System(model, method=jdyn.CRBA())
    steps = jdyn.studies.cloutier1995.take_steps(system, system.state(q0, v0), 10.0)
    found = jdyn.studies.statistics(steps.thinned(0.01, 1000))
    ```

    >>> model = jdyn.load("double_pendulum")
    >>> found = jdyn.studies.statistics(jdyn.simulate(model, jnp.ones(2), jnp.zeros(2), 1.0))
    >>> found.condition.shape, bool(np.ptp(found.energy) < 1e-3)
    ((101,), True)

    Args:
        motion: One motion, not a batch, from `jdyn.simulate` or from `take_steps`, which counts evaluations.
            Accelerations are by the method of its system; a `jdyn.CRBA` is also the one compared with ABA.

    Raises:
        ValueError: if the motion is a batch, or does not know its controller, which has functions.

    Source: Cloutier 1995, section 5.1.3; the relative difference is that of section 5.1.2.
    """
    system = motion.system
    model = system.model.without_shapes()
    q, v = jnp.asarray(motion.q), jnp.asarray(motion.v)
    expected = (len(motion.ts), model.nq), (len(motion.ts), model.nv)
    if (q.shape, v.shape) != expected:
        raise ValueError(
            f"motion: expected one motion of {model.name!r}, q and v of shapes {expected[0]} and {expected[1]}, "
            f"got {q.shape} and {v.shape}; of a batch take one lane"
        )
    method = ABA() if system.method is None else system.method
    crba = method if isinstance(method, CRBA) else CRBA()
    controller, memory = system.driver(), motion.parts.get("controller")
    rows = (jnp.asarray(motion.ts, model.dtype), q, v, memory)
    by_method, by_crba, by_aba = (
        np.asarray(in_rows(functools.partial(_accelerations, m, model, controller), *rows), float)
        for m in (method, crba, ABA())
    )
    kinetic, potential = (np.asarray(energy, float) for energy in energies(model, q, v))
    counts = motion.evaluations if isinstance(motion, Steps) else None
    return Statistics(
        ts=np.asarray(motion.ts, float),
        q=np.asarray(q, float),
        v=np.asarray(v, float),
        a=by_method,
        kinetic=kinetic,
        potential=potential,
        condition=condition_numbers(model, q),
        difference=relative_difference(by_crba, by_aba),
        evaluations=None if counts is None else np.diff(counts, prepend=0),
    )


def relative_difference(a: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """|(exact − a) / exact| for each acceleration, and |a| where `exact` is zero.

    Source: Cloutier 1995, section 5.1.2.
    """
    return np.abs((exact - a) / np.where(exact == 0, 1, exact))


@eqx.filter_jit
def _accelerations(method, model, controller, ts, q, v, memory):
    def acceleration(t, q, v, memory):
        return forward_dynamics(model, q, v, controller.force(t, q, v, memory), method=method)

    return jax.vmap(acceleration)(ts, q, v, memory)
