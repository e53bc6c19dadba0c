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

from jdyn.array import moving_and_fixed, where
from jdyn.constraints import Projected
from jdyn.contact import Overlap, PointForces
from jdyn.control.controller import updated
from jdyn.simulation.energy_control import HalveOrGrow
from jdyn.simulation.events import (
    SAMPLE_PLACES,
    Crossing,
    EventLog,
    EventState,
    WatchedEvent,
    event_table,
    first_crossing,
)
from jdyn.simulation.manifold import PLANNED, angular_speed
from jdyn.simulation.result import Result
from jdyn.simulation.solver import Counted, Work, order_of, overlap_of, tolerances, traits, work_of
from jdyn.simulation.solvers.moves import displaced, incremented, without_configuration
from jdyn.simulation.state import Clock, ControllerMemory, Instant, State, controller_memory
from jdyn.simulation.variation import Variation, apply_with_variation
from jdyn.simulation.vector_field import VectorField

# A step of this many roundings of the time is too small to be told from none. Single precision tells times from each
# other by one and a half times its digits, see `Instant`.
SMALLEST_STEP, DIGITS = 16, 1.5
# A remainder of less than this share of a step, and within rounding of the time, is joined to the step before.
SHORTEST_REMAINDER = 1e-2

# Step controllers that choose lengths of steps only. Others may fix the times at which steps end.
LENGTH_CONTROLLERS = (diffrax.PIDController, HalveOrGrow)

# First step to try [s]; controllers correct it within a few steps.
FIRST_STEP = 0.01

# The second failure in a row shortens a step to this share at least, the third to its square, and so on, unless the
# step controller does not go so far. Where friction begins to hold, errors fall with the first power of the length, not
# with that of the order: a quadruped's landing took 16 failures in a row.
LEAST_SHORTENING = 0.5

# A step that would end where a singular configuration turns rounding into an error above the tolerance ends before
# that, at this share of its length, and the next step passes it. A motion with an error of so many tolerances is lost.
# Linkages that are far from singular keep more than the last share of their largest pivot.
BEFORE_SINGULAR, LOST_TO_ROUNDING, NEAR_SINGULAR = 0.4, 1e4, 1e-3

# Errors of steps with contact are compared with velocities that are at most so much larger than those at the start.
MOST_SPEEDUP = 4


