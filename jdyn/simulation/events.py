"""Events: instants at which a simulation's state jumps, or at which it ends."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import where
from jdyn.simulation.state import State

# Samples of a step, as fractions of it, where conditions are evaluated. The first one shows on which side a motion
# leaves an event that has just happened.
SAMPLES_PER_STEP = 8
SAMPLE_PLACES = (1 / 1024, *(k / SAMPLES_PER_STEP for k in range(1, SAMPLES_PER_STEP + 1)))

# Conditions are at zero as far as so many roundings of coordinates tell, and fall as far as those of speeds do.
ROUNDINGS = 64


class StepLimitingCondition(eqx.Module):
    """Condition of events that limits the length of steps so that none of its events is missed within one."""

    @abc.abstractmethod
    def __call__(self, t: Scalar, y: State) -> Float[Array, "*entries"]:
        """Evaluate the condition of an `Event`."""

    @abc.abstractmethod
    def longest_step(self, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]) -> Scalar:
        """Longest step from a state with the acceleration a [s]. Conditions are evaluated at `SAMPLES_PER_STEP` evenly
        spaced samples of it."""


class Event(eqx.Module):
    """An instant at which a condition falls through zero: the state is reset, and the simulation goes on or ends.

    ```
    bounce = jdyn.Event(lambda t, y: y.q[0], reset=lambda t, y: dataclasses.replace(y, v=-0.8 * y.v))
    ```

    The instant is located to rounding, on the dense output and then by a step that ends there. It is differentiable:
    the instant by the implicit function theorem, the state by the saltation matrix that follows. An excursion through
    zero and back in less than an eighth of a step may be missed. A condition that is NaN neither falls nor has been
    above zero.

    Of events at one instant each happens, whatever the order of the list: first those that fell there, one after
    another in the order of the list, and then, from its start again, those that are at zero and fall after these
    resets, as where a ball hits the first of a row. What ends the simulation comes last. A simulation that starts where
    a condition is at zero and falls begins with that event; one that is below has fallen before. What an event's own
    reset leaves falling happens once, and of entries of one condition those do not happen that the reset of another has
    turned. Events that make each other happen until there are `max_events` end the simulation with the code
    `Result.endless_events`. All this is up to 64 roundings of coordinates and speeds, by the slopes that conditions
    have at the start. Derivatives are those of the order in which events happened.

    >>> lowest = jdyn.Event(lambda t, y: y.q[0], terminate=True)
    >>> motion = jdyn.simulate(jdyn.load("pendulum"), jnp.array([0.5]), jnp.zeros(1), 5.0, events=[lowest])
    >>> print(f"{motion.events.ts[0]:.3f}", jdyn.Result(int(motion.result)).name)
    0.416 event

    Attributes:
        condition: `condition(t, y)`, a number, or an array of shape (entries,), each of which may fall through zero;
            `y.q`, `y.v` and `y.parts` are the state.
        reset: `reset(t, y)`, or `reset(t, y, entry)` where the condition is an array: the state after the event. It
            does not change if left out.
        terminate: Whether the simulation ends there, with the code `Result.event`.
        direction: Whether the condition has to fall or to rise through zero.
    """

    condition: Callable[[Scalar, State], Float[Array, "*entries"]]
    reset: Callable[..., State] | None = None
    terminate: bool = eqx.field(default=False, static=True)
    direction: Literal["falling", "rising"] = eqx.field(default="falling", static=True)

    def __check_init__(self):
        if self.direction not in ("falling", "rising"):
            raise ValueError(f"direction: expected 'falling' or 'rising', got {self.direction!r}")
        if self.reset is None and not self.terminate:
            raise ValueError("reset: expected a function, since an event that does not end the simulation changes it")


class WatchedEvent(eqx.Module):
    """An event inside the loop over steps. Values that its functions close over are part of it, since loops may not
    close over values that are differentiated or batched.

    Attributes:
        condition: An array of shape (entries,), with the sign that makes it fall.
        reset: The state after the event of an entry; None if it does not change.
        terminate: Whether the simulation ends there.
        entries: How many.
        longest_step: Longest step from a configuration, with a velocity and an acceleration [s]; None if that is not
            known.
    """

    condition: Callable[[Scalar, State], Float[Array, " entries"]]
    reset: Callable[[Scalar, State, Int[Array, ""]], State] | None
    terminate: bool = eqx.field(static=True)
    entries: int = eqx.field(static=True)
    longest_step: Callable[[Array, Array, Array], Scalar] | None


def watched(event: Event, t: Scalar, y: State) -> WatchedEvent:
    """The event for the loop over steps.

    Raises:
        ValueError: if the condition is neither a number nor an array of one axis.
    """
    shape = jnp.shape(eqx.filter_eval_shape(event.condition, t, y))
    if len(shape) > 1:
        raise ValueError(f"condition: expected a number or an array of shape (entries,), got shape {shape}")
    if shape == (0,):
        raise ValueError("condition: expected at least one entry, got an empty array")
    sign = 1 if event.direction == "falling" else -1

    def condition(t, y):
        return sign * jnp.asarray(event.condition(t, y)).astype(y.v.dtype).reshape(-1)

    def reset(t, y, entry):
        # `Event` has checked that there is one where it is used.
        return event.reset(t, y, entry) if shape else event.reset(t, y)  # type: ignore[misc]

    limits_steps = isinstance(event.condition, StepLimitingCondition)
    return WatchedEvent(
        eqx.filter_closure_convert(condition, t, y),
        None if event.reset is None else eqx.filter_closure_convert(reset, t, y, jnp.zeros((), jnp.int32)),
        event.terminate,
        shape[0] if shape else 1,
        eqx.filter_closure_convert(event.condition.longest_step, y.q, y.v, y.v) if limits_steps else None,
    )


def event_table(events: tuple[WatchedEvent, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Table of events and their entries: a row for everything that can happen."""
    entries = [event.entries for event in events]
    return np.repeat(np.arange(len(entries)), entries), np.concatenate([np.arange(n) for n in entries] or [[]])


