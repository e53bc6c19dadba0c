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

from jdyn.simulation.state import State

# Places within a step, as fractions of it, where conditions are evaluated. The first one shows on which side a motion
# leaves an event that has just happened.
LOOKS = 8
PLACES = (1 / 1024, *(k / LOOKS for k in range(1, LOOKS + 1)))

# Conditions are at zero as far as so many roundings of coordinates tell, and fall as far as those of speeds do.
ROUNDINGS = 64


class Foretold(eqx.Module):
    """Base of conditions of events that say how long a step may be so that none of these is missed within it."""

    @abc.abstractmethod
    def __call__(self, t: Scalar, y: State) -> Float[Array, "*entries"]:
        """Evaluate the condition of an `Event`."""

    @abc.abstractmethod
    def longest_step(self, q: Float[Array, " nq"], v: Float[Array, " nv"], a: Float[Array, " nv"]) -> Scalar:
        """Longest step from a state, where v changes by about a [s]. Conditions are looked at at `LOOKS` places of it,
        evenly spaced."""


class Event(eqx.Module):
    """An instant at which a condition falls through zero: the state is reset, and the simulation goes on or ends.

    ```
    bounce = jdyn.Event(lambda t, y: y.q[0], reset=lambda t, y: dataclasses.replace(y, v=-0.8 * y.v))
    ```

    The instant is located to rounding, on the dense output and then by a step that ends there. It is differentiable:
    the instant by the implicit function theorem, the state by the saltation matrix that follows. An excursion through
    zero and back in less than an eighth of a step may be missed.

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


class Watch(eqx.Module):
    """An event inside the loop over steps. Values that its functions close over are part of it, since loops may not
    close over values that are differentiated or batched.

    Attributes:
        condition: An array of shape (entries,), with the sign that makes it fall.
        reset: The state after the event of an entry; None if it does not change.
        terminate: Whether the simulation ends there.
        entries: How many.
        longest_step: How long a step may be from a configuration, with a velocity and an acceleration; None if that is
            not known.
    """

    condition: Callable[[Scalar, State], Float[Array, " entries"]]
    reset: Callable[[Scalar, State, Int[Array, ""]], State] | None
    terminate: bool = eqx.field(static=True)
    entries: int = eqx.field(static=True)
    longest_step: Callable[[Array, Array, Array], Scalar] | None


def watch(event: Event, t: Scalar, y: State) -> Watch:
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

    foretold = isinstance(event.condition, Foretold)
    return Watch(
        eqx.filter_closure_convert(condition, t, y),
        None if event.reset is None else eqx.filter_closure_convert(reset, t, y, jnp.zeros((), jnp.int32)),
        event.terminate,
        shape[0] if shape else 1,
        eqx.filter_closure_convert(event.condition.longest_step, y.q, y.v, y.v) if foretold else None,
    )


def numbers(events: tuple[Watch, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Event and entry of everything that can happen; a row of this table identifies what happens."""
    entries = [event.entries for event in events]
    return np.repeat(np.arange(len(entries)), entries), np.concatenate([np.arange(n) for n in entries] or [[]])


class Moment(eqx.Module):
    """Events at the instant at which a simulation is. Rows are those of the table `numbers`.

    Attributes:
        new: Whether the state is that at the start or after an event, from which no step has led away yet.
        fell: Rows that fell there and have yet to happen.
        happened: Rows that have happened there.
        spent: Rows that have happened there and have gone on falling ever since: these do not happen again.
        count: How many events have happened there.
        speed: The largest speed so far, of which rates have roundings.
        above: Rows that have been above zero since they fell last, by more than rounding.
        rounding: How much rows change by `ROUNDINGS` roundings of coordinates of 1 rad or 1 m, as the start tells; and
            how much their rates do by those of speeds.
    """

    new: Bool[Array, ""]
    fell: Bool[Array, " rows"]
    happened: Bool[Array, " rows"]
    spent: Bool[Array, " rows"]
    count: Int[Array, ""]
    speed: Scalar
    above: Bool[Array, " rows"]
    rounding: Float[Array, " rows"]

    @staticmethod
    def start(events: tuple[Watch, ...], t: Scalar, y: State, rate: Callable[[Array, Array], Array]) -> "Moment":
        """Moment at which a simulation starts, whose configurations change with velocities at this `rate`."""
        rounding = _rounding(events, t, y, rate)
        none, zero = jnp.zeros(rounding.shape, bool), jnp.zeros((), y.v.dtype)
        return Moment(jnp.array(True), none, none, none, jnp.zeros((), jnp.int32), zero, none, rounding)

    def left(self, above: Bool[Array, " rows"]) -> "Moment":
        """Moment at the end of a step, where nothing has happened."""
        nothing = jax.tree.map(jnp.zeros_like, self)
        return dataclasses.replace(nothing, above=above, rounding=self.rounding)

    def after(self, which: Int[Array, ""]) -> "Moment":
        """The same after an event."""
        one = jnp.arange(len(self.fell), dtype=which.dtype) == which
        return dataclasses.replace(
            self, new=jnp.array(True), fell=self.fell & ~one, happened=self.happened | one, spent=self.spent | one,
            count=self.count + 1,
        )  # fmt: skip