class Equations(diffrax.AbstractTerm):
    """A vector field that is integrated forwards or backwards in time; solvers see a time that increases.

    Attributes:
        field: The equations of motion.
        clock: Converts the time of solvers to time.
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

    def for_step(self, t: Scalar, y: State) -> "Equations":
        """Equations of a step from `y` at `t`, where the time of the solver begins at zero."""
        clock = Clock(self.direction, t)
        return Equations(self.field.for_step(clock(jnp.zeros_like(t)), y), clock)

    def repaired(self, t: tuple[Scalar, Scalar], y0: State, y1: State) -> "Equations":
        """Equations with the derivatives of a step between two states, see `GradientPolicy.repaired`."""
        h = self.direction * (t[1] - t[0])
        return Equations(self.field.repaired(t, h, (y0.q, y0.v), (y1.q, y1.v)), self.clock)

    def projected(
        self, t: Scalar, y: State, error: State | None = None
    ) -> tuple[State, Projected | None, State | None]:
        """Project a state and its error onto the constraints, see `VectorField.projected`."""
        return self.field.projected(self.clock(t), y, error)


class Problem(eqx.Module):
    """A simulation to run. Times increase from `t0` to `t1`: they are negative ones where time runs backwards.

    Attributes:
        equations: The equations of motion.
        y0: State at `t0`.
        start_result: `Result.success`, or why the simulation cannot begin.
        on_constraints: Whether `y0` meets the constraints; None where there are none.
        t0, t1: Start and end [s].
        row_times: Times of rows [s], in order.
        jump_times: Times at which forces jump [s], in any order; NaN and infinity for none.
        dt0: First step [s], None where the step controller chooses it.
        solver: Takes the steps.
        stepsize_controller: Judges their errors and chooses their lengths.
        events: Events to watch for.
        max_steps: Most steps to try.
        max_events: Most events to let happen.
        steps_per_row: Number of steps after which a row follows, beside those at `row_times`; 0 for none.
        row_at_end: Whether the end is a row even if `steps_per_row` does not make it one.
        rows_within_steps: Whether rows may lie within steps, not only at their ends.
    """

    equations: Equations
    y0: State
    start_result: Int[Array, ""]
    on_constraints: Bool[Array, ""] | None
    t0: Scalar
    t1: Scalar
    row_times: Float[Array, " rows"]
    jump_times: Float[Array, " jumps"]
    dt0: Scalar | None
    solver: diffrax.AbstractSolver
    stepsize_controller: diffrax.AbstractStepSizeController[Any, Any]
    events: tuple[WatchedEvent, ...]
    max_steps: int = eqx.field(static=True)
    max_events: int = eqx.field(static=True)
    steps_per_row: int = eqx.field(static=True)
    row_at_end: bool = eqx.field(static=True)
    rows_within_steps: bool = eqx.field(static=True)

    @property
    def rows(self) -> int:
        """Most rows that there can be."""
        steps = self.max_steps // self.steps_per_row if self.steps_per_row else 0
        return len(self.row_times) + steps + (self.row_at_end and self.steps_per_row > 1)

    @property
    def has_contact(self) -> bool:
        """Tell whether shapes may touch."""
        return self.equations.field.contact is not None

    @property
    def anticipates_contact(self) -> bool:
        """Tell whether steps are cut where shapes will touch soon."""
        return self.has_contact or any(event.longest_step is not None for event in self.events)

    @property
    def has_force_jumps(self) -> bool:
        """Tell whether forces may jump at the ends of steps."""
        return len(self.jump_times) > 0 or not _chooses_lengths(self)

    def saves_row(self, accepted: Int[Array, ""], ended: Bool[Array, ""]) -> Bool[Array, ""]:
        """Tell whether a row follows a number of accepted steps, if rows follow steps at all."""
        return (accepted % self.steps_per_row == 0) | (self.row_at_end & ended)

    def jump_at(self, t: Scalar) -> tuple[Bool[Array, ""], Scalar]:
        """Tell whether forces jump at a time, and return that time, which moves with the jump if they do."""
        if not len(self.jump_times):
            return jnp.array(False), t
        same = self.jump_times == t
        jumps = jnp.any(same)
        return jumps, jnp.where(jumps, self.jump_times[jnp.argmax(same)], t)

    def equations_of_step(self, motion: "Motion") -> Equations:
        """Equations of the step that begins with this motion."""
        return self.equations.for_step(motion.instant.t, motion.y)


class DelassusPivot(NamedTuple):
    """Smallest pivot of the Delassus matrix: small where rows of constraints nearly depend on each other.

    Attributes:
        smallest: The pivot in the last state, see `LeastNorm`.
        largest: Its largest value in all states so far. Masses and lengths of different sizes make all values small.
    """

    smallest: Scalar
    largest: Scalar

    def with_next(self, smallest: Scalar) -> "DelassusPivot":
        """The pivot in the next state."""
        return DelassusPivot(smallest, jnp.maximum(self.largest, smallest))

    @property
    def ratio(self) -> Scalar:
        """The pivot as a share of its largest value."""
        return jnp.where(self.largest > 0, self.smallest / jnp.where(self.largest > 0, self.largest, 1), 1)


class Motion(eqx.Module):
    """State of a simulation between two steps: all that the next one depends on.

    Attributes:
        instant: The time.
        y: State.
        solver_state: Memory of the solver.
        jumped: Whether the state or its rate has just jumped.
        on_constraints: Whether the state meets the constraints; None where there are none.
        pivot: Smallest pivot of the Delassus matrix; None where there are no constraints.
        first_force_time: First time at which forces are evaluated from here on [s], which is beyond a jump of theirs;
            NaN for any, None where forces do not jump.
        variation: Variation of the motion with what is differentiated; None where steps need not know it.
    """

    instant: Instant
    y: State
    solver_state: PyTree
    jumped: Bool[Array, ""]
    on_constraints: Bool[Array, ""] | None = None
    pivot: DelassusPivot | None = None
    first_force_time: Scalar | None = None
    variation: Variation | None = None

    def beyond_jump(self, first_force_time: Scalar | None) -> "Motion":
        """The motion beyond a jump of forces, unless the time is NaN or None."""
        if first_force_time is None:
            return self
        jumped = self.jumped | ~jnp.isnan(first_force_time)
        return dataclasses.replace(self, jumped=jumped, first_force_time=first_force_time)


class StepSpan(NamedTuple):
    """Length of a step.

    Attributes:
        length: Length [s].
        end_time: Time at which the step ends [s]; NaN where the length decides.
    """

    length: Scalar
    end_time: Scalar

    @classmethod
    def of_length(cls, length: Scalar) -> "StepSpan":
        return cls(length, jnp.full_like(length, jnp.nan))

    def end_from(self, start: Instant) -> Instant:
        """End of a step that begins at `start`."""
        free, end = jnp.isnan(self.end_time), start.after(self.length)
        return Instant(jnp.where(free, end.t, self.end_time), jnp.where(free, end.remainder, 0))

    def measured_from(self, start: Instant) -> "StepSpan":
        """The span with the length that it has from `start`, if its end is a time."""
        return StepSpan(jnp.where(jnp.isnan(self.end_time), self.length, start.until(self.end_time)), self.end_time)


class SavedRows(eqx.Module):
    """Rows of a trajectory that are written so far; the others are NaN.

    Attributes:
        ts: Times [s].
        ys: States.
        forces: Forces of contact; NaN in rows to which no step leads, None for solvers that do not report them.
        written: Number of rows that are written.
        due: Index of the next of the problem's `row_times`.
        tries: Steps tried up to each row; None unless rows follow steps.
        evaluations: Evaluations of forward dynamics up to each row; None unless rows follow steps, and for solvers that
            do not report them.
        implicit: Implicit steps up to each row, of a solver that chooses; None where `evaluations` is.
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
        motion: Motion at the end of the last accepted step.
        plan: Span of the next step, unless something cuts it.
        controller_state: Memory of the step controller.
        pending_event: Event at which the next step is to end.
        last_span: Span of the last accepted step.
        fired: Event that happened at its end; -1 for none.
        event_state: State of events at its end; None without events.
        rows: Rows of the trajectory.
        log: Log of events.
        running: Whether there is something left to do.
        result: `Result` so far.
        accepted, rejected: Number of steps.
        failures: Steps that the step controller has rejected since the last accepted one.
        off_constraints: Whether a step that was tried since the last accepted one did not meet the constraints.
        work: Work of all steps that were tried, and of events; None for solvers that do not report it.
        start_overlap: Overlap of shapes at the start: NaN before the first step, None without contact.
        most_overlap: Largest overlap of shapes at starts of steps; None without contact.
        acceleration: Mean acceleration in the last accepted step, in the time of solvers, zero before; None unless
            steps are cut where shapes will touch.
    """

    motion: Motion
    plan: StepSpan
    controller_state: PyTree
    pending_event: Crossing
    last_span: StepSpan
    fired: Int[Array, ""]
    event_state: EventState | None
    rows: SavedRows
    log: EventLog
    running: Bool[Array, ""]
    result: Int[Array, ""]
    accepted: Int[Array, ""]
    rejected: Int[Array, ""]
    failures: Int[Array, ""]
    off_constraints: Bool[Array, ""]
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
    start, end = (nothing, t1 - t0) if _chooses_lengths(problem) else (t0, t1)
    target, controller_state = problem.stepsize_controller.init(
        problem.equations, start, end, y0, dt0, None, solver.func, solver.error_order(problem.equations)
    )
    plan = _span_to_target(problem, Instant.at(start), jnp.asarray(target, t0.dtype))
    solver_state = solver.init(problem.equations, t0, t0 + plan.length, y0, None)
    work = None if work_of(solver_state) is None else Work.of()
    counts = jnp.zeros((), jnp.int32)
    equations, event_state = problem.equations, None
    if problem.events:
        event_state = EventState.start(problem.events, equations.clock(t0), y0, equations.field.model.rate)
    finite, on_constraints = jnp.all(jnp.isfinite(jnp.append(y0.v, jnp.stack([t0, t1])))), problem.on_constraints
    result = jnp.where(finite | (problem.start_result != Result.success), problem.start_result, Result.nonfinite)
    if on_constraints is not None:
        result = jnp.where(on_constraints | (result != Result.success), result, Result.constraints)
    pivot = None if on_constraints is None else DelassusPivot(nothing, nothing)
    motion = Motion(Instant.at(t0), y0, solver_state, jnp.array(True), on_constraints, pivot)
    motion = motion.beyond_jump(_first_force_time(problem, t0))
    at_step_end = None if event_state is None else event_state.at_step_end(event_state.above_zero)
    return Run(
        motion=motion,
        plan=plan,
        controller_state=jax.tree.map(jnp.asarray, controller_state),
        pending_event=Crossing(counts - 1, nothing, jnp.array(False), at_step_end),
        last_span=StepSpan(nothing, t0),
        fired=counts - 1,
        event_state=event_state,
        rows=_first_rows(problem, work),
        log=EventLog.empty(problem.max_events if problem.events else 0, t0, y0),
        running=(result == Result.success) & (t0 < t1),
        result=result.astype(jnp.int32),
        accepted=counts,
        rejected=counts,
        failures=counts,
        off_constraints=jnp.array(False),
        work=work,
        start_overlap=Overlap.full(jnp.nan, t0.dtype) if problem.has_contact else None,
        most_overlap=Overlap.full(0.0, t0.dtype) if problem.has_contact else None,
        acceleration=jnp.zeros_like(y0.v) if problem.anticipates_contact else None,
    )


def attempt(problem: Problem, run: Run, take_step: Callable) -> Run:
    """Try a step, by `step` or what returns the same, and keep it or try a smaller one next time. A run that has ended
    stays as it is.

    A step in which an event happens is not kept: the next one ends at the event, and has no length if that is where it
    begins. The step controller does not get to see either, and judges the rest of the step.
    """
    active = run.running
    equations = problem.equations_of_step(run.motion)
    planned = _cut_before_contact(problem, equations, run, run.plan.measured_from(run.motion.instant))
    planned = _cut_to_chart(problem, run, planned)
    span = _cut_to_next_stop(problem, run, planned)
    trial = _Trial(span, *take_step(problem, equations, run.motion, span))
    verdict = _verdict(problem, equations, run, trial)
    decision = _decision(problem, equations, run, trial, verdict)
    keep, fired = decision.keep, decision.fired
    arrived = _arrived(problem, equations, run, trial, verdict, fired)
    plan = _next_plan(problem, run, trial, verdict, decision, planned)
    accepted, rejected = run.accepted + _as_count(keep), run.rejected + _as_count(active & ~keep)
    work = _total_work(run, active, trial.motion, fired)
    ended = keep & ~(trial.motion.instant.until(problem.t1) > 0)
    result = _result(problem, run, trial, verdict, decision, plan, ended, accepted + rejected)
    # The step controller learns nothing from steps that events, singular configurations or stops decided about.
    cut = _steps_are_fixed(problem) & keep & (span.length < planned.length)
    judged = active & ~(decision.by_event | decision.near_singular | cut)
    return Run(
        motion=where(keep, arrived, run.motion),
        plan=where(active, plan, run.plan),
        controller_state=where(judged, verdict.controller_state, run.controller_state),
        pending_event=where(active, decision.crossing, run.pending_event),
        last_span=where(keep, span, run.last_span),
        fired=where(keep, fired, run.fired),
        event_state=where(keep, decision.event_state(run), run.event_state),
        rows=_with_rows(problem, run, trial, keep, ended, accepted, rejected, work),
        log=run.log.with_event(fired, arrived.instant.t, arrived.y),
        running=run.running & ~ended & (result == Result.success),
        result=result,
        accepted=accepted,
        rejected=rejected,
        failures=jnp.where(keep, 0, run.failures + _as_count(judged)),
        off_constraints=where(active, ~keep & decision.off_constraints, run.off_constraints),
        work=work,
        **_overlaps(run, active, equations, trial.motion),
        acceleration=_mean_acceleration(problem, run, keep, trial),
    )


class _Trial(NamedTuple):
    """A step that is tried.

    Attributes:
        span: Its length.
        motion: Motion at its end.
        error: Error that the solver estimates; None for a solver that estimates none.
        dense: Data of dense output.
        solver_result: Result of the solver.
    """

    span: StepSpan
    motion: Motion
    error: State | None
    dense: PyTree
    solver_result: Any

    def taken_step(self, start: Instant) -> "TakenStep":
        """The step for dense output."""
        return TakenStep(start, self.span.length, self.motion.instant, self.motion.y, self.dense)


class _Decision(NamedTuple):
    """Decision about a step that was tried.

    Attributes:
        keep: Whether the simulation goes on from its end.
        to_event: Whether it was to end at an event.
        crossing: The first event within it; the next step ends there.
        fired: Event that happens at its end; -1 for none.
        near_singular: Whether it would end where a singular configuration makes too much of rounding; the next step
            ends before.
        singularity_error: The error there, in tolerances.
        off_constraints: Whether this step or another one since the last accepted step did not meet the constraints.
        hopeless: Whether the step cannot be kept, and the step controller, which would keep it, does not shorten it.
    """

    keep: Bool[Array, ""]
    to_event: Bool[Array, ""]
    crossing: Crossing
    fired: Int[Array, ""]
    near_singular: Bool[Array, ""]
    singularity_error: Scalar
    off_constraints: Bool[Array, ""]
    hopeless: Bool[Array, ""]

    @property
    def by_event(self) -> Bool[Array, ""]:
        """Tell whether an event has decided, not the error of the step."""
        return self.to_event | self.crossing.found | self.crossing.hidden

    def event_state(self, run: Run) -> EventState | None:
        """State of events at the end of the step."""
        return where(self.to_event, run.pending_event.event_state, self.crossing.event_state)


def _decision(problem, equations, run, trial, verdict):
    """Decide about a step: it is kept unless the step controller rejects it, or an event happens within it."""
    motion, to_event = trial.motion, run.pending_event.found
    valid = _finite(motion.y) if motion.on_constraints is None else _finite(motion.y) & motion.on_constraints
    singularity_error = _singularity_error(problem, trial.span, motion)
    # With a warm start, rounding is known where a step begins, and too late. Ends at given times stay where they are.
    movable = jnp.isnan(trial.span.end_time) & ~to_event & (not equations.field.iterates)
    near_singular = verdict.keep & valid & (singularity_error > 1) & movable
    good = run.running & jnp.where(to_event, valid, verdict.keep & valid & ~near_singular)
    crossing = _crossing(problem, run, good & ~to_event, trial.taken_step(run.motion.instant))
    keep = good & ~crossing.found & ~crossing.hidden
    fired = jnp.where(keep, run.pending_event.which, -1)
    off_constraints = run.off_constraints
    if motion.on_constraints is not None:
        off_constraints = off_constraints | ~motion.on_constraints | near_singular
    hopeless = verdict.keep & ~valid
    return _Decision(keep, to_event, crossing, fired, near_singular, singularity_error, off_constraints, hopeless)


def _arrived(problem, equations, run, trial, verdict, fired):
    """The motion after a step, and after the event and the tick at its end."""
    arrived = after_event_and_tick(problem, equations, trial.motion, trial.span, fired)
    jump = _jump_of_controller(problem, run, trial.span, verdict.first_force_time)
    # An event may be where forces jump.
    return arrived.beyond_jump(_first_force_time(problem, arrived.instant.t, jump))


def _result(problem, run, trial, verdict, decision, plan, ended, tries):
    """Reason why a simulation ends with this step, or success."""
    result, crossing = _result_of_step(problem, run, trial, verdict, decision, plan), decision.crossing
    # As many events as there is room for, or closer to each other than times can tell.
    close = plan.length < _smallest_step(problem, _resolution(trial.span.length))
    full = crossing.found & (run.log.count >= problem.max_events)
    result = jnp.where(full | crossing.hidden & close, Result.max_events, result)
    if crossing.event_state is not None:
        # More than there are: some happen again and again at one instant.
        endless = full & (crossing.event_state.count > len(crossing.event_state.due))
        result = jnp.where(endless, Result.endless_events, result)
    lost = decision.keep & (decision.singularity_error > LOST_TO_ROUNDING)
    result = jnp.where(lost, Result.singular, result)
    result = jnp.where(_left_chart(problem, run, trial), Result.turn, result)
    stopped = _terminates(problem, decision.fired)
    out_of_steps = ~ended & (tries >= problem.max_steps)
    result = jnp.where((result == Result.success) & stopped, Result.event, result)
    result = jnp.where((result == Result.success) & out_of_steps, Result.max_steps, result)
    return jnp.where(run.running, result, run.result).astype(jnp.int32)


def _result_of_step(problem, run, trial, verdict, decision, plan):
    """Reason why no step goes on from here, or success. A step that an event has decided about is excused."""
    motion, keep, excused = trial.motion, decision.keep, decision.by_event
    # NaN counts as too small.
    too_small = ~(plan.length > _smallest_step_at(problem, run.motion.instant.t))
    stuck = ~keep & ~excused & (decision.hopeless | too_small)
    result = jnp.array(Result.success, jnp.int32)
    result = jnp.where(_failed(trial.solver_result) & keep, Result.solver_failed, result)
    result = jnp.where(_failed(verdict.result) & ~excused, Result.solver_failed, result)
    result = jnp.where(stuck, Result.step_too_small, result)
    if motion.variation is not None:
        result = jnp.where(stuck & motion.variation.too_long, Result.derivatives, result)
    result = jnp.where(~_finite(motion.y) & (keep | stuck | excused), Result.nonfinite, result)
    if motion.on_constraints is None:
        return result
    # Where no motion goes on that meets the constraints, steps become too small. Fixed steps are not repeated.
    unmet = decision.off_constraints & stuck | ~motion.on_constraints & _steps_are_fixed(problem)
    return jnp.where(unmet, Result.constraints, result)


def _cut_before_contact(problem, equations, run, planned):
    """Shorten the planned span if shapes are about to touch. Step controllers would find out by rejected steps, or not
    at all."""
    y, direction = run.motion.y, problem.equations.direction
    known = jax.lax.stop_gradient((y.q, direction * y.v, run.acceleration))
    lengths = [event.longest_step(*known) for event in problem.events if event.longest_step is not None]
    if problem.has_contact:
        contact, model = jax.lax.stop_gradient((equations.field.contact, equations.field.model))
        q, v, a = known
        lengths.append(contact.step_policy(model, q).longest(model, v, a))
    if not lengths:
        return planned
    return _capped(problem, planned, jax.lax.stop_gradient(jnp.min(jnp.stack(lengths))))


def _cut_to_chart(problem, run, planned):
    """Shorten the planned span if the step would leave its chart, of which step controllers know nothing."""
    model = problem.equations.field.model
    if model.flat or not traits(problem.solver).charts:
        return planned
    return _capped(problem, planned, PLANNED / angular_speed(model, run.motion.y.v))


def _left_chart(problem, run, trial):
    """Tell whether a step of fixed length has no end because it turned too far."""
    model = problem.equations.field.model
    if model.flat or not (traits(problem.solver).charts and _steps_are_fixed(problem)):
        return jnp.array(False)
    return ~_finite(trial.motion.y) & (trial.span.length * angular_speed(model, run.motion.y.v) > PLANNED)


def _singularity_error(problem, span, motion):
    """Error of a velocity, and of its change in another step of this length, that rounding causes near singular
    configurations; in units of the tolerance. Zero if there are no tolerances.

    At a small angle δ from a singular configuration, rows determine coordinates to eps/δ, and so velocities to
    eps |v|/δ² and accelerations to eps |v|²/δ³. The smallest pivot is proportional to δ².
    """
    allowed = tolerances(problem.stepsize_controller)
    if motion.pivot is None or allowed is None:
        return jnp.zeros_like(span.length)
    v, ratio = jax.lax.stop_gradient((jnp.max(jnp.abs(motion.y.v)), motion.pivot.ratio))
    error = jnp.finfo(v.dtype).eps * v / ratio * (1 + span.length * v / jnp.sqrt(ratio))
    return jnp.where(ratio < NEAR_SINGULAR, error / (allowed.atol + allowed.rtol * v), 0)


def _mean_acceleration(problem, run, keep, trial):
    """Mean acceleration of a step; of the step before if this one is not kept or has no length."""
    if run.acceleration is None:
        return None
    gained, length = problem.equations.direction * (trial.motion.y.v - run.motion.y.v), trial.span.length
    long = length > 0
    mean = gained / jnp.where(long, length, 1)
    return jax.lax.stop_gradient(jnp.where(keep & long, mean, run.acceleration))


def _overlaps(run, active, equations, motion):
    """Overlap of shapes at the start of the first step, and the largest at the starts of all steps. Each step finds the
    points of shapes at its start anyway."""
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


def _total_work(run, active, motion, fired):
    """Work so far. An event takes two evaluations: of the rates at the end of the step and halfway to the event."""
    work = work_of(motion.solver_state)
    if run.work is None or work is None:
        return None
    return run.work + work.where(active) + Work.of(2 * _as_count(fired >= 0))


def step(problem: Problem, equations: Equations, motion: Motion, span: StepSpan, end: State | None = None):
    """Take a step from a motion, and project its end onto the constraints.

    Args:
        problem: The simulation.
        equations: Equations of this step, see `Problem.equations_of_step`.
        motion: Motion at its start.
        span: Length of the step.
        end: State at its end if that is known, by which derivatives take kinks of contact within the step into account.

    Returns:
        The motion at the end, the error that the solver estimates, data of dense output, and the solver's result.
    """
    end_instant, no_length = span.end_from(motion.instant), _has_no_length(problem, span)
    if problem.events:
        # Solvers divide by lengths.
        span = where(no_length, StepSpan.of_length(_smallest_step(problem, _resolution(span.length))), span)
    equations = _with_one_sided_forces(problem, equations, motion, span)
    terms, t = equations, (jnp.zeros_like(span.length), span.length)
    if _may_remember_times(motion.solver_state):
        clock = dataclasses.replace(problem.equations.clock, between=equations.clock.between)
        terms, t = Equations(equations.field, clock), (motion.instant.t, span.end_from(motion.instant).t)
    if end is not None:
        terms = terms.repaired(t, motion.y, end)
    y, error, dense, solver_state, result = problem.solver.step(
        terms, *t, motion.y, None, motion.solver_state, motion.jumped
    )
    y, projection, error = equations.projected(span.length, y, error)
    on_constraints, pivot = None if projection is None else projection.converged, motion.pivot
    if projection is not None and pivot is not None:
        pivot = pivot.with_next(projection.smallest)
    if on_constraints is not None and error is not None:
        # Shorter steps end nearer to the constraints.
        error = jax.tree.map(lambda error: jnp.where(on_constraints & jnp.isfinite(error), error, jnp.inf), error)
    if problem.events:
        y = where(no_length, motion.y, y)
    arrived = Motion(end_instant, y, solver_state, jnp.array(False), on_constraints, pivot, motion.first_force_time)
    return arrived, error, dense, result


def _with_one_sided_forces(problem, equations, motion, span):
    """Equations of a step that evaluate forces only inside it, where forces jump at its start or end."""
    if motion.first_force_time is None:
        return equations
    end = span.end_from(motion.instant).t
    jump, _ = problem.jump_at(end)
    last = jnp.where(jump, prevbefore(end), span.end_time)
    between = (
        jnp.where(jnp.isnan(motion.first_force_time), -jnp.inf, motion.first_force_time),
        jnp.where(jnp.isnan(last), jnp.inf, last),
    )
    clock = dataclasses.replace(equations.clock, between=jax.lax.stop_gradient(between))
    return dataclasses.replace(equations, clock=clock)


def _first_force_time(problem, t, jump_of_controller=None):
    """First time at which forces are evaluated after a step that ends at `t`: beyond a jump at a known time, or one
    that the step controller reports, unless that is NaN. NaN where forces do not jump at `t`, None where they never do.
    """
    if not problem.has_force_jumps:
        return None
    jump, _ = problem.jump_at(t)
    jump_of_controller = jnp.full_like(t, jnp.nan) if jump_of_controller is None else jump_of_controller
    return jax.lax.stop_gradient(jnp.where(jump, nextafter(t), jump_of_controller))


def _jump_of_controller(problem, run, span, first_force_time):
    """Jump that the step controller reports. A step without length stays beyond the jump at which it begins."""
    if not (problem.has_force_jumps and problem.events):
        return first_force_time
    return jnp.where(
        _has_no_length(problem, span) & jnp.isnan(first_force_time), run.motion.first_force_time, first_force_time
    )


def _may_remember_times(solver_state: PyTree) -> bool:
    """Tell whether a solver may remember times. Solvers that count their work do not, nor do those without memory."""
    counted = isinstance(solver_state, Counted)
    memory, work = (solver_state.memory, solver_state.work) if counted else (solver_state, None)
    return memory is not None and work is None


def _has_no_length(problem, span):
    """Tell whether a step has no length, for an event where it begins."""
    return (span.length == 0) if problem.events else jnp.array(False)


def after_event_and_tick(
    problem: Problem, equations: Equations, motion: Motion, span: StepSpan, fired: Int[Array, ""]
) -> Motion:
    """The motion after the end of a step by these `equations`: after an event, unless `fired` is -1, and after a tick
    of the controller."""
    if not (problem.events or problem.equations.field.controller.ticks):
        return motion
    return apply_with_variation(
        lambda motion: _changed_by_event_and_tick(problem, equations, motion, span, fired), motion
    )


def _changed_by_event_and_tick(problem, equations, motion, span, fired):
    if problem.events:
        instant, y = jax.lax.cond(
            unvmap_any(fired >= 0),
            lambda: _after_event(problem, equations, motion, span, fired),
            lambda: (motion.instant, motion.y),
        )
        motion = dataclasses.replace(motion, instant=instant, y=y, jumped=motion.jumped | (fired >= 0))
    controller = problem.equations.field.controller
    if not controller.ticks:
        return motion
    t, y = problem.equations.clock(motion.instant.t), motion.y
    old = controller_memory(y)
    due = ~(motion.instant.until(problem.equations.direction * controller.next_tick(old)) > 0)
    new = jax.lax.cond(unvmap_any(due), lambda: updated(controller, t, y.q, y.v, old), lambda: old)
    # In a batch another lane may be due, and this one may be at its tick but for the remainder of its time.
    y = dataclasses.replace(y, parts=y.parts | {ControllerMemory.part: where(due, new, old)})
    return dataclasses.replace(motion, y=y, jumped=motion.jumped | due)


def _after_event(problem, equations, motion, span, fired):
    """Time and state after an event, where there is one.

    The step ended at the event up to the error of dense output. A Newton step removes the height of the condition that
    remains; its derivative is that of the implicit function theorem. If it were longer than the step itself, as after
    a step without length, the height is rounding, and the Newton step has its derivative but no length. The state
    follows by the midpoint rule: with Euler's, the error of derivatives of velocities would be the length of the Newton
    step times the stiffness.
    """
    y, clock = motion.y, problem.equations.clock
    which, entry = (jnp.asarray(column, fired.dtype)[fired] for column in event_table(problem.events))

    def moved(rate, late):
        return displaced(
            equations.field.model, incremented(y, without_configuration(rate), late), late * equations.direction * y.v
        )

    def late_for(number, event, rate):
        this = (fired >= 0) & (which == number)

        def height(t, y):
            return event.condition(clock(t), y)[entry]

        remaining, slope = jax.jvp(height, (motion.instant.t, y), (jnp.ones_like(motion.instant.t), rate))
        # In a batch all lanes compute this, and an end of a range may be at infinity.
        return -jnp.where(this, remaining, 0) / jnp.where(this & (slope != 0), slope, 1)

    def evaluated(known, half):
        rate, late = known
        instant = motion.instant.after(half * late)
        rate = equations.prod(equations.field(clock(instant.t), moved(rate, half * late)), equations.direction)
        first = jax.lax.switch(which, [lambda n=n, e=e: late_for(n, e, rate) for n, e in enumerate(problem.events)])
        first = first - jax.lax.stop_gradient(jnp.where(jnp.abs(first) <= span.length, 0, first))
        return (rate, jnp.where(half == 0, first, late)), None

    # At the end of the step, and in the middle of the Newton step: one program.
    unknown = jax.tree.map(jnp.zeros_like, y), jnp.zeros_like(span.length)
    halves = jnp.array([0, 0.5], span.length.dtype)
    (rate, late), _ = jax.lax.scan(evaluated, unknown, halves)
    instant, before = motion.instant.after(late), moved(rate, late)

    def unchanged_or_reset(event):
        return before if event.reset is None else _reset(problem, event, entry, instant.t, before)

    after = jax.lax.switch(which, [lambda e=e: unchanged_or_reset(e) for e in problem.events])
    return where(fired >= 0, (instant, after), (motion.instant, y))


def _reset(problem, event, entry, t, y):
    after = event.reset(problem.equations.clock(t), y, entry)
    shapes = [jax.tree.map(jnp.shape, state) for state in (y, after)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"reset: expected a state like the one that it is given, {shapes[0]}, got {shapes[1]}")
    model = problem.equations.field.model
    after = jax.tree.map(lambda new, old: jnp.asarray(new).astype(old.dtype), after, y)
    after, *_ = problem.equations.projected(t, eqx.tree_at(lambda y: y.q, after, model.normalize(after.q)))
    owners = [owner for owner in problem.equations.field.owners if owner.part in y.parts]
    return State(after.q, after.v, {owner.part: owner.after_event(model, y, after) for owner in owners})


class _Verdict(NamedTuple):
    """Answer of the step controller to a step.

    Attributes:
        keep: Whether to keep the step.
        plan: Span of the next step.
        first_force_time: First time at which forces are evaluated in the next step [s]; NaN where they do not jump.
        controller_state: Memory of the step controller.
        result: Its result.
    """

    keep: Any
    plan: Any
    first_force_time: Any
    controller_state: Any
    result: Any


def _verdict(problem, equations, run, trial):
    """Ask the step controller about a step."""
    span, motion, error = trial.span, trial.motion, trial.error
    order = order_of(motion.solver_state)
    # Solvers without an order need step controllers that do not use one.
    order: Any = problem.solver.error_order(problem.equations) if order is None else order
    y1 = motion.y
    if error is not None:
        # A step deep into a contact may end in NaN, where a shorter one does not.
        finite = _finite(y1) & _finite(error) & ~equations.field.overshot(run.motion.y, y1)
        y1 = _scale_of_error(problem, run.motion.y, where(finite, y1, run.motion.y))
        error = jax.tree.map(lambda error: jnp.where(finite, error, jnp.inf), error)
    start, end = run.motion.instant, motion.instant
    if _chooses_lengths(problem):
        start, end = Instant.at(jnp.zeros_like(span.length)), Instant.at(span.length)
    keep, begin, target, jumped, controller_state, result = problem.stepsize_controller.adapt_step_size(
        start.t, end.t, run.motion.y, y1, None, error, order, run.controller_state
    )
    keep = jnp.asarray(keep)
    plan = _span_to_target(problem, where(keep, end, start), jnp.asarray(target, span.length.dtype))
    plan = where(keep, plan, _shortened(problem, run, span, plan))
    # Step controllers that know jumps end a step just before them, and begin the next step just beyond.
    first_force_time = jnp.where(jumped | (keep & (begin > end.t)), begin, jnp.nan)
    return _Verdict(keep, plan, first_force_time, controller_state, result)


def _scale_of_error(problem, y0, y1):
    """The end of a step as the scale of its error, with limited velocities. A body that goes too deep into stiff shapes
    is thrown out fast, and its speed would excuse the error at loose relative tolerances."""
    if not problem.has_contact:
        return y1
    before, after = (jnp.linalg.norm(jax.lax.stop_gradient(y.v)) for y in (y0, y1))
    share = jnp.minimum(1, MOST_SPEEDUP * before / jnp.where(after > 0, after, 1))
    return eqx.tree_at(lambda y: y.v, y1, share * y1.v)


def _shortened(problem, run, span, plan):
    """The plan after a failure, shortened by the number of failures in a row."""
    least = getattr(problem.stepsize_controller, "factormin", 0)
    return _capped(
        problem, plan, span.length * jnp.maximum(LEAST_SHORTENING ** run.failures.astype(span.length.dtype), least)
    )


def _capped(problem, span, longest):
    """Cap the length of a step at `longest`, but not below the `dtmin` of the step controller. Steps of controllers
    other than PID grow slowly and are not capped."""
    controller = problem.stepsize_controller
    if not isinstance(controller, diffrax.PIDController):
        return span
    if controller.dtmin is not None:
        longest = jnp.maximum(longest, controller.dtmin)
    return where(longest < span.length, StepSpan.of_length(longest), span)


def _chooses_lengths(problem):
    """Tell whether the step controller chooses lengths of steps, not times."""
    return isinstance(problem.stepsize_controller, LENGTH_CONTROLLERS)


def _span_to_target(problem, start, target):
    """Span of a step from `start` to the target of the step controller."""
    length = start.until(target)
    return StepSpan.of_length(length) if _chooses_lengths(problem) else StepSpan(length, target)


def _crossing(problem, run, wanted, taken_step):
    """The first event within a step, if it is `wanted`."""
    if not problem.events:
        return Crossing(jnp.full_like(run.fired, -1), taken_step.length, jnp.array(False), None)

    def state_at(elapsed):
        instant = taken_step.start.after(elapsed)
        return problem.equations.clock(instant.t), _state_within(problem.solver, taken_step, elapsed)

    def rate(q, v):
        return problem.equations.direction * problem.equations.field.model.rate(q, v)

    latest = jnp.maximum(jnp.abs(taken_step.start.t), jnp.abs(taken_step.end.t))
    resolution, length = _resolution(taken_step.length) * latest, taken_step.length
    return first_crossing(problem.events, state_at, rate, length, resolution, run.fired, run.event_state, wanted)


def _steps_are_fixed(problem):
    """Tell whether the step controller plans steps without regard to their errors."""
    return not isinstance(problem.stepsize_controller, diffrax.AbstractAdaptiveStepSizeController)


def _next_plan(problem, run, trial, verdict, decision, planned):
    """Span of the next step: as the step controller wants, or the rest of the plan if it was cut short."""
    keep, length = decision.keep, trial.span.length
    wanted = where(decision.near_singular, StepSpan.of_length(BEFORE_SINGULAR * length), verdict.plan)
    left = StepSpan(planned.length - jnp.where(keep, length, 0), planned.end_time)
    remaining = where(left.length > _smallest_step(problem, _resolution(length)), left, StepSpan.of_length(length))
    cut = keep & (length < planned.length)
    plan = where(cut & (_steps_are_fixed(problem) | (left.length > wanted.length)), left, wanted)
    plan = where(decision.crossing.hidden, StepSpan.of_length(length * SAMPLE_PLACES[0]), plan)
    plan = where(decision.crossing.found, trial.span, plan)
    return jax.lax.stop_gradient(where(decision.to_event, remaining, plan))


def _terminates(problem, fired):
    """Tell whether an event happened that ends the simulation."""
    if not problem.events:
        return jnp.array(False)
    ends = jnp.array([event.terminate for event in problem.events])[event_table(problem.events)[0]]
    return (fired >= 0) & ends[fired]


class TakenStep(NamedTuple):
    """A step that was taken.

    Attributes:
        start: Its start.
        length: Its length [s].
        end: Its end.
        y1: State at its end.
        dense: Data of dense output.
    """

    start: Instant
    length: Scalar
    end: Instant
    y1: State
    dense: PyTree


def interpolated(problem: Problem, taken_step: TakenStep, elapsed: Scalar) -> State:
    """The state at a time since the start of a step [s]; at its end exactly the state at the end of the step."""
    return _state_at(problem.solver, taken_step, elapsed) if problem.rows_within_steps else taken_step.y1


def forces_within(problem: Problem, taken_step: TakenStep, elapsed: Scalar) -> PointForces:
    """Contact forces at a time since the start of a step [s], of a solver that reports them."""
    return _dense_output(problem.solver, taken_step).forces(elapsed)


def _state_within(solver, taken_step, elapsed):
    """The state at a time since the start of a step [s]."""
    return where(elapsed < taken_step.length, _dense_output(solver, taken_step).evaluate(elapsed), taken_step.y1)


# If the end of a step moves, a row at the end may stay at its time, and so come to lie within the step.
_state_at = eqx.filter_custom_jvp(_state_within)


@_state_at.def_jvp
def _state_at_jvp(primals, tangents):
    moving, fixed = moving_and_fixed(primals, tangents)

    def state(moving):
        solver, taken_step, elapsed = eqx.combine(moving, fixed)
        dense = _dense_output(solver, taken_step)
        inside, end = dense.evaluate(elapsed), dense.evaluate(taken_step.length)
        # A memory may have leaves that are no numbers.
        late = jax.tree.map(lambda y, a, b: y + (a - b) if eqx.is_inexact_array(y) else y, taken_step.y1, inside, end)
        return where(elapsed < taken_step.length, inside, late)

    return _state_at(*primals), eqx.filter_jvp(state, (moving,), (tangents,))[1]


def _dense_output(solver, taken_step) -> Any:
    return solver.interpolation_cls(t0=jnp.zeros_like(taken_step.length), t1=taken_step.length, **taken_step.dense)


def forces_like(problem: Problem) -> PointForces | None:
    """Shapes of contact forces in a row; None for solvers that do not report them."""
    of_solver = getattr(problem.solver, "forces_like", None)
    return of_solver(problem.equations, problem.y0) if of_solver else None


def _cut_to_next_stop(problem, run, planned):
    """Span of the next step: as planned, or to an earlier event, tick, jump or end. A remainder that is too short for a
    step is joined to this one."""
    # Chosen by `where`: `minimum` takes one half of each derivative where two times are equal.
    controller, stop = problem.equations.field.controller, problem.t1
    if len(problem.jump_times):
        ahead = (run.motion.instant.until(problem.jump_times) > 0) & (problem.jump_times < stop)
        first = jnp.argmin(jnp.where(ahead, problem.jump_times, jnp.inf))
        stop = jnp.where(ahead[first], problem.jump_times[first], stop)
    if controller.ticks:
        tick = controller.next_tick(controller_memory(run.motion.y))
        tick = jax.lax.stop_gradient(problem.equations.direction * tick)
        stop = jnp.where(tick < stop, tick, stop)
    left = run.motion.instant.until(stop)
    joined = jnp.minimum(_smallest_step(problem, _rounding(stop)), SHORTEST_REMAINDER * planned.length)
    span = where(planned.length < left - joined, planned, StepSpan(left, stop))
    return where(run.pending_event.found, StepSpan.of_length(run.pending_event.elapsed), span)


def _rounding(t):
    """Resolution of times by their type, as a share of the time."""
    return float(jnp.finfo(t.dtype).eps)


def _resolution(t):
    """Resolution of instants, as a share of the time."""
    return max(_rounding(t) ** DIGITS, float(jnp.finfo(jnp.float64).eps))


def _smallest_step(problem, share):
    """The smallest step that is told from none, if times are known to a `share` of them."""
    t0, t1 = jax.lax.stop_gradient((problem.t0, problem.t1))
    return SMALLEST_STEP * share * jnp.maximum(jnp.abs(t0), jnp.abs(t1))


def _smallest_step_at(problem, t):
    """The smallest step at a time, as the step controller knows it: a long simulation may begin with short steps."""
    share = _resolution(t) if _chooses_lengths(problem) else _rounding(t)
    return jnp.maximum(
        SMALLEST_STEP * share * jax.lax.stop_gradient(jnp.abs(t)), share * _smallest_step(problem, share)
    )


def _finite(y):
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(y)]))


def _failed(result):
    return ~jnp.asarray(result == diffrax.RESULTS.successful)


def _first_rows(problem, work):
    """Rows at the start, in a buffer for all rows."""
    at_start = jnp.isfinite(problem.t1) & (problem.row_times <= problem.t0)
    written = jnp.sum(at_start, dtype=jnp.int32)
    times = jnp.pad(problem.row_times, (0, problem.rows - len(problem.row_times)))
    here = jnp.arange(problem.rows, dtype=written.dtype) < written

    def rows(y):
        return jnp.where(here.reshape(-1, *[1] * y.ndim), y[None], jnp.full((), jnp.nan, y.dtype))

    none = jnp.zeros(problem.rows, jnp.int32)
    tries, evaluations, implicit = (
        none if problem.steps_per_row and known else None for known in (True, work is not None, work is not None)
    )
    unknown = jax.tree.map(lambda x: jnp.full((problem.rows, *x.shape), jnp.nan, x.dtype), forces_like(problem))
    return SavedRows(
        ts=jnp.where(here, times, jnp.nan),
        ys=jax.tree.map(rows, problem.y0),
        forces=unknown,
        written=written,
        due=written,
        tries=tries,
        evaluations=evaluations,
        implicit=implicit,
    )


def _with_rows(problem, run, trial, keep, ended, accepted, rejected, work):
    """The rows, with those within an accepted step."""
    rows, taken_step = run.rows, trial.taken_step(run.motion.instant)
    keep = keep & ~_has_no_length(problem, trial.span)
    evaluations, implicit = (None, None) if work is None else (work.evaluations, work.implicit)
    counts = {"tries": accepted + rejected, "evaluations": evaluations, "implicit": implicit}

    def forces_at(elapsed):
        return None if rows.forces is None else forces_within(problem, taken_step, elapsed)

    def due(rows):
        t = problem.row_times.at[rows.due].get(mode="fill", fill_value=jnp.nan)
        return keep & (taken_step.start.until(t) <= taken_step.length)

    def save(rows):
        now = due(rows)
        t = problem.row_times.at[rows.due].get(mode="fill", fill_value=0)
        elapsed = taken_step.start.until(t)
        rows = _appended(rows, now, t, interpolated(problem, taken_step, elapsed), forces_at(elapsed), **counts)
        return eqx.tree_at(lambda rows: rows.due, rows, rows.due + _as_count(now))

    if len(problem.row_times):
        # With one condition for each lane, a batch would select among whole buffers after every row.
        rows = jax.lax.while_loop(lambda rows: unvmap_any(due(rows)), save, rows)
    if not problem.steps_per_row:
        return rows
    wanted = problem.saves_row(accepted, ended)
    return _appended(rows, keep & wanted, taken_step.end.t, taken_step.y1, forces_at(taken_step.length), **counts)


def _appended(rows, now, t, y, forces, tries, evaluations, implicit):
    where = jnp.where(now, rows.written, len(rows.ts))

    def put(all, x):
        return all.at[where].set(x, mode="drop")

    known = (rows.tries, tries), (rows.evaluations, evaluations), (rows.implicit, implicit)
    counts = (None if all is None else put(all, x) for all, x in known)
    ts, ys, forces = jax.tree.map(put, (rows.ts, rows.ys, rows.forces), (t, y, forces))
    return SavedRows(ts, ys, forces, rows.written + _as_count(now), rows.due, *counts)


def _as_count(condition):
    return jnp.where(condition, 1, 0)