class EventState(eqx.Module):
    """State of all events at the instant that a simulation has reached. Rows are those of `event_table`.

    Attributes:
        just_begun: Whether the simulation starts here or an event has happened here, and no step has led away yet.
        due: Rows that fell here and have yet to happen.
        happened: Rows that have happened here.
        spent: Rows that have happened here and have gone on falling ever since: these do not happen again.
        count: Number of events that have happened here.
        largest_speed: The largest speed here so far. Rates of conditions have its rounding.
        above_zero: Rows that have been above zero since they fell last, by more than rounding.
        rounding: Change of rows by `ROUNDINGS` roundings of coordinates of 1 rad or 1 m, as the start tells; and change
            of their rates by as many roundings of speeds.
    """

    just_begun: Bool[Array, ""]
    due: Bool[Array, " rows"]
    happened: Bool[Array, " rows"]
    spent: Bool[Array, " rows"]
    count: Int[Array, ""]
    largest_speed: Scalar
    above_zero: Bool[Array, " rows"]
    rounding: Float[Array, " rows"]

    @staticmethod
    def start(
        events: tuple[WatchedEvent, ...], t: Scalar, y: State, rate: Callable[[Array, Array], Array]
    ) -> "EventState":
        """State at the start of a simulation, whose configurations change with velocities at this `rate`."""
        rounding = _rounding(events, t, y, rate)
        none, zero = jnp.zeros(rounding.shape, bool), jnp.zeros((), y.v.dtype)
        return EventState(jnp.array(True), none, none, none, jnp.zeros((), jnp.int32), zero, none, rounding)

    def at_step_end(self, above_zero: Bool[Array, " rows"]) -> "EventState":
        """State at the end of a step, where nothing has happened."""
        nothing = jax.tree.map(jnp.zeros_like, self)
        return dataclasses.replace(nothing, above_zero=above_zero, rounding=self.rounding)

    def after_event(self, which: Int[Array, ""]) -> "EventState":
        """State at the same instant, after an event."""
        one = jnp.arange(len(self.due), dtype=which.dtype) == which
        return dataclasses.replace(
            self, just_begun=jnp.array(True), due=self.due & ~one, happened=self.happened | one, spent=self.spent | one,
            count=self.count + 1,
        )  # fmt: skip


