"""One step of a simulation: what it needs, what it changes."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import nextafter, prevbefore, unvmap_any
from jaxtyping import Array, Bool, Float, Int, PyTree, Scalar

from jdyn.constraints import Projected
from jdyn.contact import Overlap, PointForces
from jdyn.control.controller import updated
from jdyn.simulation.energy_control import HalveOrGrow
from jdyn.simulation.events import PLACES, Crossing, Log, Moment, Watch, first_crossing, numbers
from jdyn.simulation.manifold import PLANNED, angular_speed
from jdyn.simulation.result import Result
from jdyn.simulation.solver import Counted, Work, order_of, overlap_of, tolerances, traits, work_of
from jdyn.simulation.solvers.moves import drifted, kicked, rest
from jdyn.simulation.state import Clock, ControllerMemory, Instant, State, controller_memory
from jdyn.simulation.variation import Variation, carried
from jdyn.simulation.vector_field import VectorField

# A step of this many roundings of the time is too small to be told from none. Single precision tells times from each
# other by one and a half times its digits, see `Instant`.
SMALLEST_STEP, DIGITS = 16, 1.5
# No remainder of this share of a step makes a step of its own, if it is within rounding of the time.
JOINED = 1e-2

# These ask for lengths of steps alone; all other step controllers may know times.
ASK_FOR_LENGTHS = (diffrax.PIDController, HalveOrGrow)

# First step to try [s]; controllers correct it within a few steps.
FIRST_STEP = 0.01

# The second failure in a row shortens a step to this share at least, the third to its square, and so on, unless the
# step controller does not go so far. Where friction begins to hold, errors fall with the first power of the length, not
# with that of the order: a quadruped's landing took 16 failures in a row.
SHORTER = 0.5

# Where singular configurations make more of rounding than tolerances allow, no step ends: it ends before, at this share
# of its length, and the next one goes beyond. A motion of which they make so many tolerances is lost. Pivots of
# linkages that are far from singular vary by less than the last share.
BEFORE, LOST, NEAR = 0.4, 1e4, 1e-3

# Errors of steps with contact are compared with velocities that are at most so much larger than those at the start.
FASTER = 4


class Equations(diffrax.AbstractTerm):
    """A vector field that is integrated forwards or backwards in time; solvers see a time that increases.

    Attributes:
        field: The equations of motion.
        clock: Knows the time by that of solvers.
    """

    field: VectorField
    clock: Clock

    @property
    def direction(self) -> Scalar | int:
        """1, or -1 where time runs backwards."""
        return self.clock.direction

    def vf(self, t, y, args):
        return self.field.at_time(t)(self.clock(t), y, args)

    def contr(self, t0, t1, **kwargs):
        return self.direction * (t1 - t0)

    def prod(self, vf, control):
        return jax.tree.map(lambda rate: rate * control, vf)

    def begun(self, t: Scalar, y: State) -> "Equations":
        """Equations of a step that begins at `t` in `y`, with a time that begins with it."""
        clock = Clock(self.direction, t)
        return Equations(self.field.begun(clock(jnp.zeros_like(t)), y), clock)

    def repaired(self, t: tuple[Scalar, Scalar], y0: State, y1: State) -> "Equations":
        """Equations with the derivatives of a step between two states, see `GradientPolicy.repaired`."""
        h = self.direction * (t[1] - t[0])
        return Equations(self.field.repaired(t, h, (y0.q, y0.v), (y1.q, y1.v)), self.clock)

    def met(self, t: Scalar, y: State, error: State | None = None) -> tuple[State, Projected | None, State | None]:
        """A state that meets the constraints, next to `y`, and how far an error of `y` counts; None where there are no
        constraints."""
        return self.field.met(self.clock(t), y, error)


class Problem(eqx.Module):
    """A simulation to run. Times increase from `t0` to `t1`: they are negative ones where time runs backwards.

    Attributes:
        equations: The equations of motion.
        y0: State at `t0`.
        start: `Result.success`, or why it cannot begin.
        met: Whether it meets the constraints; None where there are none.
        t0, t1: Start and end [s].
        times: Of rows [s], in order.
        jump_times: At which forces jump [s], in any order; NaN and infinity for none.
        dt0: First step [s], None where the step controller knows it.
        solver: Takes a step.
        stepsize_controller: Judges it.
        events: What to watch for.
        max_steps: Most steps to try.
        max_events: Most events to let happen.
        every: A row after every so many steps, beside those at `times`; 0 for none.
        last: Whether the end is a row even where `every` does not say so.
        within: Whether rows may lie within steps, not only at their ends.
    """

    equations: Equations
    y0: State
    start: Int[Array, ""]
    met: Bool[Array, ""] | None
    t0: Scalar
    t1: Scalar
    times: Float[Array, " rows"]
    jump_times: Float[Array, " jumps"]
    dt0: Scalar | None
    solver: diffrax.AbstractSolver
    stepsize_controller: diffrax.AbstractStepSizeController[Any, Any]
    events: tuple[Watch, ...]
    max_steps: int = eqx.field(static=True)
    max_events: int = eqx.field(static=True)
    every: int = eqx.field(static=True)
    last: bool = eqx.field(static=True)
    within: bool = eqx.field(static=True)

    @property
    def rows(self) -> int:
        """Most rows that there can be."""
        steps = self.max_steps // self.every if self.every else 0
        return len(self.times) + steps + (self.last and self.every > 1)

    @property
    def touches(self) -> bool:
        """Tell whether shapes may touch."""
        return self.equations.field.contact is not None

    @property
    def foretells(self) -> bool:
        """Tell whether the length of steps depends on what touches soon."""
        return self.touches or any(event.longest_step is not None for event in self.events)

    @property
    def jumps(self) -> bool:
        """Tell whether forces may jump at the ends of steps."""
        return len(self.jump_times) > 0 or not _asks_for_lengths(self)

    def saves(self, accepted: Int[Array, ""], ended: Bool[Array, ""]) -> Bool[Array, ""]:
        """Tell whether a row follows the last of so many steps, if rows follow steps at all."""
        return (accepted % self.every == 0) | (self.last & ended)

    def jump_at(self, t: Scalar) -> tuple[Bool[Array, ""], Scalar]:
        """Tell whether forces jump at a time, and return that time, which moves with the jump if they do."""
        if not len(self.jump_times):
            return jnp.array(False), t
        here = self.jump_times == t
        there = jnp.any(here)
        return there, jnp.where(there, self.jump_times[jnp.argmax(here)], t)

    def begun(self, motion: "Motion") -> Equations:
        """Equations of the step that begins with this motion."""
        return self.equations.begun(motion.at.t, motion.y)


class Pivots(NamedTuple):
    """Distance of rows of constraints from depending on each other.

    Attributes:
        smallest: Smallest pivot of the Delassus matrix, see `LeastNorm`.
        best: The largest of these so far. Masses and lengths of many sizes make all of them small.
    """

    smallest: Scalar
    best: Scalar

    def with_another(self, smallest: Scalar) -> "Pivots":
        """The same in the next state."""
        return Pivots(smallest, jnp.maximum(self.best, smallest))

    @property
    def share(self) -> Scalar:
        """Share of it that is left."""
        return jnp.where(self.best > 0, self.smallest / jnp.where(self.best > 0, self.best, 1), 1)


class Motion(eqx.Module):
    """State of a simulation between two steps: all that the next one depends on.

    Attributes:
        at: The time.
        y: State.
        solver_state: What the solver remembers.
        jumped: Whether the state or its rate has just jumped.
        met: Whether constraints are met; None where there are none.
        pivots: Distance of rows of constraints from depending on each other; None where there are none.
        since: First time that forces are asked for from here on [s], which is beyond a jump of theirs; NaN where there
            is none, None where forces do not jump.
        variation: How it varies with what is differentiated, see `Variation`; None where steps need not know that.
    """

    at: Instant
    y: State
    solver_state: PyTree
    jumped: Bool[Array, ""]
    met: Bool[Array, ""] | None = None
    pivots: Pivots | None = None
    since: Scalar | None = None
    variation: Variation | None = None

    def beyond(self, since: Scalar | None) -> "Motion":
        """The same on the other side of a jump of forces there, unless `since` is NaN or None."""
        if since is None:
            return self
        return dataclasses.replace(self, jumped=self.jumped | ~jnp.isnan(since), since=since)


class Way(NamedTuple):
    """Length of a step.

    Attributes:
        length: [s].
        stop: The time at which it ends [s]; NaN where its length says that.
    """

    length: Scalar
    stop: Scalar

    @classmethod
    def of(cls, length: Scalar) -> "Way":
        return cls(length, jnp.full_like(length, jnp.nan))

    def end(self, start: Instant) -> Instant:
        """End of a step from there."""
        free, end = jnp.isnan(self.stop), start.after(self.length)
        return Instant(jnp.where(free, end.t, self.stop), jnp.where(free, end.rest, 0))

    def begun_at(self, start: Instant) -> "Way":
        """The same with the length that it has from there."""
        return Way(jnp.where(jnp.isnan(self.stop), self.length, start.until(self.stop)), self.stop)


class Rows(eqx.Module):
    """Rows of a trajectory, as far as they are written. What is not is NaN.

    Attributes:
        ts: Times [s].
        ys: States.
        forces: Of contact; NaN where no step leads to a row, None for solvers that do not say.
        written: How many.
        due: Which of the problem's times comes next.
        tries: Steps tried up to each row; None unless rows follow steps.
        evaluations: Of forward dynamics up to each row; None unless rows follow steps, and for solvers that do not say.
        implicit: Steps up to each row in which a method that chooses was implicit; None where `evaluations` is.
    """

    ts: Float[Array, " rows"]
    ys: State
    forces: PointForces | None
    written: Int[Array, ""]
    due: Int[Array, ""]
    tries: Int[Array, " rows"] | None
    evaluations: Int[Array, " rows"] | None
    implicit: Int[Array, " rows"] | None


class Run(eqx.Module):
    """A simulation under way.

    Attributes:
        motion: Where it is.
        plan: How far the next step is to go, unless something happens before.
        controller_state: What the step controller remembers.
        landing: Event that the next step is to end at.
        way: Of the last accepted step.
        fired: Event that happened at its end; -1 for none.
        moment: What happens there; None without events.
        rows: Of the trajectory.
        log: Of events.
        running: Whether there is something left to do.
        result: `Result` so far.
        accepted, rejected: Steps.
        failures: Steps that the step controller has rejected since the last accepted one.
        unmet: Whether constraints were not met by a step that was tried since the last accepted one.
        work: Of all steps that were tried, and of events; None for solvers that do not say.
        start_overlap: Of shapes at the start: NaN before the first step, None without contact.
        most_overlap: Of shapes at starts of all steps; None without contact.
        acceleration: The mean one of the last accepted step, in the time of solvers, zero before; None where
            nothing is foretold.
    """

    motion: Motion
    plan: Way
    controller_state: PyTree
    landing: Crossing
    way: Way
    fired: Int[Array, ""]
    moment: Moment | None
    rows: Rows
    log: Log
    running: Bool[Array, ""]
    result: Int[Array, ""]
    accepted: Int[Array, ""]
    rejected: Int[Array, ""]
    failures: Int[Array, ""]
    unmet: Bool[Array, ""]
    work: Work | None
    start_overlap: Overlap | None
    most_overlap: Overlap | None
    acceleration: Float[Array, " nv"] | None

    @property
    def unfinished(self) -> Bool[Array, ""]:
        """Tell whether to go on, as a loop asks for it: what `running` says, by two entries.

        By one alone XLA takes the loop for one that counts, and copies all that leads to this entry, the whole step,
        whenever a pass looks for the number of rounds: with contact, a quarter of the time to compile.
        """
        return self.running & (self.result == Result.success)


def begin(problem: Problem) -> Run:
    """A simulation before its first step."""
    solver, t0, t1, y0 = problem.solver, problem.t0, problem.t1, problem.y0
    dt0 = problem.dt0
    if dt0 is None and isinstance(problem.stepsize_controller, diffrax.AbstractAdaptiveStepSizeController):
        dt0 = jnp.asarray(FIRST_STEP, t0.dtype)
    nothing = jnp.zeros_like(t0)
    # A first step may be shorter than rounding of the time at which it begins.
    start, end = (nothing, t1 - t0) if _asks_for_lengths(problem) else (t0, t1)
    target, controller_state = problem.stepsize_controller.init(
        problem.equations, start, end, y0, dt0, None, solver.func, solver.error_order(problem.equations)
    )
    plan = _planned(problem, Instant.at(start), jnp.asarray(target, t0.dtype))
    solver_state = solver.init(problem.equations, t0, t0 + plan.length, y0, None)
    work = None if work_of(solver_state) is None else Work.of()
    counts = jnp.zeros((), jnp.int32)
    equations, moment = problem.equations, None
    if problem.events:
        moment = Moment.start(problem.events, equations.clock(t0), y0, equations.field.model.rate)
    good, met = jnp.all(jnp.isfinite(jnp.append(y0.v, jnp.stack([t0, t1])))), problem.met
    result = jnp.where(good | (problem.start != Result.success), problem.start, Result.nonfinite)
    result = result if met is None else jnp.where(met | (result != Result.success), result, Result.constraints)
    pivots = None if met is None else Pivots(nothing, nothing)
    motion = Motion(Instant.at(t0), y0, solver_state, jnp.array(True), met, pivots).beyond(_since(problem, t0))
    return Run(
        motion=motion,
        plan=plan,
        controller_state=jax.tree.map(jnp.asarray, controller_state),
        landing=Crossing(counts - 1, nothing, jnp.array(False), None if moment is None else moment.left(moment.above)),
        way=Way(nothing, t0),
        fired=counts - 1,
        moment=moment,
        rows=_first_rows(problem, work),
        log=Log.empty(problem.max_events if problem.events else 0, t0, y0),
        running=(result == Result.success) & (t0 < t1),
        result=result.astype(jnp.int32),
        accepted=counts,
        rejected=counts,
        failures=counts,
        unmet=jnp.array(False),
        work=work,
        start_overlap=Overlap.full(jnp.nan, t0.dtype) if problem.touches else None,
        most_overlap=Overlap.full(0.0, t0.dtype) if problem.touches else None,
        acceleration=jnp.zeros_like(y0.v) if problem.foretells else None,
    )


def attempt(problem: Problem, run: Run, take: Callable) -> Run:
    """Try a step, by `step` or what returns the same, and keep it or try a smaller one next time. A run that has ended
    stays as it is.

    A step in which an event happens is not kept: the next one ends at the event, and has no length if that is where it
    begins. The step controller does not get to see either, and judges the rest of the step.
    """
    planned, landing = run.plan.begun_at(run.motion.at), run.landing.which >= 0
    active = run.running
    equations = problem.begun(run.motion)
    planned = _within_turn(problem, run, _until_touch(problem, equations, run, planned))
    way = _way(problem, run, planned)
    motion, error, dense, solver_result = take(problem, equations, run.motion, way)
    verdict = _verdict(problem, equations, run, way, motion, error)
    good = _finite(motion.y) if motion.met is None else _finite(motion.y) & motion.met
    blur = _blur(problem, way, motion)
    # With a warm start, rounding is known where a step begins, and too late.
    between = verdict.keep & good & (blur > 1) & jnp.isnan(way.stop) & ~landing & (not equations.field.iterates)
    passed = active & jnp.where(landing, good, verdict.keep & good & ~between)
    span = Span(run.motion.at, way.length, motion.at, motion.y, dense)
    crossing = _crossing(problem, run, passed & ~landing, span)
    found, hidden = crossing.which >= 0, crossing.hidden
    keep = passed & ~found & ~hidden
    fired = jnp.where(keep, run.landing.which, -1)
    arrived = settle(problem, equations, motion, way, fired)
    # An event may be where forces jump.
    arrived = arrived.beyond(_since(problem, arrived.at.t, _told(problem, run, way, verdict.since)))
    wanted = where(between, Way.of(BEFORE * way.length), verdict.plan)
    plan = _next_plan(problem, run, crossing, keep, way, planned, wanted)
    held = landing | found | hidden | between | (_held(problem) & keep & (way.length < planned.length))
    unmet = run.unmet if motion.met is None else run.unmet | ~motion.met | between
    excused = landing | found | hidden
    # What step controllers would keep, but cannot be, would be no better the next time.
    hopeless = verdict.keep & ~good
    result = _judged(problem, run, keep, excused, hopeless, motion, unmet, plan, solver_result, verdict.result)
    # As many events as there is room for, or closer to each other than times can tell.
    close = plan.length < _smallest(problem, _resolution(way.length))
    full = found & (run.log.count >= problem.max_events)
    result = jnp.where(full | hidden & close, Result.max_events, result)
    if crossing.moment is not None:
        # More than there are: some happen again and again at one instant.
        endless = full & (crossing.moment.count > len(crossing.moment.fell))
        result = jnp.where(endless, Result.endless_events, result)
    result = jnp.where(keep & (blur > LOST), Result.singular, result)
    result = jnp.where(_left_chart(problem, run, way, motion), Result.turn, result)
    accepted, rejected = run.accepted + _one(keep), run.rejected + _one(active & ~keep)
    work = _worked(run, active, motion, fired)
    ended = keep & ~(motion.at.until(problem.t1) > 0)
    stopped = _terminates(problem, fired)
    out_of_steps = ~ended & (accepted + rejected >= problem.max_steps)
    result = jnp.where((result == Result.success) & stopped, Result.event, result)
    result = jnp.where((result == Result.success) & out_of_steps, Result.max_steps, result)
    result = jnp.where(active, result, run.result).astype(jnp.int32)
    return Run(
        motion=where(keep, arrived, run.motion),
        plan=where(active, plan, run.plan),
        controller_state=where(active & ~held, verdict.controller_state, run.controller_state),
        landing=where(active, crossing, run.landing),
        way=where(keep, way, run.way),
        fired=where(keep, fired, run.fired),
        moment=where(keep, where(landing, run.landing.moment, crossing.moment), run.moment),
        rows=_with_rows(problem, run.rows, keep & ~_still(problem, way), span, ended, accepted, rejected, work),
        log=run.log.with_event(fired, arrived.at.t, arrived.y),
        running=run.running & ~ended & (result == Result.success),
        result=result,
        accepted=accepted,
        rejected=rejected,
        failures=jnp.where(keep, 0, run.failures + _one(active & ~held)),
        unmet=where(active, ~keep & unmet, run.unmet),
        work=work,
        **_overlaps(run, active, equations, motion),
        acceleration=_acceleration(problem, run, keep, way, motion),
    )


def _until_touch(problem, equations, run, planned):
    """Shorten what is planned where shapes will touch soon: step controllers would find that out by failing, or not at
    all."""
    y, direction = run.motion.y, problem.equations.direction
    known = jax.lax.stop_gradient((y.q, direction * y.v, run.acceleration))
    lengths = [event.longest_step(*known) for event in problem.events if event.longest_step is not None]
    if problem.touches:
        contact, model = jax.lax.stop_gradient((equations.field.contact, equations.field.model))
        q, v, a = known
        lengths.append(contact.step_policy(model, q).longest(model, v, a))
    if not lengths:
        return planned
    return _at_most(problem, planned, jax.lax.stop_gradient(jnp.min(jnp.stack(lengths))))


def _within_turn(problem, run, planned):
    """Shorten what is planned where the step would leave its chart, as step controllers do not know that it does."""
    model = problem.equations.field.model
    if model.flat or not traits(problem.solver).charts:
        return planned
    return _at_most(problem, planned, PLANNED / angular_speed(model, run.motion.y.v))


def _left_chart(problem, run, way, motion):
    """Tell whether a step of a length that does not change has ended nowhere since it turned too far."""
    model = problem.equations.field.model
    if model.flat or not (traits(problem.solver).charts and _held(problem)):
        return jnp.array(False)
    return ~_finite(motion.y) & (way.length * angular_speed(model, run.motion.y.v) > PLANNED)


def _blur(problem, way, motion):
    """Errors that singular configurations make of rounding, in a velocity and in its change in another step as long, in
    tolerances if there are any.

    At a small angle δ from there, rows know coordinates to eps/δ, and so velocities to eps |v|/δ² and accelerations to
    eps |v|²/δ³. The smallest pivot is as δ².
    """
    allowed = tolerances(problem.stepsize_controller)
    if motion.pivots is None or allowed is None:
        return jnp.zeros_like(way.length)
    v, share = jax.lax.stop_gradient((jnp.max(jnp.abs(motion.y.v)), motion.pivots.share))
    blur = jnp.finfo(v.dtype).eps * v / share * (1 + way.length * v / jnp.sqrt(share))
    return jnp.where(share < NEAR, blur / (allowed.atol + allowed.rtol * v), 0)


def _acceleration(problem, run, keep, way, motion):
    """The mean one of a step; of the one before if it is not kept or has no length."""
    if run.acceleration is None:
        return None
    gained = problem.equations.direction * (motion.y.v - run.motion.y.v)
    long = way.length > 0
    mean = gained / jnp.where(long, way.length, 1)
    return jax.lax.stop_gradient(jnp.where(keep & long, mean, run.acceleration))


def _overlaps(run, active, equations, motion):
    """Depths to which shapes overlap at the start of the first step and at most at those of all, each of which has
    looked for their points anyway."""
    field, first = equations.field, active & (run.accepted + run.rejected == 0)
    if field.contact is None:
        return {"start_overlap": None, "most_overlap": None}
    overlap = overlap_of(motion.solver_state)
    if overlap is None:
        overlap = jax.lax.stop_gradient(field.contact).overlap(*jax.lax.stop_gradient((field.model, run.motion.y.q)))
    most = jax.tree.map(jnp.fmax, run.most_overlap, overlap)
    return {
        "start_overlap": where(first, overlap, run.start_overlap),
        "most_overlap": where(active, most, run.most_overlap),
    }


def _worked(run, active, motion, fired):
    """The work so far. An event takes two evaluations, of rates at the end of the step and halfway from there."""
    work = work_of(motion.solver_state)
    if run.work is None or work is None:
        return None
    return run.work + work.where(active) + Work.of(2 * _one(fired >= 0))


def step(problem: Problem, equations: Equations, motion: Motion, way: Way, end: State | None = None):
    """The motion one step on, the error that the solver estimates, what its dense output needs, how it went.
    `equations` are those of the step. Derivatives know of kinks within it if they are told where it ends."""
    arrival, still = way.end(motion.at), _still(problem, way)
    if problem.events:
        # Solvers divide by lengths.
        way = where(still, Way.of(_smallest(problem, _resolution(way.length))), way)
    equations = _one_sided(problem, equations, motion, way)
    terms, t = equations, (jnp.zeros_like(way.length), way.length)
    if _may_know_times(motion.solver_state):
        clock = dataclasses.replace(problem.equations.clock, between=equations.clock.between)
        terms, t = Equations(equations.field, clock), (motion.at.t, way.end(motion.at).t)
    if end is not None:
        terms = terms.repaired(t, motion.y, end)
    y, error, dense, solver_state, result = problem.solver.step(
        terms, *t, motion.y, None, motion.solver_state, motion.jumped
    )
    y, near, error = equations.met(way.length, y, error)
    met, pivots = None if near is None else near.met, motion.pivots
    if near is not None and pivots is not None:
        pivots = pivots.with_another(near.smallest)
    if met is not None and error is not None:
        # Shorter steps stay nearer.
        error = jax.tree.map(lambda error: jnp.where(met & jnp.isfinite(error), error, jnp.inf), error)
    if problem.events:
        y = where(still, motion.y, y)
    arrived = Motion(arrival, y, solver_state, jnp.array(False), met, pivots, motion.since)
    return arrived, error, dense, result


def _one_sided(problem, equations, motion, way):
    """The equations of a step with the forces that are within it, if these jump where it begins or ends."""
    if motion.since is None:
        return equations
    end = way.end(motion.at).t
    jump, _ = problem.jump_at(end)
    last = jnp.where(jump, prevbefore(end), way.stop)
    between = jnp.where(jnp.isnan(motion.since), -jnp.inf, motion.since), jnp.where(jnp.isnan(last), jnp.inf, last)
    clock = dataclasses.replace(equations.clock, between=jax.lax.stop_gradient(between))
    return dataclasses.replace(equations, clock=clock)


def _since(problem, t, told=None):
    """First time that forces are asked for after a step that ends at `t`, beyond a jump of theirs: one that is known,
    or one that the step controller tells of, unless that is NaN. NaN where there is none, None where they do not jump.
    """
    if not problem.jumps:
        return None
    jump, _ = problem.jump_at(t)
    told = jnp.full_like(t, jnp.nan) if told is None else told
    return jax.lax.stop_gradient(jnp.where(jump, nextafter(t), told))


def _told(problem, run, way, since):
    """Jump that the step controller tells. A step without length stays where it is, also beyond a jump."""
    if not (problem.jumps and problem.events):
        return since
    return jnp.where(_still(problem, way) & jnp.isnan(since), run.motion.since, since)


def _may_know_times(solver_state: PyTree) -> bool:
    """Tell whether a solver may remember times: one that remembers something, and is not of those that count their
    work."""
    counted = isinstance(solver_state, Counted)
    memory, work = (solver_state.memory, solver_state.work) if counted else (solver_state, None)
    return memory is not None and work is None


def _still(problem, way):
    """Tell whether a step has no length, for an event where it begins."""
    return (way.length == 0) if problem.events else jnp.array(False)


def settle(problem: Problem, equations: Equations, motion: Motion, way: Way, fired: Int[Array, ""]) -> Motion:
    """The motion after what happens at the end of a step by these `equations`: an event, unless `fired` is -1, and
    ticks of the controller."""
    if not (problem.events or problem.equations.field.controller.ticks):
        return motion
    return carried(lambda motion: _settled(problem, equations, motion, way, fired), motion)


def _settled(problem, equations, motion, way, fired):
    if problem.events:
        at, y = jax.lax.cond(
            unvmap_any(fired >= 0),
            lambda: _after_event(problem, equations, motion, way, fired),
            lambda: (motion.at, motion.y),
        )
        motion = dataclasses.replace(motion, at=at, y=y, jumped=motion.jumped | (fired >= 0))
    controller = problem.equations.field.controller
    if not controller.ticks:
        return motion
    t, y = problem.equations.clock(motion.at.t), motion.y
    old = controller_memory(y)
    due = ~(motion.at.until(problem.equations.direction * controller.next_tick(old)) > 0)
    new = jax.lax.cond(unvmap_any(due), lambda: updated(controller, t, y.q, y.v, old), lambda: old)
    # In a batch another lane may have asked, and this one may be at its tick but for the rest of the time.
    y = dataclasses.replace(y, parts=y.parts | {ControllerMemory.part: where(due, new, old)})
    return dataclasses.replace(motion, y=y, jumped=motion.jumped | due)


def _after_event(problem, equations, motion, way, fired):
    """Time and state after an event, where there is one.

    The step ended at the event as nearly as dense output knew it. A Newton step removes the remaining height; its
    derivative is that of the implicit function theorem. If it were longer than the step itself, as after one without
    length, the height is rounding, and it has its derivative alone. Velocities follow by the midpoint rule: with
    Euler's, their derivatives would miss by the time that is left times how stiff the motion is.
    """
    y, clock = motion.y, problem.equations.clock
    which, entry = (jnp.asarray(column, fired.dtype)[fired] for column in numbers(problem.events))

    def rate(at, y):
        return equations.prod(equations.field(clock(at.t), y), equations.direction)

    def moved(rate, late):
        return drifted(equations.field.model, kicked(y, rest(rate), late), late * equations.direction * y.v)

    at_end = rate(motion.at, y)

    def late_for(number, event):
        mine = (fired >= 0) & (which == number)

        def height(t, y):
            return event.condition(clock(t), y)[entry]

        above, slope = jax.jvp(height, (motion.at.t, y), (jnp.ones_like(motion.at.t), at_end))
        # In a batch all lanes compute this, and an end of a range may be at infinity.
        return -jnp.where(mine, above, 0) / jnp.where(mine & (slope != 0), slope, 1)

    late = jax.lax.switch(which, [lambda e=e: late_for(*e) for e in enumerate(problem.events)])
    late = late - jax.lax.stop_gradient(jnp.where(jnp.abs(late) <= way.length, 0, late))
    middle = moved(at_end, late / 2)
    when, there = motion.at.after(late), moved(rate(motion.at.after(late / 2), middle), late)

    def unchanged_or_reset(event):
        return there if event.reset is None else _reset(problem, event, entry, when.t, there)

    after = jax.lax.switch(which, [lambda e=e: unchanged_or_reset(e) for e in problem.events])
    return where(fired >= 0, (when, after), (motion.at, y))


def _reset(problem, event, entry, t, y):
    after = event.reset(problem.equations.clock(t), y, entry)
    shapes = [jax.tree.map(jnp.shape, state) for state in (y, after)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"reset: expected a state like the one that it is given, {shapes[0]}, got {shapes[1]}")
    model = problem.equations.field.model
    after = jax.tree.map(lambda new, old: jnp.asarray(new).astype(old.dtype), after, y)
    after, *_ = problem.equations.met(t, eqx.tree_at(lambda y: y.q, after, model.normalize(after.q)))
    owners = [owner for owner in problem.equations.field.owners if owner.part in y.parts]
    return State(after.q, after.v, {owner.part: owner.after_event(model, y, after) for owner in owners})


class _Verdict(NamedTuple):
    """The step controller's answer: whether to keep a step, how far the next one goes, the first time that forces are
    asked for within it (NaN where they do not jump before it), the controller's state, and its result."""

    keep: Any
    plan: Any
    since: Any
    controller_state: Any
    result: Any


