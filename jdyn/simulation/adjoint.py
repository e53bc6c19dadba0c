"""Reverse-mode derivatives of simulations: accepted steps are recorded, and replayed from the last to the first."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float, Int, PyTree

from jdyn.array import where
from jdyn.execution.lane_refill import Loop, run
from jdyn.simulation.across_kinks import has_kinks, step_across_kinks, step_for_forward_mode, warn_of_jumps
from jdyn.simulation.loop import (
    Motion,
    Problem,
    Run,
    StepSpan,
    TakenStep,
    after_event_and_tick,
    forces_within,
    interpolated,
    step,
)
from jdyn.simulation.solver import FORCES
from jdyn.simulation.state import State
from jdyn.simulation.variation import with_variation
from jdyn.simulation.varied_run import VariedRun, variation_direction

# Number of first steps before which the states are kept; most simulations need no others.
FIRST_STEPS = 512


class Record(eqx.Module):
    """The record of a simulation for its replay; the number of states grows with √max_steps.

    Attributes:
        spans: Spans of accepted steps.
        fired: Events that happened at their ends; -1 for none.
        first_force_times: First times at which forces were evaluated after them, as in `Motion`; None where forces do
            not jump.
        rows: Number of rows of the trajectory that were written before each.
        checkpoints: Motions before each of the first steps, and then before every `spacing`-th.
        spacing: Steps from checkpoint to checkpoint.
    """

    spans: StepSpan
    fired: Int[Array, " max_steps"]
    first_force_times: Float[Array, " max_steps"] | None
    rows: Int[Array, " max_steps"]
    checkpoints: Motion
    spacing: int = eqx.field(static=True)

    def checkpoint(self, step: Int[Array, ""]) -> Int[Array, ""]:
        """Number of the last checkpoint at or before a step."""
        return jnp.where(step < FIRST_STEPS, step, FIRST_STEPS + (step - FIRST_STEPS) // self.spacing)

    def step(self, checkpoint: Int[Array, ""]) -> Int[Array, ""]:
        """Number of the step that begins at a checkpoint."""
        return jnp.where(checkpoint < FIRST_STEPS, checkpoint, FIRST_STEPS + (checkpoint - FIRST_STEPS) * self.spacing)


def solve(problem: Problem) -> Run:
    """The simulation, run to its end.

    Reverse mode differentiates the accepted steps alone: no rejected step, and no loop of unknown length. It treats
    lengths of steps as constants, which changes the motion by less than its tolerance; all steps move with `t0`, but
    those that end at a given time, as the last one does at `t1`. In a batch no lane waits for another, in either
    direction. A replay computes cotangents only of inputs that are differentiated, of the start and of the rows.
    """
    arrays, static = eqx.partition(problem, eqx.is_array)

    def problem_of(arrays) -> Problem:
        return eqx.combine(*arrays, static)

    @jax.custom_vjp
    def solved(arrays):
        return run(_simulation(problem_of, problem.has_contact, step), ((arrays,), None))

    def forward(arrays):
        # JAX calls this rule once for each set of differentiated inputs. The structure of residuals must not depend on
        # that set, but their shapes may: mark differentiated inputs by arrays of one entry, others by empty ones.
        perturbed = _perturbed_inputs(arrays)
        marks = jax.tree.map(lambda wanted: jnp.zeros(int(wanted)), _inputs_with_cotangents(perturbed, arrays))
        warn_of_jumps(problem)
        arrays = jax.tree.map(lambda x: x.value, arrays)
        direction = variation_direction(problem_of((arrays,)), perturbed)
        final, record = run(_recorded_simulation(problem_of, problem.has_contact), ((arrays,), direction))
        return final, (arrays, marks, final, record)

    def backward(residuals, cotangent):
        arrays, marks, final, record = residuals
        wanted, rest = eqx.partition(arrays, jax.tree.map(lambda mark: len(mark) > 0, marks))
        rows, events = jax.tree.map(_instantiated, _differentiable_results(cotangent), _differentiable_results(final))
        # Derivatives of forces are rarely wanted, and steps need not compute them otherwise.
        wanted_forces = not all(isinstance(x, SymbolicZero) for x in jax.tree.leaves(cotangent.rows.forces))
        forces = jax.tree.map(_instantiated, cotangent.rows.forces, final.rows.forces) if wanted_forces else None
        return (run(_replay(problem_of), _ReplayJob((wanted, rest), final, record, rows, forces, events)),)

    solved.defvjp(forward, backward, symbolic_zeros=True)
    return solved(arrays)


def _perturbed_inputs(arrays: Problem) -> Problem:
    """Tell which inputs are differentiated."""
    return jax.tree.map(lambda x: x.perturbed and jnp.issubdtype(x.value.dtype, jnp.inexact), arrays)


def _inputs_with_cotangents(perturbed: Problem, arrays: Problem) -> Problem:
    """Tell of which inputs a replay computes cotangents: differentiated ones, and always the state and the time at the
    start, where the replay ends, and the times of rows, which it passes."""

    def always(problem):
        return problem.y0, problem.t0, problem.row_times

    inexact = jax.tree.map(lambda x: jnp.issubdtype(x.value.dtype, jnp.inexact), arrays)
    return eqx.tree_at(always, perturbed, always(inexact))


def _differentiable_results(final: Run):
    """The results that have derivatives, in the order of `_Job`: states of rows, and times and states of events."""
    return final.rows.ys, (final.log.ts, final.log.ys)


def _instantiated(cotangent, x):
    return jnp.zeros_like(x) if isinstance(cotangent, SymbolicZero) else cotangent


def solve_forwards(problem: Problem) -> Run:
    """The simulation, for forward-mode derivatives."""
    arrays, static = eqx.partition(problem, eqx.is_array)
    warn_of_jumps(problem)
    take_step = step_for_forward_mode if has_kinks(problem) else step

    def problem_of(arrays) -> Problem:
        return eqx.combine(*arrays, static)

    @jax.custom_jvp
    def solved(arrays):
        return run(_simulation(problem_of, problem.has_contact, take_step), ((arrays,), None))

    def forwards(primals, tangents):
        (arrays,), (tangents,) = primals, tangents
        perturbed = jax.tree.map(lambda x: not isinstance(x, SymbolicZero), tangents)
        moving, fixed = eqx.partition(arrays, perturbed)
        tangents = eqx.filter(tangents, perturbed)
        direction = variation_direction(problem_of((arrays,)), perturbed)

        def simulated(moving):
            return run(
                _simulation(problem_of, problem.has_contact, take_step), ((eqx.combine(moving, fixed),), direction)
            )

        return jax.jvp(simulated, (moving,), (tangents,))

    solved.defjvp(forwards, symbolic_zeros=True)
    return solved(arrays)


def _simulation(problem_of, apart: bool, take_step: Callable) -> Loop:
    """The simulation, from the arrays of a problem and the direction of its variation, if there is one."""

    def init(job):
        arrays, direction = job
        return VariedRun.begin(problem_of(arrays), direction)

    def body(job, state):
        arrays, direction = job
        return state.after_attempt(problem_of(arrays), direction, take_step)[1]

    return Loop(init, lambda state: state.run.unfinished, body, lambda job, state: state.final_run, apart)


def _recorded_simulation(problem_of, apart: bool) -> Loop:
    """The simulation with its record."""

    def init(job):
        arrays, direction = job
        problem = problem_of(arrays)
        state = VariedRun.begin(problem, direction)
        return state, _empty_record(problem, with_variation(state.run.motion, None))

    def body(job, state):
        arrays, direction = job
        before, record = state
        run, after = before.after_attempt(problem_of(arrays), direction, step)
        return after, _with_step(record, before.run, run)

    def result(job, state):
        return state[0].final_run, state[1]

    return Loop(init, lambda state: state[0].run.unfinished, body, result, apart)


def _empty_record(problem: Problem, motion: Motion) -> Record:
    later = max(problem.max_steps - FIRST_STEPS, 0)
    spacing = math.isqrt(later) + 1
    count = min(problem.max_steps, FIRST_STEPS) + -(-later // spacing)
    checkpoints = jax.tree.map(lambda x: jnp.zeros((count, *x.shape), x.dtype), motion)
    nothing = jnp.zeros(problem.max_steps, problem.t0.dtype)
    none = jnp.full(problem.max_steps, -1, jnp.int32)
    # Lanes that wait for others look at steps that were not taken: these have no rows.
    rows = jnp.full_like(none, jnp.iinfo(jnp.int32).max)
    return Record(
        StepSpan(nothing, nothing), none, nothing if problem.has_force_jumps else None, rows, checkpoints, spacing
    )


def _with_step(record: Record, before: Run, after: Run) -> Record:
    number, kept = before.accepted, after.accepted > before.accepted
    where = jnp.where(kept, number, len(record.fired))

    def put(all, x):
        return all.at[where].set(x, mode="drop")

    checkpoint = record.checkpoint(number)
    checkpoint = jnp.where(kept & (record.step(checkpoint) == number), checkpoint, len(record.fired))
    checkpoints = jax.tree.map(
        lambda all, x: all.at[checkpoint].set(x, mode="drop"), record.checkpoints, with_variation(before.motion, None)
    )
    spans, first_force_times = jax.tree.map(
        put, (record.spans, record.first_force_times), (after.last_span, after.motion.first_force_time)
    )
    rows = put(record.rows, before.rows.written)
    return Record(spans, put(record.fired, after.fired), first_force_times, rows, checkpoints, record.spacing)


class _ReplayJob(NamedTuple):
    """A simulation to replay.

    Attributes:
        problem: Arrays of the problem: those with cotangents, and the others.
        final: End of the simulation.
        record: Record of its steps.
        rows: Cotangents of states of its rows.
        forces: Cotangents of contact forces of its rows; None where they are zero.
        events: Cotangents of times and states of its events.
    """

    problem: tuple[PyTree, PyTree]
    final: Run
    record: Record
    rows: Any
    forces: Any
    events: Any


class _ReplayState(eqx.Module):
    """The state of a replay.

    Attributes:
        segments: Number of segments left to replay, each from one checkpoint to the next.
        row: Last row whose cotangents have not been added.
        event: Last event whose cotangents have not been added.
        motion: Cotangents of the motion at the end of the last segment left.
        problem: Cotangents of inputs of the problem so far.
    """

    segments: Array
    row: Array
    event: Array
    motion: PyTree
    problem: PyTree


def _replay(problem_of) -> Loop:
    """Cotangents of a problem from those of its rows."""

    def init(job: _ReplayJob):
        record, accepted = job.record, job.final.accepted
        motion = eqx.filter(job.final.motion, eqx.is_inexact_array)
        return _ReplayState(
            segments=jnp.where(accepted > 0, record.checkpoint(accepted - 1) + 1, 0),
            row=job.final.rows.written - 1,
            event=job.final.log.count - 1,
            motion=_zeros(motion),
            problem=_zeros(job.problem[0]),
        )

    def body(job: _ReplayJob, state: _ReplayState):
        segment = state.segments - 1
        first, following = job.record.step(segment), job.record.step(state.segments)
        count = jnp.where(state.segments > 0, jnp.minimum(job.final.accepted, following) - first, 0)
        state = _replay_segment(problem_of, job, segment, first, count, state)
        return eqx.tree_at(lambda state: state.segments, state, jnp.maximum(segment, 0))

    def result(job: _ReplayJob, state: _ReplayState):
        """The remaining cotangents belong to the start."""
        at_start = jnp.arange(len(job.final.rows.ts), dtype=state.row.dtype) <= state.row
        y0 = jax.tree.map(lambda rows: jnp.tensordot(at_start.astype(rows.dtype), rows, 1), job.rows)
        y0 = _sum(y0, state.motion.y)
        return eqx.tree_at(
            lambda problem: (problem.y0, problem.t0),
            state.problem,
            _sum((state.problem.y0, state.problem.t0), (y0, state.motion.instant.t)),
        )

    # Cotangents are scattered, which kernels of several operations cannot do: cut into kernels around that, a
    # quadruped's gradient took a third to a half longer.
    return Loop(init, lambda state: state.segments > 0, body, result, cut=False)


def _replay_segment(problem_of, job: _ReplayJob, segment, first, count, state: _ReplayState) -> _ReplayState:
    """Take cotangents back through the steps of a segment: forwards first, to know the motion before each step, then
    back.

    One program does both: a second one for the forward pass added a sixth to the time to compile, or more.
    """
    spacing, checkpoints = job.record.spacing, job.record.checkpoints
    ends = has_kinks(problem_of(job.problem))
    after_segment = _motion_after_segment(job, segment, first + count) if ends else None
    motions = jax.tree.map(lambda x: jnp.zeros((spacing, *x.shape), x.dtype).at[0].set(x), _entry(checkpoints, segment))

    def next_step(carry):
        motions, known, left, state = carry
        forwards = known < count
        index = jnp.where(forwards, known, left) - 1
        motion, end = _entry(motions, index), None
        if ends:
            # In the forward pass the end is not known yet, and no derivative is taken.
            following = where(index + 1 < count, _entry(motions, index + 1), after_segment)
            end = where(forwards, motion, following).y
        after, taken_step, pullback = _step_and_pullback(problem_of, job, motion, end, first + index)
        to = jnp.where(forwards, known, spacing)
        motions = jax.tree.map(lambda all, x: all.at[to].set(x, mode="drop"), motions, after)
        # No lane of a batch goes back before all know their motions: every lane does all that one of them does.
        wait = unvmap_any(forwards)
        back = ~wait & (left > 0)
        pulled = jax.lax.cond(
            wait, lambda: state, lambda: _pull_back_step(problem_of, job, first + index, taken_step, pullback, state)
        )
        state = where(back, pulled, state)
        return motions, known + jnp.where(forwards, 1, 0), left - jnp.where(back, 1, 0), state

    # One condition for all lanes: with one for each, a batch would select among whole segments after every step.
    carry = motions, jnp.minimum(count, 1), count, state
    return jax.lax.while_loop(lambda carry: unvmap_any(carry[2] > 0), next_step, carry)[3]


def _motion_after_segment(job: _ReplayJob, segment, number) -> Motion:
    """The motion after a segment that ends after a number of steps."""
    return where(number == job.final.accepted, job.final.motion, _entry(job.record.checkpoints, segment + 1))


def _step_and_pullback(problem_of, job: _ReplayJob, motion: Motion, end: State | None, number: Int[Array, ""]):
    """The motion after a step, the step, and the pullback of their cotangents to the problem and the motion before. If
    there are kinks, they are those of a step to the `end`."""
    wanted, rest = job.problem
    recorded, fired = _entry(job.record.spans, number), job.record.fired[number]
    moving, fixed = eqx.partition(motion, eqx.is_inexact_array)

    def arguments_of_step(wanted, moving):
        problem, motion = problem_of((wanted, rest)), eqx.combine(moving, fixed)
        end_time = jnp.where(recorded.end_time >= problem.t1, problem.t1, problem.jump_at(recorded.end_time)[1])
        equations = problem.equations_of_step(motion)
        return problem, equations, motion, StepSpan(recorded.length, end_time).measured_from(motion.instant)

    if end is not None and problem_of(job.problem).events:
        # The record has the state after an event, which may have changed it.
        arrived = jax.lax.cond(
            unvmap_any(fired >= 0), lambda: step(*arguments_of_step(wanted, moving))[0].y, lambda: end
        )
        end = where(fired >= 0, arrived, end)

    def stepped(wanted, moving):
        problem, equations, motion, span = arguments_of_step(wanted, moving)
        arrived, _, dense, _ = step_across_kinks(problem, equations, motion, span, end)
        if job.forces is None:
            dense = {name: jax.lax.stop_gradient(x) if name == FORCES else x for name, x in dense.items()}
        after = after_event_and_tick(problem, equations, arrived, span, fired)
        after = after.beyond_jump(_entry(job.record.first_force_times, number))
        after, others = eqx.partition(after, eqx.is_inexact_array)
        return (after, TakenStep(motion.instant, span.length, arrived.instant, arrived.y, dense)), others

    (after, taken_step), pullback, others = jax.vjp(stepped, wanted, moving, has_aux=True)
    return eqx.combine(after, others), taken_step, pullback


def _pull_back_step(
    problem_of, job: _ReplayJob, number: Int[Array, ""], taken_step: TakenStep, pullback, state: _ReplayState
) -> _ReplayState:
    """Take cotangents back through one step, the rows within it and the event at its end."""
    problem, fired, written = problem_of(job.problem), job.record.fired[number], job.record.rows[number]

    def moves_with_end(row):
        """Tell whether a row moves with the end of the step."""
        ended = ~(taken_step.end.until(problem.t1) > 0)
        return (row == state.row) & problem.saves_row(number + 1, ended) if problem.steps_per_row else jnp.array(False)

    def row_at(taken_step, t, moves_with_end):
        elapsed = jnp.where(moves_with_end, taken_step.length, taken_step.start.until(t))
        forces = None if job.forces is None else forces_within(problem, taken_step, elapsed)
        return interpolated(problem, taken_step, elapsed), forces

    def has_row(carry):
        return carry[0] >= written

    def add_row(carry):
        row, step_bar, times_bar = carry
        _, pull_row = jax.vjp(
            lambda taken_step, t: row_at(taken_step, t, moves_with_end(row)), taken_step, job.final.rows.ts[row]
        )
        more, t_bar = pull_row(_entry((job.rows, job.forces), row))
        times_bar = times_bar if problem.steps_per_row else times_bar.at[row].add(t_bar)
        return row - 1, _sum(step_bar, more), times_bar

    row, step_bar, times_bar = jax.lax.while_loop(
        has_row, add_row, (state.row, _zeros(taken_step), state.problem.row_times)
    )
    after_bar = eqx.tree_at(
        lambda motion: (motion.instant.t, motion.y),
        state.motion,
        _sum((state.motion.instant.t, state.motion.y), _event_cotangents(job.events, state.event, fired)),
    )
    problem_bar, motion_bar = pullback((after_bar, step_bar))
    known = eqx.tree_at(lambda problem: problem.row_times, state.problem, times_bar)
    event = state.event - jnp.where(fired >= 0, 1, 0)
    return _ReplayState(state.segments, row, event, motion_bar, _sum(known, problem_bar))


def _event_cotangents(events, number, fired):
    """Cotangents of time and state after the event at the end of a step, zero if there is none."""

    def of_event(x):
        return jnp.where(fired >= 0, x[number], 0) if len(x) else jnp.zeros(x.shape[1:], x.dtype)

    return jax.tree.map(of_event, events)


def _sum(a, b):
    return jax.tree.map(jnp.add, a, b)


def _zeros(tree):
    return jax.tree.map(jnp.zeros_like, tree)


def _entry(tree, i):
    return jax.tree.map(lambda x: x[i], tree)
