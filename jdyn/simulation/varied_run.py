"""Simulations whose steps are short enough for derivatives, too."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Scalar

from jdyn.simulation.across_kinks import Stepped, has_kinks, step_across
from jdyn.simulation.loop import Equations, Motion, Problem, Rows, Run, Way, attempt, begin, where
from jdyn.simulation.result import succeeded
from jdyn.simulation.solver import tolerances, traits
from jdyn.simulation.variation import (
    LONG,
    Direction,
    Variation,
    counted,
    directed,
    direction,
    rests,
    stability_holds,
    with_variation,
)


class VariedRun(NamedTuple):
    """A simulation that begins once more, with a variation, if steps do not show what its derivatives need.

    Steps with a variation make a gradient take a third longer, and where shapes touch they follow all vibrations of
    their springs. Most motions show what there is to see. Of what rests, only the variation vibrates; and where
    stability holds explicit steps, errors of the motion are kept small, and those of its variation grow. What
    holds them is seen in the error, by how fast forces change along it.

    Attributes:
        run: The simulation.
        unseen: How long steps have not shown enough [s].
        varied: Whether steps know of the variation.
    """

    run: Run
    unseen: Scalar
    varied: Bool[Array, ""]

    @classmethod
    def begun(cls, problem: Problem, towards: Direction | None) -> "VariedRun":
        """A simulation before its first step; the direction of the variation is None for none at all."""
        run = begin(problem) if towards is None else _begun(problem, towards)
        return cls(run, jnp.zeros_like(problem.t0), jnp.array(False))

    def tried(
        self, problem: Problem, towards: Direction | None, take: Callable[..., Stepped]
    ) -> tuple[Run, "VariedRun"]:
        """The simulation after another step that `take` tries, and what goes on."""
        if towards is None:
            run = attempt(problem, self.run, take)
            return run, self._replace(run=run)
        run = attempt(problem, self.run, _varied_step(towards, take, self.varied))
        unseen = self.unseen + _unseen(problem, self.run, run)
        again = ~self.varied & (unseen > LONG * (problem.t1 - problem.t0)) & succeeded(run.result)
        begun = jax.lax.cond(unvmap_any(again), lambda: _begun(problem, towards), lambda: run)
        return run, VariedRun(_again(again, begun, run), unseen, self.varied | again)

    @property
    def ended(self) -> Run:
        """The simulation without its variation, and without what only the one had that has begun again."""
        if self.run.motion.variation is None:
            return self.run
        rows, log = self.run.rows, self.run.log

        def upto(count, all, nothing):
            here = jnp.arange(len(all), dtype=count.dtype) < count
            return jnp.where(here.reshape(-1, *[1] * (all.ndim - 1)), all, jnp.asarray(nothing, all.dtype))

        numbers = jax.tree.map(lambda x: upto(rows.written, x, jnp.nan), (rows.ts, rows.ys, rows.forces))
        counts = jax.tree.map(lambda x: upto(rows.written, x, 0), (rows.tries, rows.evaluations, rows.implicit))
        (ts, ys, forces), (tries, evaluations, implicit) = numbers, counts
        rows = Rows(ts, ys, forces, rows.written, rows.due, tries, evaluations, implicit)
        ts, ys = jax.tree.map(lambda x: upto(log.count, x, jnp.nan), (log.ts, log.ys))
        log = dataclasses.replace(log, ts=ts, ys=ys, which=upto(log.count, log.which, -1))
        return dataclasses.replace(self.run, rows=rows, log=log, motion=with_variation(self.run.motion, None))


def towards(problem: Problem, perturbed: Problem) -> Direction | None:
    """In which direction a simulation varies that is differentiated by what is `perturbed`; None where there are no
    tolerances to compare with, or where steps are not to follow all vibrations."""
    if not traits(problem.solver).vibrations or tolerances(problem.stepsize_controller) is None:
        return None
    return direction(problem, perturbed)


def _begun(problem: Problem, towards: Direction) -> Run:
    run = begin(problem)
    return dataclasses.replace(run, motion=with_variation(run.motion, Variation.of(run.motion, towards.start)))


def _unseen(problem: Problem, before: Run, after: Run):
    """The length of a step that was kept, if something rests in it or stability held it [s]."""
    # There is no variation without tolerances.
    allowed: Any = tolerances(problem.stepsize_controller)
    variation: Any = after.motion.variation
    held = traits(problem.solver).held
    held = variation.held if held is None else held(after.motion.solver_state, after.way.length)
    unseen = held | rests(problem.equations.field.model, before.motion.y, after.motion.y, allowed)
    return jnp.where((after.accepted > before.accepted) & unseen, after.way.length, 0)


def _again(again, begun: Run, run: Run) -> Run:
    """A simulation at its start, if it is to begin again. What it has written stays where it is, to be overwritten."""
    rows = dataclasses.replace(run.rows, written=begun.rows.written, due=begun.rows.due)
    log = dataclasses.replace(run.log, count=begun.log.count)
    begun = dataclasses.replace(begun, rows=rows, log=log)
    return jax.tree.map(lambda new, old: old if new is old else jnp.where(again, new, old), begun, run)


def _varied_step(towards: Direction, take: Callable[..., Stepped], asked: Bool[Array, ""]) -> Callable[..., Stepped]:
    """Make a function that takes steps of motions with a variation, which stays as it is unless it is asked for."""

    def taken(problem: Problem, equations: Equations, motion: Motion, way: Way) -> Stepped:
        variation: Any = motion.variation
        motion = with_variation(motion, None)
        error: Any
        arrived, error, *others = take(problem, equations, motion, way)

        def varied():
            given = _still((problem, motion, way))
            tangents = _tangents(given, towards, variation.tangent)
            allowed: Any = tolerances(problem.stepsize_controller)
            missed = jnp.where(asked, variation.error(*tangents, allowed), 0)
            more, alone = counted(error, motion.y, arrived.y, missed, allowed)
            state = where(asked, _faster(arrived.solver_state, tangents[0].solver_state), arrived.solver_state)
            return more, variation.moved(tangents[0], alone), state

        def alone():
            held = variation.held
            if traits(problem.solver).held is None:
                held = stability_holds(*_still((equations, way.length, arrived.y, error)))
            return error, dataclasses.replace(variation, held=held), arrived.solver_state

        error, variation, state = jax.lax.cond(unvmap_any(asked), varied, alone)
        return with_variation(dataclasses.replace(arrived, solver_state=state), variation), error, *others

    return taken


def _still(tree: Any) -> Any:
    """A tree without derivatives."""
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)


def _faster(solver_state: Any, tangent: Any) -> Any:
    """Memory of the solver after a step, with what its tangent shows of how fast the motion is."""
    if not hasattr(getattr(solver_state, "memory", None), "shown"):
        return solver_state
    return dataclasses.replace(solver_state, memory=solver_state.memory.shown(tangent.memory))


def _tangents(given: tuple[Problem, Motion, Way], towards: Direction, tangent: Any) -> tuple[Any, Any]:
    """Tangents of the motion after a step and of its error.

    What touches is what touches where the step begins: kinks have no share in how fast a variation changes.
    """
    problem, motion, way = given
    (numbers, problem_of), (moving, fixed) = directed(problem, towards), eqx.partition(motion, eqx.is_inexact_array)

    def stepped(numbers, moving):
        problem, motion = problem_of(numbers), eqx.combine(moving, fixed)
        end = motion.y if has_kinks(problem) else None
        arrived, error, *_ = step_across(problem, problem.begun(motion), motion, way, end)
        return eqx.filter(arrived, eqx.is_inexact_array), error

    return jax.jvp(stepped, (numbers, moving), (towards.numbers, tangent))[1]