def _verdict(problem, equations, run, way, motion, error):
    order = order_of(motion.solver_state)
    # Solvers without an order need step controllers that do not use one.
    order: Any = problem.solver.error_order(problem.equations) if order is None else order
    y1 = motion.y
    if error is not None:
        # A step into the depth of a contact may end nowhere. A shorter one need not.
        finite = _finite(y1) & _finite(error) & ~equations.field.overshot(run.motion.y, y1)
        y1 = _compared(problem, run.motion.y, where(finite, y1, run.motion.y))
        error = jax.tree.map(lambda error: jnp.where(finite, error, jnp.inf), error)
    start, end = run.motion.at, motion.at
    if _asks_for_lengths(problem):
        start, end = Instant.at(jnp.zeros_like(way.length)), Instant.at(way.length)
    keep, begin, target, jumped, controller_state, result = problem.stepsize_controller.adapt_step_size(
        start.t, end.t, run.motion.y, y1, None, error, order, run.controller_state
    )
    keep = jnp.asarray(keep)
    plan = _planned(problem, where(keep, end, start), jnp.asarray(target, way.length.dtype))
    plan = where(keep, plan, _shortened(problem, run, way, plan))
    # Step controllers that know of jumps step to just before them, and begin the next step just beyond.
    since = jnp.where(jumped | (keep & (begin > end.t)), begin, jnp.nan)
    return _Verdict(keep, plan, since, controller_state, result)