class Crossing(eqx.Module):
    """The first event within a step.

    Attributes:
        which: Its row in the table `numbers`; -1 where there is none.
        after: How long after the start of the step it happens [s].
        hidden: Whether an event that has just happened may happen again before the first place that is evaluated.
        moment: The moment at the end of a step that ends there; None without events.
    """

    which: Int[Array, ""]
    after: Scalar
    hidden: Bool[Array, ""]
    moment: Moment | None


def first_crossing(
    events: tuple[Watch, ...],
    at: Callable[[Scalar], tuple[Scalar, State]],
    rate: Callable[[Array, Array], Array],
    length: Scalar,
    sharp: Scalar,
    fired: Int[Array, ""],
    moment: Moment,
    wanted: Bool[Array, ""],
) -> Crossing:
    """The first event within a step, if it is `wanted`.

    Args:
        events: What to look for.
        at: Time and state so long after the start of the step, by dense output.
        rate: How fast a configuration changes with a velocity.
        length: Of the step [s].
        sharp: How well instants are known [s].
        fired: Event that has just happened where the step begins; -1 for none.
        moment: That at which the step begins.
        wanted: Whether to look for one.
    """

    def heights(t, y):
        return jnp.concatenate([event.condition(t, y) for event in events])

    times = jnp.array([0.0, *PLACES], length.dtype) * length
    found = jax.vmap(lambda passed: heights(*at(passed)))(times)
    here = _level(heights, at, rate, wanted & moment.new)
    near = moment.rounding * jnp.max(jnp.abs(at(times[0])[1].q), initial=1)
    now = _fallen(events, moment, here, near)
    at_once = wanted & moment.new & jnp.any(now.fell)
    # The condition of an event that has just happened is zero, on either side by rounding. If it rises, as for a ball
    # that leaves the floor, it must be seen above zero before it falls again; if it rests, by more than rounding.
    least = jnp.where(moment.happened & (here.rates > now.rounding * now.speed), 0, near)
    above = [~moment.happened & ((found[0] > least) | (moment.above & (found[0] > 0)))]
    for height in found[1:]:
        above.append((height > least) | (above[-1] & (height > 0)))
    above = jnp.stack(above)
    falls = above[:-1] & (found[1:] <= 0)
    hidden = wanted & ~at_once & jnp.any(moment.happened & (here.rates > 0) & (found[1] <= 0))
    interval, later = jnp.argmax(jnp.any(falls, axis=1)), wanted & ~at_once & ~hidden & jnp.any(falls)
    armed = falls[interval]

    def lowest(passed):
        return jnp.min(jnp.where(armed, heights(*at(passed)), jnp.inf))

    start, end = _root(lowest, times[interval], times[interval + 1], sharp, later)

    def beside_speed(passed):
        t, y = at(passed)
        return heights(t, y), jnp.max(jnp.abs(y.v), initial=0)

    left, slopes, speed = jax.jvp(beside_speed, (start,), (jnp.ones_like(start),), has_aux=True)
    # What falls between the same two instants that can be told from each other, falls at one.
    first = left == jnp.min(jnp.where(armed, left, jnp.inf))
    together = armed & (first | (left + (end - start) * slopes <= near))
    then = dataclasses.replace(now.left(above[interval]), fell=together, speed=speed)
    fallen, last = _where(at_once, (now, fired), (then, jnp.full_like(fired, -1)))
    which = jnp.where(at_once | later, _next(events, fallen.fell, last), -1)
    after = jax.lax.stop_gradient(jnp.where(at_once, 0, start))
    return Crossing(which, after, hidden, _where(which >= 0, fallen.after(which), now.left(above[-1])))


class _Level(NamedTuple):
    """State of conditions.

    Attributes:
        heights: Their values.
        rates: How fast these change.
        speed: The largest one.
    """

    heights: Float[Array, " rows"]
    rates: Float[Array, " rows"]
    speed: Scalar


