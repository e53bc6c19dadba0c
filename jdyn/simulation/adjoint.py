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

from jdyn.execution.lane_refill import Loop, run
from jdyn.simulation.across_kinks import has_kinks, step_across, step_forwards, warn_of_jumps
from jdyn.simulation.loop import (
    Motion,
    Problem,
    Run,
    Span,
    Way,
    forces_within,
    interpolated,
    settle,
    step,
    where,
)
from jdyn.simulation.solver import FORCES
from jdyn.simulation.state import State
from jdyn.simulation.variation import with_variation
from jdyn.simulation.varied_run import VariedRun, towards

# Keep the states before this many steps; most simulations need no others.
FIRST = 512


class Record(eqx.Module):
    """The record of a simulation for its replay; the number of states grows with √max_steps.

    Attributes:
        ways: Of accepted steps.
        fired: Events that happened at their ends; -1 for none.
        since: First times that forces were asked for after them, as in `Motion`; None where forces do not jump.
        rows: Rows of the trajectory that were written before each.
        checkpoints: Motions before each of the first steps, and then before every `spacing`-th.
        spacing: Steps from checkpoint to checkpoint.
    """

    ways: Way
    fired: Int[Array, " max_steps"]
    since: Float[Array, " max_steps"] | None
    rows: Int[Array, " max_steps"]
    checkpoints: Motion
    spacing: int = eqx.field(static=True)

    def slot(self, step: Int[Array, ""]) -> Int[Array, ""]:
        """The last checkpoint at or before a step."""
        return jnp.where(step < FIRST, step, FIRST + (step - FIRST) // self.spacing)

    def step(self, slot: Int[Array, ""]) -> Int[Array, ""]:
        """The step that begins at a checkpoint."""
        return jnp.where(slot < FIRST, slot, FIRST + (slot - FIRST) * self.spacing)


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
        return run(_simulation(problem_of, problem.touches, step), ((arrays,), None))

    def forward(arrays):
        # JAX calls this rule once for each set of differentiated inputs. The structure of residuals must not depend on
        # that set, but their shapes may: mark differentiated inputs by arrays of one entry, others by empty ones.
        perturbed = _perturbed(arrays)
        marks = jax.tree.map(lambda wanted: jnp.zeros(int(wanted)), _wanted(perturbed, arrays))
        warn_of_jumps(problem)
        arrays = jax.tree.map(lambda x: x.value, arrays)
        direction = towards(problem_of((arrays,)), perturbed)
        final, record = run(_recorded_simulation(problem_of, problem.touches), ((arrays,), direction))
        return final, (arrays, marks, final, record)

    def backward(residuals, cotangent):
        arrays, marks, final, record = residuals
        wanted, rest = eqx.partition(arrays, jax.tree.map(lambda mark: len(mark) > 0, marks))
        rows, events = jax.tree.map(_instantiated, _differentiated(cotangent), _differentiated(final))
        # Mostly nobody asks, and steps then need not know their derivatives.
        asked = not all(isinstance(x, SymbolicZero) for x in jax.tree.leaves(cotangent.rows.forces))
        forces = jax.tree.map(_instantiated, cotangent.rows.forces, final.rows.forces) if asked else None
        return (run(_replay(problem_of), _Job((wanted, rest), final, record, rows, forces, events)),)

    solved.defvjp(forward, backward, symbolic_zeros=True)
    return solved(arrays)


def _perturbed(arrays: Problem) -> Problem:
    """Which inputs are differentiated."""
    return jax.tree.map(lambda x: x.perturbed and jnp.issubdtype(x.value.dtype, jnp.inexact), arrays)


def _wanted(perturbed: Problem, arrays: Problem) -> Problem:
    """Which inputs a replay computes cotangents of: differentiated ones, and always the state and the time at the
    start, where it arrives, and the times of rows, which it passes."""

    def always(problem):
        return problem.y0, problem.t0, problem.times

    inexact = jax.tree.map(lambda x: jnp.issubdtype(x.value.dtype, jnp.inexact), arrays)
    return eqx.tree_at(always, perturbed, always(inexact))


def _differentiated(final: Run):
    """The results that have derivatives, in the order of `_Job`: states of rows, and times and states of events."""
    return final.rows.ys, (final.log.ts, final.log.ys)


def _instantiated(cotangent, x):
    return jnp.zeros_like(x) if isinstance(cotangent, SymbolicZero) else cotangent


def solve_forwards(problem: Problem) -> Run:
    """The simulation, for forward-mode derivatives."""
    arrays, static = eqx.partition(problem, eqx.is_array)
    warn_of_jumps(problem)
    take = step_forwards if has_kinks(problem) else step

    def problem_of(arrays) -> Problem:
        return eqx.combine(*arrays, static)

    @jax.custom_jvp
    def solved(arrays):
        return run(_simulation(problem_of, problem.touches, take), ((arrays,), None))

    def forwards(primals, tangents):
        (arrays,), (tangents,) = primals, tangents
        perturbed = jax.tree.map(lambda x: not isinstance(x, SymbolicZero), tangents)
        moving, fixed = eqx.partition(arrays, perturbed)
        tangents = eqx.filter(tangents, perturbed)
        direction = towards(problem_of((arrays,)), perturbed)

        def simulated(moving):
            return run(_simulation(problem_of, problem.touches, take), ((eqx.combine(moving, fixed),), direction))

        return jax.jvp(simulated, (moving,), (tangents,))

    solved.defjvp(forwards, symbolic_zeros=True)
    return solved(arrays)


def _simulation(problem_of, apart: bool, take: Callable) -> Loop:
    """The simulation, from the arrays of a problem and the direction of its variation, if there is one."""

    def init(job):
        arrays, direction = job
        return VariedRun.begun(problem_of(arrays), direction)

    def body(job, state):
        arrays, direction = job
        return state.tried(problem_of(arrays), direction, take)[1]

    return Loop(init, lambda state: state.run.unfinished, body, lambda job, state: state.ended, apart)


def _recorded_simulation(problem_of, apart: bool) -> Loop:
    """The same, with its record."""

    def init(job):
        arrays, direction = job
        problem = problem_of(arrays)
        state = VariedRun.begun(problem, direction)
        return state, _blank(problem, with_variation(state.run.motion, None))

    def body(job, state):
        arrays, direction = job
        before, record = state
        run, after = before.tried(problem_of(arrays), direction, step)
        return after, _written(record, before.run, run)

    def result(job, state):
        return state[0].ended, state[1]

    return Loop(init, lambda state: state[0].run.unfinished, body, result, apart)


def _blank(problem: Problem, motion: Motion) -> Record:
    later = max(problem.max_steps - FIRST, 0)
    spacing = math.isqrt(later) + 1
    count = min(problem.max_steps, FIRST) + -(-later // spacing)
    checkpoints = jax.tree.map(lambda x: jnp.zeros((count, *x.shape), x.dtype), motion)
    nothing = jnp.zeros(problem.max_steps, problem.t0.dtype)
    none = jnp.full(problem.max_steps, -1, jnp.int32)
    # Lanes that wait for others look at steps that were not taken: these have no rows.
    rows = jnp.full_like(none, jnp.iinfo(jnp.int32).max)
    return Record(Way(nothing, nothing), none, nothing if problem.jumps else None, rows, checkpoints, spacing)


def _written(record: Record, before: Run, after: Run) -> Record:
    number, kept = before.accepted, after.accepted > before.accepted
    where = jnp.where(kept, number, len(record.fired))

    def put(all, x):
        return all.at[where].set(x, mode="drop")

    slot = record.slot(number)
    slot = jnp.where(kept & (record.step(slot) == number), slot, len(record.fired))
    checkpoints = jax.tree.map(
        lambda all, x: all.at[slot].set(x, mode="drop"), record.checkpoints, with_variation(before.motion, None)
    )
    ways, since = jax.tree.map(put, (record.ways, record.since), (after.way, after.motion.since))
    rows = put(record.rows, before.rows.written)
    return Record(ways, put(record.fired, after.fired), since, rows, checkpoints, record.spacing)


class _Job(NamedTuple):
    """A simulation to replay.

    Attributes:
        problem: Its arrays: those with cotangents, and the others.
        final: How it ended.
        record: Its steps.
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


class _Replayed(eqx.Module):
    """The state of a replay.

    Attributes:
        segments: Left to replay, each from one checkpoint to the next.
        row: Last row that has not been counted.
        event: Last event that has not been counted.
        motion: Cotangents of the motion at the end of what is left.
        problem: Cotangents of what is wanted of the problem, as far as they are known.
    """

    segments: Array
    row: Array
    event: Array
    motion: PyTree
    problem: PyTree


def _replay(problem_of) -> Loop:
    """Cotangents of a problem from those of its rows."""

    def init(job: _Job):
        record, accepted = job.record, job.final.accepted
        motion = eqx.filter(job.final.motion, eqx.is_inexact_array)
        return _Replayed(
            segments=jnp.where(accepted > 0, record.slot(accepted - 1) + 1, 0),
            row=job.final.rows.written - 1,
            event=job.final.log.count - 1,
            motion=_zeros(motion),
            problem=_zeros(job.problem[0]),
        )

    def body(job: _Job, state: _Replayed):
        segment = state.segments - 1
        first, following = job.record.step(segment), job.record.step(state.segments)
        count = jnp.where(state.segments > 0, jnp.minimum(job.final.accepted, following) - first, 0)
        state = _segment_back(problem_of, job, segment, first, count, state)
        return eqx.tree_at(lambda state: state.segments, state, jnp.maximum(segment, 0))

    def result(job: _Job, state: _Replayed):
        """The remaining cotangents belong to the start."""
        at_start = jnp.arange(len(job.final.rows.ts), dtype=state.row.dtype) <= state.row
        y0 = jax.tree.map(lambda rows: jnp.tensordot(at_start.astype(rows.dtype), rows, 1), job.rows)
        y0 = _sum(y0, state.motion.y)
        return eqx.tree_at(
            lambda problem: (problem.y0, problem.t0),
            state.problem,
            _sum((state.problem.y0, state.problem.t0), (y0, state.motion.at.t)),
        )

    # Cotangents are scattered, which no kernel of several operations can: cut around that, a quadruped's gradient took
    # a third to a half longer.
    return Loop(init, lambda state: state.segments > 0, body, result, cut=False)


def _segment_back(problem_of, job: _Job, segment, first, count, state: _Replayed) -> _Replayed:
    """Cotangents taken back through the steps from a checkpoint on: forwards to know the motion before each, and back.

    Both by one program: one more for the way forwards took a sixth of the time to compile, or more.
    """
    spacing, checkpoints = job.record.spacing, job.record.checkpoints
    ends = has_kinks(problem_of(job.problem))
    beyond = _known_after(job, segment, first + count) if ends else None
    motions = jax.tree.map(lambda x: jnp.zeros((spacing, *x.shape), x.dtype).at[0].set(x), _at(checkpoints, segment))

    def taken(carry):
        motions, known, left, state = carry
        forwards = known < count
        place = jnp.where(forwards, known, left) - 1
        motion, end = _at(motions, place), None
        if ends:
            # On the way forwards nothing is known of it, and no derivative is taken.
            following = where(place + 1 < count, _at(motions, place + 1), beyond)
            end = where(forwards, motion, following).y
        after, inside, pull = _stepped(problem_of, job, motion, end, first + place)
        to = jnp.where(forwards, known, spacing)
        motions = jax.tree.map(lambda all, x: all.at[to].set(x, mode="drop"), motions, after)
        # Of a batch, no lane goes back before all know their motions: lanes do all that one of them does.
        wait = unvmap_any(forwards)
        back = ~wait & (left > 0)
        pulled = jax.lax.cond(wait, lambda: state, lambda: _pulled(problem_of, job, first + place, inside, pull, state))
        state = where(back, pulled, state)
        return motions, known + jnp.where(forwards, 1, 0), left - jnp.where(back, 1, 0), state

    # One condition for all lanes, which else would select among whole segments after each step.
    carry = motions, jnp.minimum(count, 1), count, state
    return jax.lax.while_loop(lambda carry: unvmap_any(carry[2] > 0), taken, carry)[3]


def _known_after(job: _Job, segment, number) -> Motion:
    """The motion after a segment, which ends with that number of steps."""
    return where(number == job.final.accepted, job.final.motion, _at(job.record.checkpoints, segment + 1))


def _stepped(problem_of, job: _Job, motion: Motion, end: State | None, number: Int[Array, ""]):
    """The motion after a step, the step, and what takes their cotangents back to the problem and the motion before. If
    there are kinks, they are those of a step to the `end`."""
    wanted, rest = job.problem
    recorded, fired = _at(job.record.ways, number), job.record.fired[number]
    moving, fixed = eqx.partition(motion, eqx.is_inexact_array)

    def begun(wanted, moving):
        problem, motion = problem_of((wanted, rest)), eqx.combine(moving, fixed)
        stop = jnp.where(recorded.stop >= problem.t1, problem.t1, problem.jump_at(recorded.stop)[1])
        return problem, problem.begun(motion), motion, Way(recorded.length, stop).begun_at(motion.at)

    if end is not None and problem_of(job.problem).events:
        # What is known is the state after an event, which may have changed it.
        arrived = jax.lax.cond(unvmap_any(fired >= 0), lambda: step(*begun(wanted, moving))[0].y, lambda: end)
        end = where(fired >= 0, arrived, end)

    def stepped(wanted, moving):
        problem, equations, motion, way = begun(wanted, moving)
        arrived, _, dense, _ = step_across(problem, equations, motion, way, end)
        if job.forces is None:
            dense = {name: jax.lax.stop_gradient(x) if name == FORCES else x for name, x in dense.items()}
        after = settle(problem, equations, arrived, way, fired).beyond(_at(job.record.since, number))
        after, others = eqx.partition(after, eqx.is_inexact_array)
        return (after, Span(motion.at, way.length, arrived.at, arrived.y, dense)), others

    (after, inside), pull, others = jax.vjp(stepped, wanted, moving, has_aux=True)
    return eqx.combine(after, others), inside, pull


def _pulled(problem_of, job: _Job, number: Int[Array, ""], inside: Span, pull, state: _Replayed) -> _Replayed:
    """Cotangents taken back through one step, the rows within it and the event at its end."""
    problem, fired, written = problem_of(job.problem), job.record.fired[number], job.record.rows[number]

    def follows(row):
        """Tell whether a row moves with the end of the step."""
        ended = ~(inside.end.until(problem.t1) > 0)
        return (row == state.row) & problem.saves(number + 1, ended) if problem.every else jnp.array(False)

    def row_of(inside, t, follows):
        passed = jnp.where(follows, inside.length, inside.start.until(t))
        forces = None if job.forces is None else forces_within(problem, inside, passed)
        return interpolated(problem, inside, passed), forces

    def within(carry):
        return carry[0] >= written

    def counted(carry):
        row, inside_bar, times_bar = carry
        _, pull_row = jax.vjp(lambda inside, t: row_of(inside, t, follows(row)), inside, job.final.rows.ts[row])
        more, t_bar = pull_row(_at((job.rows, job.forces), row))
        times_bar = times_bar if problem.every else times_bar.at[row].add(t_bar)
        return row - 1, _sum(inside_bar, more), times_bar

    row, inside_bar, times_bar = jax.lax.while_loop(within, counted, (state.row, _zeros(inside), state.problem.times))
    after_bar = eqx.tree_at(
        lambda motion: (motion.at.t, motion.y),
        state.motion,
        _sum((state.motion.at.t, state.motion.y), _event_cotangents(job.events, state.event, fired)),
    )
    problem_bar, motion_bar = pull((after_bar, inside_bar))
    known = eqx.tree_at(lambda problem: problem.times, state.problem, times_bar)
    event = state.event - jnp.where(fired >= 0, 1, 0)
    return _Replayed(state.segments, row, event, motion_bar, _sum(known, problem_bar))


def _event_cotangents(events, number, fired):
    """Cotangents of time and state after the event at the end of a step, zero if there is none."""

    def here(x):
        return jnp.where(fired >= 0, x[number], 0) if len(x) else jnp.zeros(x.shape[1:], x.dtype)

    return jax.tree.map(here, events)


def _sum(a, b):
    return jax.tree.map(jnp.add, a, b)


def _zeros(tree):
    return jax.tree.map(jnp.zeros_like, tree)


def _at(tree, i):
    return jax.tree.map(lambda x: x[i], tree)