def _compared(problem, y0, y1):
    """The end of a step as a scale of its error. What goes too deep into stiff shapes is thrown out fast; its speed
    would excuse its error at tolerances that are relative and loose."""
    if not problem.touches:
        return y1
    before, after = (jnp.linalg.norm(jax.lax.stop_gradient(y.v)) for y in (y0, y1))
    share = jnp.minimum(1, FASTER * before / jnp.where(after > 0, after, 1))
    return eqx.tree_at(lambda y: y.v, y1, share * y1.v)


def _shortened(problem, run, way, plan):
    """The plan after a failure, which is the shorter the more there were in a row."""
    least = getattr(problem.stepsize_controller, "factormin", 0)
    return _at_most(problem, plan, way.length * jnp.maximum(SHORTER ** run.failures.astype(way.length.dtype), least))


def _at_most(problem, way, longest):
    """A way that is not longer than this, nor shorter than the step controller allows. Those that do not grow fast
    again have their way."""
    controller = problem.stepsize_controller
    if not isinstance(controller, diffrax.PIDController):
        return way
    if controller.dtmin is not None:
        longest = jnp.maximum(longest, controller.dtmin)
    return where(longest < way.length, Way.of(longest), way)


def _asks_for_lengths(problem):
    return isinstance(problem.stepsize_controller, ASK_FOR_LENGTHS)


