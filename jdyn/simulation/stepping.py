"""One step of a simulation: what it needs, what it changes."""

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Float, Int, PyTree, Scalar

from jdyn.simulation.result import Result
from jdyn.simulation.vector_field import State, VectorField

# A step of this many roundings of the time is too small to be told from none.
SMALLEST_STEP = 16

# First step to try [s]; controllers correct it within a few steps.
FIRST_STEP = 0.01


class Equations(diffrax.AbstractTerm):
    """A vector field that is integrated forwards or backwards in time; solvers see a time that increases.

    Attributes:
        field: The equations of motion.
        direction: 1 or -1.
    """

    field: VectorField
    direction: Scalar

    def vf(self, t, y, args):
        return self.field(self.direction * t, y, args)

    def contr(self, t0, t1, **kwargs):
        return self.direction * (t1 - t0)

    def prod(self, vf, control):
        return jax.tree.map(lambda rate: rate * control, vf)


class Problem(eqx.Module):
    """A simulation to run. Times are those that solvers see: they increase from `t0` to `t1`.

    Attributes:
        equations: The equations of motion.
        y0: State at `t0`.
        t0, t1: Start and end [s].
        times: Of rows [s], in order.
        dt0: First step [s], None where the step controller knows it.
        solver: Takes a step.
        stepsize_controller: Judges it.
        max_steps: Most steps to try.
        every: A row after every so many steps, beside those at `times`; 0 for none.
        last: Whether the end is a row even where `every` does not say so.
    """

    equations: Equations
    y0: State
    t0: Scalar
    t1: Scalar
    times: Float[Array, " rows"]
    dt0: Scalar | None
    solver: diffrax.AbstractSolver
    stepsize_controller: diffrax.AbstractStepSizeController[Any, Any]
    max_steps: int = eqx.field(static=True)
    every: int = eqx.field(static=True)
    last: bool = eqx.field(static=True)

    @property
    def rows(self) -> int:
        """How many there can be."""
        steps = self.max_steps // self.every if self.every else 0
        return len(self.times) + steps + (self.last and self.every > 1)


class Motion(eqx.Module):
    """Where a simulation is, between two steps: all that the next one depends on.

    Attributes:
        t: Time [s].
        y: State.
        solver_state: What the solver remembers.
        jumped: Whether the state or its rate has just jumped.
    """

    t: Scalar
    y: State
    solver_state: PyTree
    jumped: Bool[Array, ""]


class Rows(eqx.Module):
    """Rows of a trajectory, as far as they are written. What is not is NaN.

    Attributes:
        ts: Times [s].
        ys: States.
        written: How many.
        due: Which of the problem's times comes next.
    """

    ts: Float[Array, " rows"]
    ys: State
    written: Int[Array, ""]
    due: Int[Array, ""]


class Run(eqx.Module):
    """A simulation under way.

    Attributes:
        motion: Where it is.
        target: Where the next step is to end [s].
        controller_state: What the step controller remembers.
        rows: Of the trajectory.
        running: Whether there is something left to do.
        result: `Result` so far.
        accepted, rejected: Steps.
        first_stages: Steps that had to evaluate their first stage, for want of an earlier step to take it from.
    """

    motion: Motion
    target: Scalar
    controller_state: PyTree
    rows: Rows
    running: Bool[Array, ""]
    result: Int[Array, ""]
    accepted: Int[Array, ""]
    rejected: Int[Array, ""]
    first_stages: Int[Array, ""]


def begin(problem: Problem) -> Run:
    """A simulation before its first step."""
    solver, t0, t1, y0 = problem.solver, problem.t0, problem.t1, problem.y0
    dt0 = problem.dt0
    if dt0 is None and isinstance(problem.stepsize_controller, diffrax.AbstractAdaptiveStepSizeController):
        dt0 = jnp.asarray(FIRST_STEP, t0.dtype)
    target, controller_state = problem.stepsize_controller.init(
        problem.equations, t0, t1, y0, dt0, None, solver.func, solver.error_order(problem.equations)
    )
    target = jnp.asarray(target, t0.dtype)
    solver_state = solver.init(problem.equations, t0, target, y0, None)
    counts = jnp.zeros((), jnp.int32)
    good = jnp.isfinite(t0) & jnp.isfinite(t1)
    return Run(
        motion=Motion(t0, y0, solver_state, jnp.array(True)),
        target=target,
        controller_state=jax.tree.map(jnp.asarray, controller_state),
        rows=_first_rows(problem),
        running=good & (t0 < t1),
        result=jnp.where(good, Result.success, Result.nonfinite).astype(jnp.int32),
        accepted=counts,
        rejected=counts,
        first_stages=counts,
    )


