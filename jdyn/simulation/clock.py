"""Time in more digits than its type has."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Scalar


class Instant(eqx.Module):
    """The time t + rest, of which t is the nearest number of the type.

    Single precision tells times about 100 s from each other by 8e-6 s, and where shapes touch a step may be shorter.

    Source: Knuth, The art of computer programming 2, section 4.2.2, for the sum of two numbers and what rounding takes
    from it.

    Attributes:
        t: [s].
        rest: [s].
    """

    t: Scalar
    rest: Scalar

    @classmethod
    def at(cls, t: Scalar) -> "Instant":
        return cls(t, jnp.zeros_like(t))

    def after(self, duration: Scalar) -> "Instant":
        """The instant so much later."""
        late = self.rest + duration
        t = self.t + late
        added = t - self.t
        return Instant(t, (self.t - (t - added)) + (late - added))

    def until(self, t: Scalar) -> Scalar:
        """Time from here to another one [s]."""
        return (t - self.t) - self.rest


class Clock(eqx.Module):
    """Tells the time from what solvers count: seconds from the start of a step, whatever the direction of time.

    Attributes:
        direction: 1, or -1 where time runs backwards.
        start: When they begin to count, in the direction of time [s].
        between: The first and the last time that it tells, in the direction of time [s]; any if None. It moves with the
            time that it is asked for, there as well.
    """

    direction: Scalar | int = 1
    start: Scalar | float = 0.0
    between: tuple[Scalar, Scalar] | None = None

    def __call__(self, t: Any) -> Any:
        now = self.start + t
        if self.between is not None:
            now = now + jax.lax.stop_gradient(jnp.clip(now, *self.between) - now)
        return self.direction * now


def clock_of(terms: Any) -> Clock:
    """Clock of equations in a simulation; solvers of other terms count the time itself."""
    return getattr(terms, "clock", Clock())