def _planned(problem, start, target):
    """A step from there to what a step controller aims at."""
    return Way.of(start.until(target)) if _asks_for_lengths(problem) else Way(start.until(target), target)


def _crossing(problem, run, wanted, span):
    if not problem.events:
        return Crossing(jnp.full_like(run.fired, -1), span.length, jnp.array(False), None)

    def at(passed):
        when = span.start.after(passed)
        return problem.equations.clock(when.t), _inside(problem.solver, span, passed)

    def rate(q, v):
        return problem.equations.direction * problem.equations.field.model.rate(q, v)

    # No instant is known better than times are.
    sharp = _resolution(span.length) * jnp.maximum(jnp.abs(span.start.t), jnp.abs(span.end.t))
    return first_crossing(problem.events, at, rate, span.length, sharp, run.fired, run.moment, wanted)


def _held(problem):
    """Tell whether the step controller plans its steps without regard to errors."""
    return not isinstance(problem.stepsize_controller, diffrax.AbstractAdaptiveStepSizeController)


def _next_plan(problem, run, crossing, keep, way, planned, wanted):
    """Plan the next step, which the step controller wants to be so long. After a step that was cut short, the rest of
    what was planned comes next."""
    landing, length = run.landing.which >= 0, way.length
    left = Way(planned.length - jnp.where(keep, length, 0), planned.stop)
    rest = where(left.length > _smallest(problem, _resolution(length)), left, Way.of(length))
    cut = keep & (length < planned.length)
    plan = where(cut & (_held(problem) | (left.length > wanted.length)), left, wanted)
    plan = where(crossing.hidden, Way.of(length * PLACES[0]), plan)
    return jax.lax.stop_gradient(where(landing, rest, where(crossing.which >= 0, way, plan)))


