"""Reverse-mode derivatives of simulations: accepted steps are recorded, and replayed from the last to the first."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Int, PyTree

from jdyn.simulation.lane_refill import Loop, run
from jdyn.simulation.loop import Motion, Problem, Run, Span, Way, attempt, begin, interpolated, settle, step

# Keep the states before this many steps; most simulations need no others.
FIRST = 256


class Record(eqx.Module):
    """The record of a simulation for its replay; the number of states grows with √max_steps.

    Attributes:
        ways: Of accepted steps.
        fired: Events that happened at their ends; -1 for none.
        rows: Rows of the trajectory that were written before each.
        checkpoints: Motions before each of the first steps, and then before every `spacing`-th.
        spacing: Steps from checkpoint to checkpoint.
    """

    ways: Way
    fired: Int[Array, " max_steps"]
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
        return run(_simulation(problem_of, problem.touches), (arrays,))

    def forward(arrays):
        # JAX calls this rule once for each set of differentiated inputs. The structure of residuals must not depend on
        # that set, but their shapes may: mark differentiated inputs by arrays of one entry, others by empty ones.
        marks = jax.tree.map(lambda wanted: jnp.zeros(int(wanted)), _wanted(arrays))
        arrays = jax.tree.map(lambda x: x.value, arrays)
        final, record = run(_recorded_simulation(problem_of, problem.touches), (arrays,))
        return final, (arrays, marks, final, record)

    def backward(residuals, cotangent):
        arrays, marks, final, record = residuals
        wanted, rest = eqx.partition(arrays, jax.tree.map(lambda mark: len(mark) > 0, marks))
        rows, events = jax.tree.map(_instantiated, _differentiated(cotangent), _differentiated(final))
        return (run(_replay(problem_of), _Job((wanted, rest), final, record, rows, events)),)

    solved.defvjp(forward, backward, symbolic_zeros=True)
    return solved(arrays)


def _wanted(arrays: Problem) -> Problem:
    """Which inputs a replay computes cotangents of: differentiated ones, and always the state and the time at the
    start, where it arrives, and the times of rows, which it passes."""

    def always(problem):
        return problem.y0, problem.t0, problem.times

    inexact = jax.tree.map(lambda x: jnp.issubdtype(x.value.dtype, jnp.inexact), arrays)
    perturbed = jax.tree.map(lambda x, inexact: x.perturbed and inexact, arrays, inexact)
    return eqx.tree_at(always, perturbed, always(inexact))


def _differentiated(final: Run):
    """The results that have derivatives, in the order of `_Job`: states of rows, and times and states of events."""
    return final.rows.ys, (final.log.ts, final.log.ys)


def _instantiated(cotangent, x):
    return jnp.zeros_like(x) if isinstance(cotangent, SymbolicZero) else cotangent


def solve_forwards(problem: Problem) -> Run:
    """The simulation, for forward-mode derivatives."""
    arrays, static = eqx.partition(problem, eqx.is_array)
    return run(_simulation(lambda arrays: eqx.combine(arrays, static), problem.touches), arrays)


def _simulation(problem_of, apart: bool) -> Loop:
    return Loop(
        init=lambda arrays: begin(problem_of(arrays)),
        running=lambda state: state.unfinished,
        body=lambda arrays, state: attempt(problem_of(arrays), state),
        result=lambda arrays, state: state,
        apart=apart,
    )


def _recorded_simulation(problem_of, apart: bool) -> Loop:
    def init(arrays):
        problem = problem_of(arrays)
        state = begin(problem)
        return state, _blank(problem, state.motion)

    def body(arrays, state):
        before, record = state
        after = attempt(problem_of(arrays), before)
        return after, _written(record, before, after)

    return Loop(init, lambda state: state[0].unfinished, body, lambda arrays, state: state, apart)


def _blank(problem: Problem, motion: Motion) -> Record:
    later = max(problem.max_steps - FIRST, 0)
    spacing = math.isqrt(later) + 1
    count = min(problem.max_steps, FIRST) + -(-later // spacing)
    checkpoints = jax.tree.map(lambda x: jnp.zeros((count, *x.shape), x.dtype), motion)
    nothing = jnp.zeros(problem.max_steps, problem.t0.dtype)
    none = jnp.full(problem.max_steps, -1, jnp.int32)
    # Lanes that wait for others look at steps that were not taken: these have no rows.
    return Record(Way(nothing, nothing), none, jnp.full_like(none, jnp.iinfo(jnp.int32).max), checkpoints, spacing)


def _written(record: Record, before: Run, after: Run) -> Record:
    number, kept = before.accepted, after.accepted > before.accepted
    where = jnp.where(kept, number, len(record.fired))

    def put(all, x):
        return all.at[where].set(x, mode="drop")

    slot = record.slot(number)
    slot = jnp.where(kept & (record.step(slot) == number), slot, len(record.fired))
    checkpoints = jax.tree.map(lambda all, x: all.at[slot].set(x, mode="drop"), record.checkpoints, before.motion)
    ways = jax.tree.map(put, record.ways, after.way)
    rows = put(record.rows, before.rows.written)
    return Record(ways, put(record.fired, after.fired), rows, checkpoints, record.spacing)


class _Job(NamedTuple):
    """A simulation to replay.

    Attributes:
        problem: Its arrays: those with cotangents, and the others.
        final: How it ended.
        record: Its steps.
        rows: Cotangents of its rows.
        events: Cotangents of times and states of its events.
    """

    problem: tuple[PyTree, PyTree]
    final: Run
    record: Record
    rows: Any
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
        motions = _forwards(problem_of(job.problem), job.record, segment, first, count)

        def backwards(k, state):
            i = count - 1 - k
            return _pulled(problem_of, job, _at(motions, i), first + i, state)

        state = jax.lax.fori_loop(0, count, backwards, state)
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


def _forwards(problem, record, segment, first, count) -> Motion:
    """Motions before every step of a segment, from its checkpoint."""

    def forwards(i, carry):
        motions, motion = carry
        equations = problem.near(motion)
        motion, *_ = step(problem, equations, motion, _at(record.ways, first + i).begun_at(motion.at))
        motion = settle(problem, equations, motion, record.fired[first + i])
        return jax.tree.map(lambda all, x: all.at[i + 1].set(x), motions, motion), motion

    start = _at(record.checkpoints, segment)
    motions = jax.tree.map(lambda x: jnp.zeros((record.spacing, *x.shape), x.dtype).at[0].set(x), start)
    return jax.lax.fori_loop(0, count - 1, forwards, (motions, start))[0]


def _pulled(problem_of, job: _Job, motion: Motion, number: Int[Array, ""], state: _Replayed) -> _Replayed:
    """Cotangents taken back through one step, the rows within it and the event at its end."""
    wanted, rest = job.problem
    recorded, fired, written = _at(job.record.ways, number), job.record.fired[number], job.record.rows[number]
    moving, fixed = eqx.partition(motion, eqx.is_inexact_array)
    problem = problem_of((wanted, rest))

    def stepped(wanted, moving):
        problem, motion = problem_of((wanted, rest)), eqx.combine(moving, fixed)
        stop = jnp.where(recorded.stop >= problem.t1, problem.t1, recorded.stop)
        way, equations = Way(recorded.length, stop).begun_at(motion.at), problem.near(motion)
        arrived, _, dense, _ = step(problem, equations, motion, way)
        after = settle(problem, equations, arrived, fired)
        return eqx.filter(after, eqx.is_inexact_array), Span(motion.at, way.length, arrived.at, arrived.y, dense)

    (_, inside), pull = jax.vjp(stepped, wanted, moving)

    def within(carry):
        return carry[0] >= written

    def counted(carry):
        row, inside_bar, times_bar = carry
        _, pull_row = jax.vjp(lambda inside, t: interpolated(problem, inside, t), inside, job.final.rows.ts[row])
        more, t_bar = pull_row(_at(job.rows, row))
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