def attempt(problem: Problem, run: Run) -> Run:
    """Try a step, and keep it or try a smaller one next time. A run that has ended stays as it is."""
    solver, t0 = problem.solver, run.motion.t
    end = _end(problem, run.target)
    motion, error, dense, solver_result = step(problem, run.motion, end)
    # Solvers of no order go with step controllers that do not ask for one.
    order: Any = solver.error_order(problem.equations)
    keep, _, target, jumped, controller_state, controller_result = problem.stepsize_controller.adapt_step_size(
        t0, end, run.motion.y, motion.y, None, error, order, run.controller_state
    )
    keep, jumped = jnp.asarray(keep) & run.running, jnp.asarray(jumped)
    target = jax.lax.stop_gradient(jnp.asarray(target, end.dtype))
    ended = keep & (end >= problem.t1)
    result = _judged(problem, run, keep, ended, motion, target, solver_result, controller_result)
    motion = eqx.tree_at(lambda motion: motion.jumped, motion, jumped)
    accepted = run.accepted + _one(keep)
    rejected = run.rejected + _one(run.running & ~keep)
    out_of_steps = ~ended & (accepted + rejected >= problem.max_steps)
    result = jnp.where((result == Result.success) & out_of_steps, Result.max_steps, result)
    ended = ended | (result != Result.success)
    return Run(
        motion=_where(keep, motion, run.motion),
        target=_where(run.running, target, run.target),
        controller_state=_where(run.running, controller_state, run.controller_state),
        rows=_with_rows(problem, run.rows, keep, t0, end, accepted, motion.y, dense),
        running=run.running & ~ended,
        result=_where(run.running, result, run.result).astype(jnp.int32),
        accepted=accepted,
        rejected=rejected,
        first_stages=run.first_stages + _one(run.running & run.motion.jumped),
    )


def step(problem: Problem, motion: Motion, end: Scalar):
    """The motion one step on, the error that the solver estimates, what its dense output needs, how it went."""
    y, error, dense, solver_state, result = problem.solver.step(
        problem.equations, motion.t, end, motion.y, None, motion.solver_state, motion.jumped
    )
    return Motion(end, y, solver_state, jnp.array(False)), error, dense, result


def interpolated(problem: Problem, t0: Scalar, t1: Scalar, y1: State, dense: PyTree, t: Scalar) -> State:
    """The state at `t` within a step from `t0` to `t1`, and exactly what the step ends with at its end."""
    inside = problem.solver.interpolation_cls(t0=t0, t1=t1, **dense).evaluate(t)
    return _where(t < t1, inside, y1)


def _end(problem, target):
    """End of the next step; one that is too short to be a step of its own is joined to the last."""
    t1 = problem.t1
    return jnp.where(target < t1 - _smallest(problem), target, t1)


def _smallest(problem):
    t0, t1 = jax.lax.stop_gradient((problem.t0, problem.t1))
    return SMALLEST_STEP * jnp.finfo(t1.dtype).eps * jnp.maximum(jnp.abs(t0), jnp.abs(t1))


def _judged(problem, run, keep, ended, motion, target, solver_result, controller_result):
    """Why a simulation cannot go on, or success."""
    finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(motion.y)]))
    # Written so that a NaN step counts as too small.
    stuck = ~keep & ~(target - run.motion.t > _smallest(problem))
    result = jnp.array(Result.success, jnp.int32)
    result = jnp.where(_failed(solver_result) & keep, Result.solver_failed, result)
    result = jnp.where(_failed(controller_result), Result.solver_failed, result)
    result = jnp.where(stuck, Result.step_too_small, result)
    return jnp.where(~finite & (keep | stuck), Result.nonfinite, result)


def _failed(result):
    return ~jnp.asarray(result == diffrax.RESULTS.successful)


def _first_rows(problem):
    """No rows but those at the start."""
    at_start = jnp.isfinite(problem.t1) & (problem.times <= problem.t0)
    written = jnp.sum(at_start, dtype=jnp.int32)
    times = jnp.pad(problem.times, (0, problem.rows - len(problem.times)))
    here = jnp.arange(problem.rows, dtype=written.dtype) < written

    def rows(y):
        return jnp.where(here.reshape(-1, *[1] * y.ndim), y[None], jnp.full((), jnp.nan, y.dtype))

    return Rows(jnp.where(here, times, jnp.nan), jax.tree.map(rows, problem.y0), written, written)


def _with_rows(problem, rows, keep, t0, t1, accepted, y1, dense):
    """The rows, and those that lie within an accepted step."""

    def due(rows):
        inside = problem.times.at[rows.due].get(mode="fill", fill_value=jnp.nan) <= t1
        return keep & inside

    def save(rows):
        now = due(rows)
        t = problem.times.at[rows.due].get(mode="fill", fill_value=0)
        rows = _appended(rows, now, t, interpolated(problem, t0, t1, y1, dense, t))
        return eqx.tree_at(lambda rows: rows.due, rows, rows.due + _one(now))

    if len(problem.times):
        # Were the condition one of each lane, a batch would select among whole buffers after every row.
        rows = jax.lax.while_loop(lambda rows: unvmap_any(due(rows)), save, rows)
    if not problem.every:
        return rows
    wanted = (accepted % problem.every == 0) | (problem.last & (t1 >= problem.t1))
    return _appended(rows, keep & wanted, t1, y1)


def _appended(rows, now, t, y):
    where = jnp.where(now, rows.written, len(rows.ts))
    ts = rows.ts.at[where].set(t, mode="drop")
    ys = jax.tree.map(lambda all, y: all.at[where].set(y, mode="drop"), rows.ys, y)
    return Rows(ts, ys, rows.written + _one(now), rows.due)


def _one(condition):
    return jnp.where(condition, 1, 0)


def _where(condition, new, old):
    return jax.tree.map(lambda new, old: jnp.where(condition, new, old), new, old)