def _terminates(problem, fired):
    if not problem.events:
        return jnp.array(False)
    ends = jnp.array([event.terminate for event in problem.events])[numbers(problem.events)[0]]
    return (fired >= 0) & ends[fired]


class Span(NamedTuple):
    """A step that was taken: its start, length and end, the state at its end, and the data of dense output."""

    start: Instant
    length: Scalar
    end: Instant
    y1: State
    dense: PyTree


def interpolated(problem: Problem, span: Span, passed: Scalar) -> State:
    """The state so long after the start of a step; at its end exactly the state that the step ends with."""
    return _followed(problem.solver, span, passed) if problem.within else span.y1


def forces_within(problem: Problem, span: Span, passed: Scalar) -> PointForces:
    """Contact forces so long after the start of a step of a solver that says them."""
    return _dense_output(problem.solver, span).forces(passed)


def _inside(solver, span, passed):
    """The state so long after the start of a step."""
    return where(passed < span.length, _dense_output(solver, span).evaluate(passed), span.y1)


# Where the end of a step moves, a row there may stay where it is, and so come to lie within the step.
_followed = eqx.filter_custom_jvp(_inside)


@_followed.def_jvp
def _followed_jvp(primals, tangents):
    wanted = jax.tree.map(lambda x: x is not None, tangents, is_leaf=lambda x: x is None)
    moving, fixed = eqx.partition(primals, wanted)

    def followed(moving):
        solver, span, passed = eqx.combine(moving, fixed)
        dense = _dense_output(solver, span)
        inside, end = dense.evaluate(passed), dense.evaluate(span.length)
        # A memory may have parts that are no numbers.
        late = jax.tree.map(lambda y, a, b: y + (a - b) if eqx.is_inexact_array(y) else y, span.y1, inside, end)
        return where(passed < span.length, inside, late)

    return _followed(*primals), eqx.filter_jvp(followed, (moving,), (tangents,))[1]


