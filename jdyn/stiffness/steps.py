"""What each step of an integrator cost."""

import dataclasses
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from jdyn.control.dynamic import DynamicController, with_memory
from jdyn.dynamics import Method
from jdyn.model import Model, checked
from jdyn.simulation import CashKarp, Result
from jdyn.simulation.simulate import Control
from jdyn.simulation.solvers import on_manifold
from jdyn.simulation.stepping import Equations, Problem, attempt, begin
from jdyn.simulation.vector_field import State, VectorField
from jdyn.stiffness.recipes import QualityControl, WithRate


@dataclasses.dataclass(frozen=True)
class Steps:
    """A motion, a row before the first step and after each one that was accepted.

    Counts of steps are those of a whole motion, not of one that was `thinned`.

    Attributes:
        ts: Times [s], shape (rows,).
        q, v: States, shapes (rows, nq) and (rows, nv).
        memory: What the controller remembered; None for a function of the state.
        tries: How many steps were tried up to there, shape (rows,).
        evaluations: How many times forward dynamics was evaluated up to there, shape (rows,), as
            `Trajectory.stats["dynamics_calls"]` counts; None for solvers that do not say.
        result: How the motion ended.
    """

    ts: np.ndarray
    q: np.ndarray
    v: np.ndarray
    memory: Any
    tries: np.ndarray
    evaluations: np.ndarray | None
    result: Result

    @property
    def bad_steps(self) -> int:
        """Steps that were accepted after they had been shortened."""
        return int(np.sum(np.diff(self.tries) > 1))

    @property
    def good_steps(self) -> int:
        """Steps that were accepted as they were first tried."""
        return len(self.ts) - 1 - self.bad_steps

    @property
    def recipe_evaluations(self) -> int:
        """Evaluations that Numerical Recipes' Runge-Kutta program needs for these steps: one where a step starts and
        five a try.

        jdyn evaluates the end of a step within the try, for its dense output, and starts the next step with that.
        """
        return len(self.ts) - 1 + 5 * int(self.tries[-1])

    def at(self, rows) -> "Steps":
        """Some of the rows; what they have counted stays counted."""
        taken = {name: jax.tree.map(lambda x: x[rows], getattr(self, name)) for name in _ROWS}
        return dataclasses.replace(self, **taken)

    def thinned(self, interval: float, most: int) -> "Steps":
        """The first row, each that comes more than `interval` [s] after the last one taken, and the last; of more
        than `most` rows those at the end are left out, but for the last."""
        rows = [0]
        for row, t in enumerate(self.ts[:-1]):
            if t - self.ts[rows[-1]] > interval and len(rows) < most - 1:
                rows.append(row)
        return self.at(np.unique([*rows, len(self.ts) - 1]))


_ROWS = ("ts", "q", "v", "memory", "tries", "evaluations")


def take_steps(
    model: Model,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    t1: ArrayLike,
    *,
    controller: Control | DynamicController | None = None,
    method: Method | None = None,
    solver: diffrax.AbstractSolver | None = None,
    stepsize_controller: diffrax.AbstractStepSizeController | None = None,
    t0: ArrayLike = 0.0,
    dt0: ArrayLike = 0.01,
    max_steps: int = 16384,
) -> Steps:
    """A motion as `jdyn.simulate` computes it, with an account of every step.

    Args:
        model: The mechanism.
        q0: Configuration at `t0` [rad or m].
        v0: Velocity at `t0` [rad/s or m/s].
        t1: End [s], after `t0`.
        controller: As `jdyn.simulate` takes it; no torque if left out.
        method: Forward-dynamics method; `jdyn.ABA()` if left out.
        solver: As `jdyn.simulate` takes it; that of the thesis, `WithRate(CashKarp())`, if left out.
        stepsize_controller: A diffrax step controller; that of the thesis with an accuracy of 1e-4,
            `QualityControl`, if left out.
        t0: Start [s].
        dt0: First step [s].
        max_steps: Most steps to try.

    Returns:
        The steps as far as they got; a failure is a code in `result`.

    Raises:
        ValueError: if a size disagrees with `model`.

    Source: Cloutier 1995, section 5.1.3.
    """
    q0, v0 = checked(model, q=q0, v=v0)
    q0, v0, t0, t1, dt0 = (jnp.asarray(x, model.dtype) for x in (q0, v0, t0, t1, dt0))
    solver = WithRate(CashKarp()) if solver is None else solver
    stepsize_controller = QualityControl(accuracy=1e-4) if stepsize_controller is None else stepsize_controller
    field = VectorField(model, with_memory(controller), method)
    run, tries, evaluations = _run(field, q0, v0, t0, t1, dt0, solver, stepsize_controller, max_steps)
    states: State = run.rows.ys
    steps = Steps(
        ts=np.asarray(run.rows.ts, float),
        q=np.asarray(states.q),
        v=np.asarray(states.v),
        memory=jax.tree.map(np.asarray, states.memory),
        tries=np.asarray(tries),
        evaluations=None if run.work is None else np.asarray(evaluations),
        result=Result(int(run.result)),
    )
    return steps.at(slice(0, int(run.rows.written)))


@eqx.filter_jit
def _run(field, q0, v0, t0, t1, dt0, solver, stepsize_controller, max_steps):
    """The run, and how many steps were tried and evaluations made by each of its rows."""
    problem = Problem(
        equations=Equations(field, jnp.ones_like(t0)),
        y0=State(q0, v0, field.controller.start(t0, q0, v0)),
        t0=t0,
        t1=t1,
        times=t0[None],
        dt0=dt0,
        solver=on_manifold(solver, field.model),
        stepsize_controller=stepsize_controller,
        events=(),
        max_steps=max_steps,
        max_events=0,
        every=1,
        last=False,
    )

    def body(state):
        before, tries, evaluations = state
        after = attempt(problem, before)
        # A step that was not accepted makes no row: its place is out of bounds.
        row = jnp.where(after.accepted > before.accepted, after.accepted, max_steps + 1)
        tries = tries.at[row].set(after.accepted + after.rejected, mode="drop")
        if after.work is not None:
            evaluations = evaluations.at[row].set(after.work.evaluations, mode="drop")
        return after, tries, evaluations

    counts = jnp.zeros(max_steps + 1, jnp.int32)
    return jax.lax.while_loop(lambda state: state[0].running, body, (begin(problem), counts, counts))
