"""Step control by the energy that steps gain or lose."""

import math
from collections.abc import Callable

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Scalar

from jdyn.dynamics import kinetic_energy, potential_energy
from jdyn.dynamics.passive import dissipated_power
from jdyn.model import Model
from jdyn.simulation.solver import Delegating, Traits
from jdyn.simulation.state import Owner, State


def mechanical_energy(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Scalar:
    """Kinetic and potential energy [J]."""
    return kinetic_energy(model, q, v) + potential_energy(model, q)


class SuppliedEnergy(Owner):
    """Energy that the mechanism received: its own at the start, and the work that is done since [J]."""

    part = "supplied"

    def start(self, model, t, q, v):
        return mechanical_energy(model, q, v)

    def rate(self, model, t, y, tau):
        return y.v @ tau - dissipated_power(model, model.expand_velocity(y.v))

    def after_event(self, model, before, after):
        work = mechanical_energy(model, after.q, after.v) - mechanical_energy(model, before.q, before.v)
        return before.parts[self.part] + work


class EnergyError(Delegating):
    """A solver whose error estimate has one more entry: the energy that a step gains or loses, ΔE less the work done.

    `simulate` integrates the work of the controller, of force elements, of dampers and of friction with the motion. Any
    step controller then compares |ΔE − W| [J] with its tolerances and the energy itself, in addition to the errors that
    the solver estimates. A solver without an error estimate gets this one.

    >>> import diffrax
    >>> solver = jdyn.solvers.EnergyError(diffrax.Tsit5())
    >>> motion = jdyn.simulate(jdyn.load("pendulum"), jnp.ones(1), jnp.zeros(1), 1.0, solver=solver)
    >>> print(jnp.ptp(motion.energy) < 1e-4)
    True

    Source: Joukhadar, RobotΦ: dynamic modeling system for robotics applications, INRIA RR-2543, 1995, section 4.3.

    Attributes:
        solver: The wrapped solver.
    """

    solver: diffrax.AbstractSolver

    @property
    def traits(self) -> Traits:
        return super().traits._replace(owners=(SuppliedEnergy(),))

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        y1, error, *rest = self.solver.step(terms, t0, t1, y0, args, solver_state, made_jump)
        error = jax.tree.map(jnp.zeros_like, y1) if error is None else error
        return y1, eqx.tree_at(_supplied, error, self._surplus(y1) - self._surplus(y0)), *rest

    def _surplus(self, y: State) -> Scalar:
        """Energy of a state less the work done on it; `simulate` has given the solver its model."""
        # `on_manifold` has wrapped it in a solver that has a model.
        return mechanical_energy(self.solver.model, y.q, y.v) - _supplied(y)  # type: ignore[attr-defined]


def _supplied(y: State) -> Scalar:
    return y.parts[SuppliedEnergy.part]


def largest(y: PyTree[Array]) -> Scalar:
    """The largest entry of a tree, by its size."""
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(y)]))


class HalveOrGrow(diffrax.AbstractAdaptiveStepSizeController):
    """RobotΦ's rule: a step is halved until its energy error is below a bound, and the next one is half as long again.

    Use it with `EnergyError`. The factors down and up differ: otherwise a step that is slightly too long would be tried
    again and again.

    >>> import diffrax
    >>> rule, solver = jdyn.solvers.HalveOrGrow(tolerance=1e-6), jdyn.solvers.EnergyError(diffrax.Tsit5())
    >>> motion = jdyn.simulate(
    ...     jdyn.load("pendulum"), jnp.ones(1), jnp.zeros(1), 1.0, solver=solver, stepsize_controller=rule
    ... )
    >>> bool(motion.success)
    True

    Source: Joukhadar, RobotΦ: dynamic modeling system for robotics applications, INRIA RR-2543, 1995, section 4.3.

    Attributes:
        tolerance: Largest energy error of a step [J].
        longest: Longest step [s].
        rtol, atol, norm: How exactly implicit solvers solve their equations.
    """

    tolerance: Float[Array, ""] | float
    longest: Float[Array, ""] | float = math.inf
    rtol: float = 1e-6
    atol: float = 1e-9
    norm: Callable[[PyTree], Scalar] = largest

    def wrap(self, direction):
        return self

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        if SuppliedEnergy.part not in y0.parts:
            raise ValueError(
                "HalveOrGrow: expected a solver that counts energy; wrap it as jdyn.solvers.EnergyError(solver)"
            )
        return t0 + jnp.minimum(dt0, self.longest), None

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        keep = jnp.abs(_supplied(y_error)) < self.tolerance  # type: ignore[arg-type]
        length = jnp.minimum((t1 - t0) * jnp.where(keep, 1.5, 0.5), self.longest)
        start = jnp.where(keep, t1, t0)
        return keep, start, start + jax.lax.stop_gradient(length), False, None, diffrax.RESULTS.successful