def _dense_output(solver, span) -> Any:
    return solver.interpolation_cls(t0=jnp.zeros_like(span.length), t1=span.length, **span.dense)


def forces_like(problem: Problem) -> PointForces | None:
    """Shapes of contact forces in a row; None for solvers that do not say."""
    of_solver = getattr(problem.solver, "forces_like", None)
    return of_solver(problem.equations, problem.y0) if of_solver else None


def _way(problem, run, planned):
    """Choose the length of the next step: as planned, or to an earlier event, tick, jump or end. A remainder that is
    too short for a step is joined to the last step."""
    # Chosen, not compared by `minimum`, which takes one half of each derivative where two are equal.
    controller, stop = problem.equations.field.controller, problem.t1
    if len(problem.jump_times):
        ahead = (run.motion.at.until(problem.jump_times) > 0) & (problem.jump_times < stop)
        first = jnp.argmin(jnp.where(ahead, problem.jump_times, jnp.inf))
        stop = jnp.where(ahead[first], problem.jump_times[first], stop)
    if controller.ticks:
        tick = controller.next_tick(controller_memory(run.motion.y))
        tick = jax.lax.stop_gradient(problem.equations.direction * tick)
        stop = jnp.where(tick < stop, tick, stop)
    left = run.motion.at.until(stop)
    joined = jnp.minimum(_smallest(problem, _rounding(stop)), JOINED * planned.length)
    way = where(planned.length < left - joined, planned, Way(left, stop))
    return where(run.landing.which >= 0, Way.of(run.landing.after), way)