class Crossing(eqx.Module):
    """The first event within a step.

    Attributes:
        which: Its row in `event_table`; -1 where there is none.
        elapsed: Time from the start of the step to the event [s].
        hidden: Whether an event that has just happened may happen again before the first sample of the step.
        event_state: State of events at the end of a step that ends there; None without events.
    """

    which: Int[Array, ""]
    elapsed: Scalar
    hidden: Bool[Array, ""]
    event_state: EventState | None

    @property
    def found(self) -> Bool[Array, ""]:
        """Tell whether there is an event."""
        return self.which >= 0


def first_crossing(
    events: tuple[WatchedEvent, ...],
    state_at: Callable[[Scalar], tuple[Scalar, State]],
    rate: Callable[[Array, Array], Array],
    length: Scalar,
    resolution: Scalar,
    fired: Int[Array, ""],
    event_state: EventState,
    wanted: Bool[Array, ""],
) -> Crossing:
    """The first event within a step, if it is `wanted`.

    Args:
        events: Events to look for.
        state_at: Time and state by dense output, as functions of the time elapsed since the start of the step [s].
        rate: Rate of a configuration at a velocity.
        length: Length of the step [s].
        resolution: Accuracy of instants [s].
        fired: Event that has just happened where the step begins; -1 for none.
        event_state: State of events where the step begins.
        wanted: Whether to look for one.
    """

    def heights(t, y):
        return jnp.concatenate([event.condition(t, y) for event in events])

    samples = jnp.array([0.0, *SAMPLE_PLACES], length.dtype) * length
    sampled = jax.vmap(lambda elapsed: heights(*state_at(elapsed)))(samples)
    conditions = _condition_state(heights, state_at, rate, wanted & event_state.just_begun)
    rounding = event_state.rounding * jnp.max(jnp.abs(state_at(samples[0])[1].q), initial=1)
    state_at_start = _with_due_events(events, event_state, conditions, rounding)
    at_start = wanted & event_state.just_begun & jnp.any(state_at_start.due)
    # The condition of an event that has just happened is zero, on either side by rounding. If it rises, as for a ball
    # that leaves the floor, it must be seen above zero before it falls again; if it rests, by more than rounding.
    rises = conditions.rates > state_at_start.rounding * state_at_start.largest_speed
    least = jnp.where(event_state.happened & rises, 0, rounding)
    above = [~event_state.happened & ((sampled[0] > least) | (event_state.above_zero & (sampled[0] > 0)))]
    for height in sampled[1:]:
        above.append((height > least) | (above[-1] & (height > 0)))
    above = jnp.stack(above)
    falls = above[:-1] & (sampled[1:] <= 0)
    rose = (conditions.rates > 0) & (sampled[0] + conditions.rates * samples[1] > 0)
    hidden = wanted & ~at_start & jnp.any(event_state.happened & rose & (sampled[1] <= 0))
    interval, later = jnp.argmax(jnp.any(falls, axis=1)), wanted & ~at_start & ~hidden & jnp.any(falls)
    falling = falls[interval]

    def lowest(elapsed):
        return jnp.min(jnp.where(falling, heights(*state_at(elapsed)), jnp.inf))

    start, end = _root(lowest, samples[interval], samples[interval + 1], resolution, later)

    def heights_and_speed(elapsed):
        t, y = state_at(elapsed)
        return heights(t, y), jnp.max(jnp.abs(y.v), initial=0)

    heights_at_root, slopes, speed = jax.jvp(heights_and_speed, (start,), (jnp.ones_like(start),), has_aux=True)
    # Conditions that fall between the same two instants that can be told from each other fall at one instant.
    first = heights_at_root == jnp.min(jnp.where(falling, heights_at_root, jnp.inf))
    together = falling & (first | (heights_at_root + (end - start) * slopes <= rounding))
    state_at_root = dataclasses.replace(state_at_start.at_step_end(above[interval]), due=together, largest_speed=speed)
    state, last = where(at_start, (state_at_start, fired), (state_at_root, jnp.full_like(fired, -1)))
    which = jnp.where(at_start | later, _next_event(events, state.due, last), -1)
    elapsed = jax.lax.stop_gradient(jnp.where(at_start, 0, start))
    state_at_end = where(which >= 0, state.after_event(which), state_at_start.at_step_end(above[-1]))
    return Crossing(which, elapsed, hidden, state_at_end)


