"""State that is integrated, owners of its parts beside the motion, and time, in more digits than its type has; the
choice between two trees of arrays."""

import abc
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Scalar

from jdyn.control.controller import DynamicController
from jdyn.elements import Elements
from jdyn.model import Model
from jdyn.terminal.messages import short


class State(eqx.Module):
    """The state that is integrated.

    >>> state = jdyn.State(jnp.array([0.1]), jnp.array([-2.0]))
    >>> bounce = jdyn.Event(lambda t, y: y.q[0], reset=lambda t, y: jdyn.State(y.q, -0.8 * y.v, y.parts))
    >>> print(bounce.reset(0.0, state).v)
    [1.6]

    Attributes:
        q: Configuration.
        v: Velocity.
        parts: What is integrated beside the motion, by its owner: `"controller"`, what a controller with a memory
            remembers; `"elements"`, states of force elements, a tuple in their order; `"supplied"`, for a
            `jdyn.solvers.EnergyError`, energy that the mechanism received, at its start and by work [J]. Beside that,
            `"sensors"`, last values of each `jdyn.sensors.Sampled` and their times, which steps add to.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    parts: dict[str, PyTree[Array]] = eqx.field(default_factory=dict)


class Owner(eqx.Module):
    """Owner of a part of the state: gives the start of the part and its rate.

    `VectorField.owners` lists the owners of a motion. Parts that all motions of a system have are also in
    `System.state`; those that a solver needs it declares as its `traits`.

    Attributes:
        part: Name of the part in `State.parts`.
    """

    part: ClassVar[str]

    @abc.abstractmethod
    def start(self, model: Model, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> PyTree[Array] | None:
        """The part where a motion starts; None for an owner that needs none."""

    @abc.abstractmethod
    def rate(self, model: Model, t: Scalar, y: State, tau: Float[Array, " nv"]) -> PyTree[Array]:
        """Rate of the part, under all generalized forces on the coordinates."""

    def after_event(self, model: Model, before: State, after: State) -> PyTree[Array]:
        """The part after an event, which has left the state `after`."""
        return after.parts[self.part]


class ControllerMemory(Owner):
    """Memory of a controller."""

    part = "controller"

    controller: DynamicController

    def start(self, model, t, q, v):
        return self.controller.start(t, q, v)

    def rate(self, model, t, y, tau):
        return self.controller.rate(t, y.q, y.v, y.parts[self.part])


class ElementStates(Owner):
    """States that force elements have of their own, as a tuple in their order; None for elements without."""

    part = "elements"

    elements: Elements

    def start(self, model, t, q, v):
        return self.elements.start(model, t, q, v)

    def rate(self, model, t, y, tau):
        return self.elements.rate(model, t, y.q, y.v, y.parts[self.part])


def controller_memory(y: State) -> PyTree[Array]:
    """Memory of the controller in a state; None for a function of the state."""
    return y.parts.get(ControllerMemory.part)


def starting(
    owners: Iterable[Owner],
    model: Model,
    t: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    known: Mapping[str, PyTree[Array]],
) -> State:
    """A state with the parts of all owners: those that are known, and the others as they start.

    Raises:
        ValueError: if a known part is that of another owner.
    """
    started = {owner.part: owner.start(model, t, q, v) for owner in owners}
    started = {part: x for part, x in started.items() if x is not None}
    for part, x in known.items():
        kinds = [jax.tree.map(lambda x: (jnp.shape(x), jnp.result_type(x)), x) for x in (started.get(part), x)]
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"state: expected parts of this system, {short(part)} as {short(kinds[0])}, got {short(kinds[1])}; "
                "jdyn.System.state makes them"
            )
    return State(q, v, started | dict(known))


class Instant(eqx.Module):
    """The time t + remainder, of which t is the nearest number of the type.

    Single precision tells times about 100 s from each other by 8e-6 s, and where shapes touch a step may be shorter.

    Source: Knuth, The art of computer programming 2, section 4.2.2, for the sum of two numbers and what rounding takes
    from it.

    Attributes:
        t: [s].
        remainder: [s].
    """

    t: Scalar
    remainder: Scalar

    @classmethod
    def at(cls, t: Scalar) -> "Instant":
        return cls(t, jnp.zeros_like(t))

    def after(self, duration: Scalar) -> "Instant":
        """The instant a duration later [s]."""
        difference = self.remainder + duration
        t = self.t + difference
        added = t - self.t
        return Instant(t, (self.t - (t - added)) + (difference - added))

    def until(self, t: Scalar) -> Scalar:
        """Time from here to another one [s]."""
        return (t - self.t) - self.remainder


class Clock(eqx.Module):
    """Converts the time of solvers, in seconds from the start of a step whatever the direction of time, to time.

    Attributes:
        direction: 1, or -1 where time runs backwards.
        start: Time at which solvers begin to count, in the direction of time [s].
        between: The first and the last time that it returns, in the direction of time [s]; None for no limits. Times
            that are clipped keep their derivative.
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
