"""Events: instants at which a simulation's state jumps, or at which it ends."""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.simulation.vector_field import State

# Places within a step, as fractions of it, where conditions are evaluated. The first one shows on which side a motion
# leaves an event that has just happened.
PLACES = (1 / 1024, *(k / 8 for k in range(1, 9)))


class Event(eqx.Module):
    """An instant at which a condition falls through zero: the state is reset, and the simulation goes on or ends.

    ```
    bounce = jdyn.Event(lambda t, y: y.q[0], reset=lambda t, y: dataclasses.replace(y, v=-0.8 * y.v))
    ```

    The instant is located to rounding, on the dense output and then by a step that ends there. It is differentiable:
    the instant by the implicit function theorem, the state by the saltation matrix that follows. An excursion through
    zero and back in less than an eighth of a step may be missed, and a condition that starts at zero or below has not
    fallen. If several entries or events fall at once, each happens, one after another.

    >>> lowest = jdyn.Event(lambda t, y: y.q[0], terminate=True)
    >>> motion = jdyn.simulate(jdyn.load("pendulum"), jnp.array([0.5]), jnp.zeros(1), 5.0, events=[lowest])
    >>> print(f"{motion.events.ts[0]:.3f}", jdyn.Result(int(motion.result)).name)
    0.416 event

    Attributes:
        condition: `condition(t, y)`, a number, or an array of shape (entries,), each of which may fall through zero;
            `y.q`, `y.v` and `y.memory` are the state.
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
    """

    condition: Callable[[Scalar, State], Float[Array, " entries"]]
    reset: Callable[[Scalar, State, Int[Array, ""]], State] | None
    terminate: bool = eqx.field(static=True)
    entries: int = eqx.field(static=True)


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

    return Watch(
        eqx.filter_closure_convert(condition, t, y),
        None if event.reset is None else eqx.filter_closure_convert(reset, t, y, jnp.zeros((), jnp.int32)),
        event.terminate,
        shape[0] if shape else 1,
    )


def numbers(events: tuple[Watch, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Event and entry of everything that can happen; a row of this table identifies what happens."""
    entries = [event.entries for event in events]
    return np.repeat(np.arange(len(entries)), entries), np.concatenate([np.arange(n) for n in entries] or [[]])


class Crossing(eqx.Module):
    """The first event within a step.

    Attributes:
        which: Its row in the table `numbers`; -1 where there is none.
        after: How long after the start of the step it happens [s].
        hidden: Whether the event that has just happened may happen again before the first place that is evaluated.
        others: Rows of the table that fall at the same time or a little later.
    """

    which: Int[Array, ""]
    after: Scalar
    hidden: Bool[Array, ""]
    others: Bool[Array, " rows"]


def first_crossing(
    events: tuple[Watch, ...],
    at: Callable[[Scalar], tuple[Scalar, State]],
    length: Scalar,
    sharp: Scalar,
    fired: Int[Array, ""],
    pending: Bool[Array, " rows"],
    wanted: Bool[Array, ""],
) -> Crossing:
    """The first event within a step, if it is `wanted`.

    Args:
        events: What to look for.
        at: Time and state so long after the start of the step, by dense output.
        length: Of the step [s].
        sharp: How well instants are known [s].
        fired: Event that has just happened where the step begins; -1 for none.
        pending: Rows that were about to fall then, and may be at zero, on either side by rounding.
        wanted: Whether to look for one.
    """

    def heights(passed):
        t, y = at(passed)
        return jnp.concatenate([event.condition(t, y) for event in events])

    times = jnp.array([0.0, *PLACES], length.dtype) * length
    found = jax.vmap(heights)(times)
    # The condition of an event that has just happened is zero, on either side by rounding. If it rises, as for a ball
    # that leaves the floor, it must be seen above zero before it falls again.
    rows = jnp.arange(found.shape[1], dtype=fired.dtype)
    known = rows == fired
    _, slopes = jax.jvp(heights, (jnp.zeros_like(length),), (jnp.ones_like(length),))
    hidden = jnp.any(known & (slopes > 0) & (found[1] <= 0))
    above = jnp.where(pending, jnp.maximum(found[0], jnp.finfo(found.dtype).tiny), found[0])
    found = found.at[0].set(jnp.where(known, -1, above))
    falls = (found[:-1] > 0) & (found[1:] <= 0)
    interval = jnp.argmax(jnp.any(falls, axis=1))
    happens = wanted & jnp.any(falls) & ~hidden
    armed = falls[interval]

    def lowest(passed):
        return jnp.min(jnp.where(armed, heights(passed), jnp.inf))

    after = _root(lowest, times[interval], times[interval + 1], sharp, happens)
    which = jnp.argmin(jnp.where(armed, heights(after), jnp.inf)).astype(fired.dtype)
    others = happens & armed & (rows != which)
    return Crossing(jnp.where(happens, which, -1), after, wanted & hidden, others)


def _root(function, above, below, sharp, wanted):
    """Where a function that is positive at `above` and not at `below` falls through zero, from below, to four times
    what is `sharp`.

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
    return jax.lax.while_loop(searching, halve, start)[2]


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
