"""The state that is integrated, and owners of what it has beside the motion."""

import abc
from collections.abc import Iterable, Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Scalar

from jdyn.control.dynamic import DynamicController
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
            `jdyn.solvers.EnergyError`, energy that the mechanism received, at its start and by work [J].
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    parts: dict[str, PyTree[Array]] = eqx.field(default_factory=dict)


class Owner(eqx.Module):
    """Owner of a part of the state: says where the part starts, and at which rate it changes.

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