class _ConditionState(NamedTuple):
    """State of conditions.

    Attributes:
        heights: Their values.
        rates: Their rates of change.
        speed: The largest speed.
    """

    heights: Float[Array, " rows"]
    rates: Float[Array, " rows"]
    speed: Scalar


def _condition_state(heights, state_at, rate, wanted) -> _ConditionState:
    """Find the state of conditions at the start of a step, if that is `wanted`."""

    def found(elapsed):
        (t, y), (dt, dy) = jax.jvp(state_at, (elapsed,), (jnp.ones_like(elapsed),))
        # Dense output need not begin with exactly the velocity at the start.
        dy = eqx.tree_at(lambda dy: dy.q, dy, rate(y.q, y.v))
        values, rates = jax.jvp(heights, (t, y), (dt, dy))
        return _ConditionState(values, rates, jnp.max(jnp.abs(y.v), initial=0))

    start = jnp.zeros((), state_at(0)[0].dtype)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(found, start))
    return jax.lax.cond(unvmap_any(wanted), lambda: found(start), lambda: nothing)


def _rounding(events, t, y, rate) -> Float[Array, " rows"]:
    """Rounding for `EventState.rounding`; none for conditions without a slope there."""

    def heights(q):
        return jnp.concatenate([event.condition(t, eqx.tree_at(lambda y: y.q, y, q)) for event in events])

    def change(direction):
        return jax.jvp(heights, (y.q,), (rate(y.q, direction),))[1]

    changes = jnp.max(jnp.abs(jax.vmap(change)(jnp.asarray(_directions(len(y.v)), y.v.dtype))), axis=0)
    return ROUNDINGS * jnp.finfo(y.v.dtype).eps * jnp.where(jnp.isfinite(changes), changes, 0)


def _directions(nv: int) -> np.ndarray:
    """Directions of velocities. No condition is level along all of them, unless it is so along all coordinates."""
    drawn = np.random.default_rng(0)
    return drawn.choice([-1, 1], (3, nv)) * drawn.uniform(0.5, 1.5, (3, nv))


def _with_due_events(events, event_state, conditions, rounding) -> EventState:
    """The state with the rows that are at zero up to `rounding`, and fall after what has happened there."""
    speed = jnp.maximum(event_state.largest_speed, conditions.speed)
    falling = conditions.rates < -event_state.rounding * speed
    spent = event_state.spent & falling
    again = (jnp.abs(conditions.heights) <= rounding) & falling & ~spent
    # Entries of a condition share their reset, as points of a body share its impact: one may have turned the others.
    splits = np.cumsum([event.entries for event in events])[:-1]
    touched = [jnp.broadcast_to(jnp.any(x), x.shape) for x in jnp.split(event_state.happened, splits)]
    due = again | (event_state.due & (falling | ~jnp.concatenate(touched)))
    return dataclasses.replace(event_state, due=due, spent=spent, largest_speed=speed)


