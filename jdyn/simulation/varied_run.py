"""Simulations whose steps are short enough for derivatives, too."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Scalar

from jdyn.array import where
from jdyn.simulation.across_kinks import StepResult, has_kinks, step_across_kinks
from jdyn.simulation.loop import Equations, Motion, Problem, Run, SavedRows, StepSpan, attempt, begin
from jdyn.simulation.result import succeeded
from jdyn.simulation.solver import tolerances, traits
from jdyn.simulation.variation import (
    UNDETECTED_SHARE,
    Direction,
    Variation,
    generic_direction,
    has_resting_coordinate,
    limited_by_stability,
    partition_along,
    with_variation,
    with_variation_error,
)


class VariedRun(NamedTuple):
    """A simulation that begins once more, with a variation, if steps do not show what its derivatives need.

    Steps with a variation make a gradient take a third longer, and where shapes touch they follow all vibrations of
    their springs. Most motions show what there is to see. Where a motion rests, only its variation vibrates; and where
    stability limits explicit steps, errors of the motion stay small, and those of its variation grow. The error of a
    step shows which rates limit it, by how fast forces change along the error.

    Attributes:
        run: The simulation.
        undetected_time: Time in which steps have not shown enough so far [s].
        follows_variation: Whether steps know the variation.
    """

    run: Run
    undetected_time: Scalar
    follows_variation: Bool[Array, ""]

    @classmethod
    def begin(cls, problem: Problem, direction: Direction | None) -> "VariedRun":
        """A simulation before its first step; the direction of the variation is None for none at all."""
        run = begin(problem) if direction is None else _begin_with_variation(problem, direction)
        return cls(run, jnp.zeros_like(problem.t0), jnp.array(False))

    def after_attempt(
        self, problem: Problem, direction: Direction | None, take_step: Callable[..., StepResult]
    ) -> tuple[Run, "VariedRun"]:
        """The simulation after another step that `take_step` tries, and the one to go on with."""
        if direction is None:
            run = attempt(problem, self.run, take_step)
            return run, self._replace(run=run)
        run = attempt(problem, self.run, _varied_step(direction, take_step, self.follows_variation))
        undetected_time = self.undetected_time + _undetected_time(problem, self.run, run)
        too_long = undetected_time > UNDETECTED_SHARE * (problem.t1 - problem.t0)
        again = ~self.follows_variation & too_long & succeeded(run.result)
        begun = jax.lax.cond(unvmap_any(again), lambda: _begin_with_variation(problem, direction), lambda: run)
        return run, VariedRun(_restarted(again, begun, run), undetected_time, self.follows_variation | again)

    @property
    def final_run(self) -> Run:
        """The simulation without its variation, and without rows and events that it had before it began again."""
        if self.run.motion.variation is None:
            return self.run
        rows, log = self.run.rows, self.run.log

        def upto(count, all, nothing):
            here = jnp.arange(len(all), dtype=count.dtype) < count
            return jnp.where(here.reshape(-1, *[1] * (all.ndim - 1)), all, jnp.asarray(nothing, all.dtype))

        numbers = jax.tree.map(lambda x: upto(rows.written, x, jnp.nan), (rows.ts, rows.ys, rows.forces))
        counts = jax.tree.map(lambda x: upto(rows.written, x, 0), (rows.tries, rows.evaluations, rows.implicit))
        (ts, ys, forces), (tries, evaluations, implicit) = numbers, counts
        rows = SavedRows(ts, ys, forces, rows.written, rows.due, tries, evaluations, implicit)
        ts, ys = jax.tree.map(lambda x: upto(log.count, x, jnp.nan), (log.ts, log.ys))
        log = dataclasses.replace(log, ts=ts, ys=ys, which=upto(log.count, log.which, -1))
        return dataclasses.replace(self.run, rows=rows, log=log, motion=with_variation(self.run.motion, None))


def variation_direction(problem: Problem, perturbed: Problem) -> Direction | None:
    """Direction of the variation of a simulation that is differentiated by what is `perturbed`; None where there are no
    tolerances to compare with, or where steps are not to follow all vibrations."""
    if not traits(problem.solver).vibrations or tolerances(problem.stepsize_controller) is None:
        return None
    return generic_direction(problem, perturbed)


def _begin_with_variation(problem: Problem, direction: Direction) -> Run:
    run = begin(problem)
    return dataclasses.replace(run, motion=with_variation(run.motion, Variation.of(run.motion, direction.start)))


def _undetected_time(problem: Problem, before: Run, after: Run):
    """The length of an accepted step in which a coordinate rests, or which stability limited [s]; else zero."""
    # There is no variation without tolerances.
    allowed: Any = tolerances(problem.stepsize_controller)
    variation: Any = after.motion.variation
    of_solver = traits(problem.solver).limited_by_stability
    limited = variation.limited_by_stability
    limited = limited if of_solver is None else of_solver(after.motion.solver_state, after.last_span.length)
    undetected = limited | has_resting_coordinate(
        problem.equations.field.model, before.motion.y, after.motion.y, allowed
    )
    return jnp.where((after.accepted > before.accepted) & undetected, after.last_span.length, 0)


def _restarted(again, begun: Run, run: Run) -> Run:
    """A simulation at its start, if it is to begin again. Rows and events stay where they are, to be overwritten."""
    rows = dataclasses.replace(run.rows, written=begun.rows.written, due=begun.rows.due)
    log = dataclasses.replace(run.log, count=begun.log.count)
    begun = dataclasses.replace(begun, rows=rows, log=log)
    return jax.tree.map(lambda new, old: old if new is old else jnp.where(again, new, old), begun, run)


def _varied_step(
    direction: Direction, take_step: Callable[..., StepResult], wanted: Bool[Array, ""]
) -> Callable[..., StepResult]:
    """Make a function that takes steps of motions with a variation, which stays as it is unless it is `wanted`."""

    def varied_step(problem: Problem, equations: Equations, motion: Motion, span: StepSpan) -> StepResult:
        variation: Any = motion.variation
        motion = with_variation(motion, None)
        error: Any
        arrived, error, *others = take_step(problem, equations, motion, span)

        def with_tangents():
            given = _without_gradient((problem, motion, span))
            tangents = _tangents(given, direction, variation.tangent)
            allowed: Any = tolerances(problem.stepsize_controller)
            variation_error = jnp.where(wanted, variation.error(*tangents, allowed), 0)
            larger, too_long = with_variation_error(error, motion.y, arrived.y, variation_error, allowed)
            faster = _with_rate_of_tangent(arrived.solver_state, tangents[0].solver_state)
            solver_state = where(wanted, faster, arrived.solver_state)
            return larger, variation.after(tangents[0], too_long), solver_state

        def without_tangents():
            limited = variation.limited_by_stability
            if traits(problem.solver).limited_by_stability is None:
                limited = limited_by_stability(*_without_gradient((equations, span.length, arrived.y, error)))
            return error, dataclasses.replace(variation, limited_by_stability=limited), arrived.solver_state

        error, variation, state = jax.lax.cond(unvmap_any(wanted), with_tangents, without_tangents)
        return with_variation(dataclasses.replace(arrived, solver_state=state), variation), error, *others

    return varied_step


def _without_gradient(tree: Any) -> Any:
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)


def _with_rate_of_tangent(solver_state: Any, tangent: Any) -> Any:
    """Memory of the solver after a step, with the rate of the motion that its tangent shows."""
    if not hasattr(getattr(solver_state, "memory", None), "with_rate_of"):
        return solver_state
    return dataclasses.replace(solver_state, memory=solver_state.memory.with_rate_of(tangent.memory))


def _tangents(given: tuple[Problem, Motion, StepSpan], direction: Direction, tangent: Any) -> tuple[Any, Any]:
    """Tangents of the motion after a step and of its error.

    Contact is that at the start of the step: kinks have no share in how fast a variation changes.
    """
    problem, motion, span = given
    numbers, problem_of = partition_along(problem, direction)
    moving, fixed = eqx.partition(motion, eqx.is_inexact_array)

    def stepped(numbers, moving):
        problem, motion = problem_of(numbers), eqx.combine(moving, fixed)
        end = motion.y if has_kinks(problem) else None
        arrived, error, *_ = step_across_kinks(problem, problem.equations_of_step(motion), motion, span, end)
        return eqx.filter(arrived, eqx.is_inexact_array), error

    return jax.jvp(stepped, (numbers, moving), (direction.numbers, tangent))[1]