def _level(heights, at, rate, wanted) -> _Level:
    """Find the state of conditions at the start of a step, if that is `wanted`."""

    def level(passed):
        (t, y), (dt, dy) = jax.jvp(at, (passed,), (jnp.ones_like(passed),))
        # Dense output may not begin with the very velocity.
        dy = eqx.tree_at(lambda dy: dy.q, dy, rate(y.q, y.v))
        found, rates = jax.jvp(heights, (t, y), (dt, dy))
        return _Level(found, rates, jnp.max(jnp.abs(y.v), initial=0))

    start = jnp.zeros((), at(0)[0].dtype)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(level, start))
    return jax.lax.cond(unvmap_any(wanted), lambda: level(start), lambda: nothing)


def _rounding(events, t, y, rate) -> Float[Array, " rows"]:
    """Rounding for `Moment.rounding`; none for conditions without a slope there."""

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


def _fallen(events, moment, level, near) -> Moment:
    """The moment with what falls after what has happened there, of rows that are so `near` to zero."""
    speed = jnp.maximum(moment.speed, level.speed)
    falling = level.rates < -moment.rounding * speed
    spent = moment.spent & falling
    again = (jnp.abs(level.heights) <= near) & falling & ~spent
    # Entries of a condition share their reset, as points of a body share its impact: one may have turned the others.
    splits = np.cumsum([event.entries for event in events])[:-1]
    touched = [jnp.broadcast_to(jnp.any(x), x.shape) for x in jnp.split(moment.happened, splits)]
    fell = again | (moment.fell & (falling | ~jnp.concatenate(touched)))
    return dataclasses.replace(moment, fell=fell, spent=spent, speed=speed)


def _next(events, fell, last):
    """Find the event that happens next: in the order of the list, and from its start again, but what ends the
    simulation at last."""
    ends = np.array([event.terminate for event in events])[numbers(events)[0]]
    goes_on = fell & ~ends
    turn = (jnp.arange(len(fell), dtype=last.dtype) - last - 1) % len(fell)
    return jnp.argmin(jnp.where(jnp.where(jnp.any(goes_on), goes_on, fell), turn, len(fell))).astype(last.dtype)


def _where(condition, new, old):
    return jax.tree.map(lambda new, old: jnp.where(condition, new, old), new, old)


def _root(function, above, below, sharp, wanted):
    """Between where a function that is positive at `above` and not at `below` falls through zero, to eight times what
    is `sharp`.

    Source: Oliveira, Takahashi, An enhancement of the bisection method average performance preserving minmax
    optimality, ACM Transactions on Mathematical Software 2020 (the method ITP).
    """
    tolerance = 4 * jnp.maximum(sharp, jnp.finfo(above.dtype).eps * jnp.maximum(jnp.abs(above), jnp.abs(below)))
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
        new = jnp.where(over, x, a), jnp.where(over, b, x), jnp.where(over, fx, fa), jnp.where(over, fb, fx)
        return j + 1, *(jnp.where(going, n, o) for n, o in zip(new, (a, b, fa, fb), strict=True))

    start = jnp.zeros_like(above), above, below, function(above), function(below)
    return jax.lax.while_loop(searching, halve, start)[1:3]


class Log(eqx.Module):
    """Events that have happened. Entries beyond `count` are NaN, and -1 in `which`.

    Attributes:
        ts: When [s].
        which: Row of the event in the table `numbers`.
        ys: State after it.
        count: How many.
    """

    ts: Float[Array, " events"]
    which: Int[Array, " events"]
    ys: State
    count: Int[Array, ""]

    @staticmethod
    def empty(room: int, t: Scalar, y: State) -> "Log":
        return Log(
            jnp.full(room, jnp.nan, t.dtype),
            jnp.full(room, -1, jnp.int32),
            jax.tree.map(lambda x: jnp.full((room, *x.shape), jnp.nan, x.dtype), y),
            jnp.zeros((), jnp.int32),
        )

    def with_event(self, which: Int[Array, ""], t: Scalar, y: State) -> "Log":
        """With one more, unless `which` is -1."""
        if not len(self.ts):
            return self
        where = jnp.where(which >= 0, self.count, len(self.ts))
        return Log(
            self.ts.at[where].set(t, mode="drop"),
            self.which.at[where].set(which, mode="drop"),
            jax.tree.map(lambda all, x: all.at[where].set(x, mode="drop"), self.ys, y),
            self.count + jnp.where(which >= 0, 1, 0),
        )