def _next_event(events, due, last):
    """Find the event that happens next: in the order of the list, from its start again after its end. An event that
    ends the simulation comes last."""
    ends = np.array([event.terminate for event in events])[event_table(events)[0]]
    goes_on = due & ~ends
    turn = (jnp.arange(len(due), dtype=last.dtype) - last - 1) % len(due)
    return jnp.argmin(jnp.where(jnp.where(jnp.any(goes_on), goes_on, due), turn, len(due))).astype(last.dtype)


def _root(function, above, below, resolution, wanted):
    """Bracket a root of a function that is positive at `above` and not at `below`, to eight times the `resolution`.

    Source: Oliveira, Takahashi, An enhancement of the bisection method average performance preserving minmax
    optimality, ACM Transactions on Mathematical Software 2020 (the method ITP).
    """
    tolerance = 4 * jnp.maximum(resolution, jnp.finfo(above.dtype).eps * jnp.maximum(jnp.abs(above), jnp.abs(below)))
    width = jnp.maximum(below - above, jnp.finfo(above.dtype).tiny)
    most = jnp.ceil(jnp.log2(jnp.maximum(width / (2 * tolerance), 1))) + 1

    def searching(carry):
        _, a, b, *_ = carry
        return unvmap_any(wanted & (b - a > 2 * tolerance))

    def halve(carry):
        j, a, b, fa, fb = carry
        middle, radius = (a + b) / 2, tolerance * 2 ** (most - j) - (b - a) / 2
        secant = (fb * a - fa * b) / jnp.where(fb == fa, 1, fb - fa)
        sign = jnp.sign(middle - secant)
        shift = 0.2 / width * (b - a) ** 2
        moved = jnp.where(shift <= jnp.abs(middle - secant), secant + sign * shift, middle)
        x = jnp.where(jnp.abs(moved - middle) <= radius, moved, middle - sign * radius)
        x = jnp.clip(x, a, b)
        fx = function(x)
        over = fx > 0
        going = b - a > 2 * tolerance
        just_begun = jnp.where(over, x, a), jnp.where(over, b, x), jnp.where(over, fx, fa), jnp.where(over, fb, fx)
        return j + 1, *(jnp.where(going, n, o) for n, o in zip(just_begun, (a, b, fa, fb), strict=True))

    start = jnp.zeros_like(above), above, below, function(above), function(below)
    return jax.lax.while_loop(searching, halve, start)[1:3]


class EventLog(eqx.Module):
    """Events that have happened. Entries beyond `count` are NaN, and -1 in `which`.

    Attributes:
        ts: When [s].
        which: Row of the event in `event_table`.
        ys: State after it.
        count: How many.
    """

    ts: Float[Array, " events"]
    which: Int[Array, " events"]
    ys: State
    count: Int[Array, ""]

    @staticmethod
    def empty(room: int, t: Scalar, y: State) -> "EventLog":
        return EventLog(
            jnp.full(room, jnp.nan, t.dtype),
            jnp.full(room, -1, jnp.int32),
            jax.tree.map(lambda x: jnp.full((room, *x.shape), jnp.nan, x.dtype), y),
            jnp.zeros((), jnp.int32),
        )

    def with_event(self, which: Int[Array, ""], t: Scalar, y: State) -> "EventLog":
        """With one more, unless `which` is -1."""
        if not len(self.ts):
            return self
        where = jnp.where(which >= 0, self.count, len(self.ts))
        return EventLog(
            self.ts.at[where].set(t, mode="drop"),
            self.which.at[where].set(which, mode="drop"),
            jax.tree.map(lambda all, x: all.at[where].set(x, mode="drop"), self.ys, y),
            self.count + jnp.where(which >= 0, 1, 0),
        )