def _rounding(t):
    """Share of a time by which a type tells times from each other."""
    return float(jnp.finfo(t.dtype).eps)


def _resolution(t):
    """Share of the time by which instants are told from each other."""
    return max(_rounding(t) ** DIGITS, float(jnp.finfo(jnp.float64).eps))


def _smallest(problem, share):
    """A step that is hardly one, if times are known to this share of them."""
    t0, t1 = jax.lax.stop_gradient((problem.t0, problem.t1))
    return SMALLEST_STEP * share * jnp.maximum(jnp.abs(t0), jnp.abs(t1))


def _smallest_at(problem, t):
    """At a time, as the step controller has it: a long simulation may begin with short steps."""
    share = _resolution(t) if _asks_for_lengths(problem) else _rounding(t)
    return jnp.maximum(SMALLEST_STEP * share * jax.lax.stop_gradient(jnp.abs(t)), share * _smallest(problem, share))


def _judged(problem, run, keep, excused, hopeless, motion, unmet, plan, solver_result, controller_result):
    """Why a simulation cannot go on, or success. A step that was rejected because of an event is excused."""
    # NaN counts as too small.
    stuck = ~keep & ~excused & (hopeless | ~(plan.length > _smallest_at(problem, run.motion.at.t)))
    result = jnp.array(Result.success, jnp.int32)
    result = jnp.where(_failed(solver_result) & keep, Result.solver_failed, result)
    result = jnp.where(_failed(controller_result) & ~excused, Result.solver_failed, result)
    result = jnp.where(stuck, Result.step_too_small, result)
    if motion.variation is not None:
        result = jnp.where(stuck & motion.variation.missed, Result.derivatives, result)
    result = jnp.where(~_finite(motion.y) & (keep | stuck | excused), Result.nonfinite, result)
    if motion.met is None:
        return result
    # Where a motion's reach ends, the last steps are too short to leave it. Constant steps are not repeated.
    return jnp.where(unmet & stuck | ~motion.met & _held(problem), Result.constraints, result)


def _finite(y):
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(y)]))


def _failed(result):
    return ~jnp.asarray(result == diffrax.RESULTS.successful)


def _first_rows(problem, work):
    """Rows at the start."""
    at_start = jnp.isfinite(problem.t1) & (problem.times <= problem.t0)
    written = jnp.sum(at_start, dtype=jnp.int32)
    times = jnp.pad(problem.times, (0, problem.rows - len(problem.times)))
    here = jnp.arange(problem.rows, dtype=written.dtype) < written

    def rows(y):
        return jnp.where(here.reshape(-1, *[1] * y.ndim), y[None], jnp.full((), jnp.nan, y.dtype))

    none = jnp.zeros(problem.rows, jnp.int32)
    tries, evaluations, implicit = (
        none if problem.every and known else None for known in (True, work is not None, work is not None)
    )
    unknown = jax.tree.map(lambda x: jnp.full((problem.rows, *x.shape), jnp.nan, x.dtype), forces_like(problem))
    return Rows(
        ts=jnp.where(here, times, jnp.nan),
        ys=jax.tree.map(rows, problem.y0),
        forces=unknown,
        written=written,
        due=written,
        tries=tries,
        evaluations=evaluations,
        implicit=implicit,
    )


def _with_rows(problem, rows, keep, span, ended, accepted, rejected, work):
    """The rows with those that lie within an accepted step."""
    evaluations, implicit = (None, None) if work is None else (work.evaluations, work.implicit)
    counts = {"tries": accepted + rejected, "evaluations": evaluations, "implicit": implicit}

    def forces_at(passed):
        return None if rows.forces is None else forces_within(problem, span, passed)

    def due(rows):
        t = problem.times.at[rows.due].get(mode="fill", fill_value=jnp.nan)
        return keep & (span.start.until(t) <= span.length)

    def save(rows):
        now = due(rows)
        t = problem.times.at[rows.due].get(mode="fill", fill_value=0)
        passed = span.start.until(t)
        rows = _appended(rows, now, t, interpolated(problem, span, passed), forces_at(passed), **counts)
        return eqx.tree_at(lambda rows: rows.due, rows, rows.due + _one(now))

    if len(problem.times):
        # With one condition for each lane, a batch would select among whole buffers after every row.
        rows = jax.lax.while_loop(lambda rows: unvmap_any(due(rows)), save, rows)
    if not problem.every:
        return rows
    wanted = problem.saves(accepted, ended)
    return _appended(rows, keep & wanted, span.end.t, span.y1, forces_at(span.length), **counts)


def _appended(rows, now, t, y, forces, tries, evaluations, implicit):
    where = jnp.where(now, rows.written, len(rows.ts))

    def put(all, x):
        return all.at[where].set(x, mode="drop")

    known = (rows.tries, tries), (rows.evaluations, evaluations), (rows.implicit, implicit)
    counts = (None if all is None else put(all, x) for all, x in known)
    ts, ys, forces = jax.tree.map(put, (rows.ts, rows.ys, rows.forces), (t, y, forces))
    return Rows(ts, ys, forces, rows.written + _one(now), rows.due, *counts)


def _one(condition):
    return jnp.where(condition, 1, 0)


def where(condition: Bool[Array, ""], new: Any, old: Any) -> Any:
    """One of two trees."""
    return jax.tree.map(lambda new, old: jnp.where(condition, new, old), new, old)
