"""Base classes of controllers: functions of time and state, and those with a memory: integrals, samples, delays."""

import abc
import inspect
from collections.abc import Callable
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Scalar

from jdyn.array import with_fields
from jdyn.dynamics.force_slopes import differentiated_jacobians, differentiated_slopes, summed
from jdyn.dynamics.recursion.joint_frames import with_links
from jdyn.model import Model


class Controller(eqx.Module):
    """Generalized forces as a function of time and state; `a + b` applies both.

    `simulate` takes any callable of this signature. A controller that needs the mechanism has it as a field, and it may
    differ from the simulated one. Gains and targets are leaves, so that they can be swept and differentiated.

    >>> class Spring(jdyn.Controller):
    ...     stiffness: float
    ...
    ...     def __call__(self, t, q, v):
    ...         return -self.stiffness * q
    >>> print((Spring(2.0) + jdyn.control.Constant(jnp.ones(1)))(0.0, jnp.ones(1), jnp.zeros(1)))
    [-1.]
    """

    @abc.abstractmethod
    def __call__(self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """Generalized forces [N m or N] at time `t` [s] and state `(q, v)`."""

    def slopes(
        self, model: Model, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        """Slopes by which the force in each joint falls with its own coordinate and velocity [N m/rad or N/m, N m s/rad
        or N s/m].

        Solvers ask for it that are implicit in the forces of joints. What it leaves out is taken as it is in explicit
        methods, and costs no accuracy. By differentiation, unless a controller knows it.
        """
        return differentiated_slopes(lambda q, v: self(t, q, v), model, q, v)

    def with_links(self) -> Self:
        """The same for a loop in which it does not change: models of jdyn's own controllers, also of those that this
        one holds, know what their recursions would compute anew in every call."""
        return self._with_held(lambda held: held.with_links())

    def closed(self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Self:
        """The same with the values that its functions close over as leaves: loops may not close over values that are
        differentiated or batched."""
        return self._with_held(lambda held: held.closed(t, q, v))

    def _with_held(self, change: Callable[["Controller"], "Controller"]) -> Self:
        """The same with other controllers in the place of those that it holds."""

        def held(x):
            return isinstance(x, Controller) and x is not self

        return jax.tree.map(lambda x: change(x) if held(x) else x, self, is_leaf=held)

    def jacobians(
        self, model: Model, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, " nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
        """∂τ/∂t, ∂τ/∂q along the tangent space, as `model.integrate` walks it, and ∂τ/∂v.

        Solvers ask for them that are implicit in the whole motion, and take them to be exact: what they leave out costs
        accuracy. By differentiation, unless a controller knows them.
        """
        return differentiated_jacobians(self, model, t, q, v)

    def __add__(self, other: "Controller | Callable") -> "Controller":
        # A controller with a memory adds itself in its own way.
        return NotImplemented if hasattr(other, "start") else Sum((self, as_controller(other)))

    def __radd__(self, other: Callable) -> "Controller":
        return Sum((as_controller(other), self))


class Function(Controller):
    """A plain function of time and state as a controller.

    Attributes:
        function: `function(t, q, v) -> tau`.
    """

    function: Callable

    def __call__(self, t, q, v):
        return jnp.asarray(self.function(t, q, v))

    def closed(self, t, q, v):
        return Function(eqx.filter_closure_convert(self.function, t, q, v))


class ModelBased(Controller):
    """A controller that evaluates the dynamics of its model, as it is."""

    model: eqx.AbstractVar[Model]

    def with_links(self):
        return eqx.tree_at(lambda controller: controller.model, self, with_links(self.model))


class Sum(Controller):
    """The sum of the commands of its terms."""

    terms: tuple[Controller, ...]

    def __call__(self, t, q, v):
        first, *others = (term(t, q, v) for term in self.terms)
        return sum(others, start=first)

    def slopes(self, model, t, q, v):
        K, D = (sum(each) for each in zip(*(term.slopes(model, t, q, v) for term in self.terms), strict=True))
        return K, D

    def jacobians(self, model, t, q, v):
        return summed(term.jacobians(model, t, q, v) for term in self.terms)


class DynamicController(Controller):
    """Generalized forces as a function of time, state and a memory that evolves with the simulation.

    The memory is a PyTree of floating-point arrays. Between ticks it obeys a differential equation, integrated together
    with the mechanism's; at a tick it jumps, and the integrator stops there, so that no step contains a jump.
    Subclasses define either or both. `simulate` calls these methods.

    >>> class Oscillator(jdyn.control.DynamicController):
    ...     def start(self, t, q, v):
    ...         return jnp.array([1.0, 0.0])
    ...
    ...     def rate(self, t, q, v, memory):
    ...         return jnp.array([memory[1], -memory[0]])
    ...
    ...     def force(self, t, q, v, memory):
    ...         return memory[:1]
    >>> motion = jdyn.simulate(jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1), 1.0, controller=Oscillator())
    >>> print(motion.parts["controller"][-1].round(3))
    [ 0.54  -0.841]
    """

    @abc.abstractmethod
    def start(self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> PyTree[Array]:
        """The memory with which a simulation starts."""

    @abc.abstractmethod
    def force(
        self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"], memory: PyTree[Array]
    ) -> Float[Array, " nv"]:
        """Generalized forces [N m or N]."""

    def rate(self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"], memory: PyTree[Array]) -> PyTree[Array]:
        """dm/dt; zero unless overridden."""
        return jax.tree.map(jnp.zeros_like, memory)

    def force_slopes(
        self, model: Model, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"], memory: PyTree[Array]
    ) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        """Slopes of `force`, see `Controller.slopes`."""
        return differentiated_slopes(lambda q, v: self.force(t, q, v, memory), model, q, v)

    def force_jacobians(
        self, model: Model, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"], memory: PyTree[Array]
    ) -> tuple[Float[Array, " nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
        """Jacobians of `force` while the memory stays as it is, see `Controller.jacobians`."""
        return differentiated_jacobians(lambda t, q, v: self.force(t, q, v, memory), model, t, q, v)

    @property
    def ticks(self) -> bool:
        """Tell whether the memory jumps at ticks."""
        return False

    def next_tick(self, memory: PyTree[Array]) -> Scalar:
        """Time of the next tick [s]."""
        raise NotImplementedError(f"{type(self).__name__} ticks without saying when")

    def update(self, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"], memory: PyTree[Array]) -> PyTree[Array]:
        """The memory after a tick."""
        return memory

    def __call__(self, t, q, v):
        raise TypeError(f"{type(self).__name__} has a memory, and is not a function of the state alone; use `force`")

    def __add__(self, other):
        return DynamicSum((self, with_memory(other)))

    def __radd__(self, other):
        return DynamicSum((with_memory(other), self))


class Around(DynamicController):
    """A controller around another one, whose memory is its own."""

    controller: eqx.AbstractVar[DynamicController]

    def seen(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> tuple[Array, Array]:
        """State that the other controller sees; all of it unless overridden."""
        return q, v

    def start(self, t, q, v):
        return self.controller.start(t, *self.seen(q, v))

    def force(self, t, q, v, memory):
        return self.controller.force(t, *self.seen(q, v), memory)

    def rate(self, t, q, v, memory):
        return self.controller.rate(t, *self.seen(q, v), memory)

    @property
    def ticks(self):
        return self.controller.ticks

    def next_tick(self, memory):
        return self.controller.next_tick(memory)

    def update(self, t, q, v, memory):
        return self.controller.update(t, *self.seen(q, v), memory)

    def closed(self, t, q, v):
        return with_fields(self, controller=self.controller.closed(t, *self.seen(q, v)))


class DynamicSum(DynamicController):
    """The sum of controllers, each with its own memory."""

    terms: tuple[DynamicController, ...]

    def _with_memories(self, memory):
        """Terms, each with its memory; none of them has one where there is none of the sum, as `Driven` keeps it."""
        return zip(self.terms, (None,) * len(self.terms) if memory is None else memory, strict=True)

    def start(self, t, q, v):
        return tuple(term.start(t, q, v) for term in self.terms)

    def force(self, t, q, v, memory):
        first, *others = (term.force(t, q, v, m) for term, m in self._with_memories(memory))
        return sum(others, start=first)

    def rate(self, t, q, v, memory):
        return tuple(term.rate(t, q, v, m) for term, m in self._with_memories(memory))

    def force_slopes(self, model, t, q, v, memory):
        each = (term.force_slopes(model, t, q, v, m) for term, m in self._with_memories(memory))
        K, D = map(sum, zip(*each, strict=True))
        return K, D

    def force_jacobians(self, model, t, q, v, memory):
        return summed(term.force_jacobians(model, t, q, v, m) for term, m in self._with_memories(memory))

    @property
    def ticks(self):
        return any(term.ticks for term in self.terms)

    def next_tick(self, memory):
        ticks = [term.next_tick(m) for term, m in self._with_memories(memory) if term.ticks]
        return jnp.min(jnp.stack(ticks))

    def update(self, t, q, v, memory):
        return tuple(updated(term, t, q, v, m) for term, m in self._with_memories(memory))


class Memoryless(DynamicController):
    """Gives a controller without a memory the methods of one with a memory.

    Attributes:
        controller: The controller; no torque if None.
    """

    controller: Controller | None

    def start(self, t, q, v):
        return None

    def force_slopes(self, model, t, q, v, memory):
        if self.controller is None:
            return jnp.zeros_like(v), jnp.zeros_like(v)
        return self.controller.slopes(model, t, q, v)

    def force_jacobians(self, model, t, q, v, memory):
        if self.controller is None:
            return super().force_jacobians(model, t, q, v, memory)
        return self.controller.jacobians(model, t, q, v)

    def force(self, t, q, v, memory):
        return jnp.zeros_like(v) if self.controller is None else jnp.asarray(self.controller(t, q, v)).astype(v.dtype)


def with_memory(controller) -> DynamicController:
    """Any controller as one with a memory.

    Raises:
        ValueError: if it is no function of time, configuration and velocity.
    """
    if isinstance(controller, DynamicController):
        return controller
    return Memoryless(None if controller is None else as_controller(controller))


def as_controller(controller: Controller | Callable) -> Controller:
    """Any controller, or a plain function, as a controller.

    Raises:
        ValueError: if it is no function of time, configuration and velocity.
    """
    if isinstance(controller, Controller):
        return controller
    _check_arguments(controller)
    return Function(controller)


def _check_arguments(controller):
    if not callable(controller):
        raise ValueError(
            f"controller: expected a function of (t, q, v), or a jdyn.control.DynamicController, got {controller!r}"
        )
    try:
        signature = inspect.signature(controller)
    except (TypeError, ValueError):
        # Some functions written in C have none.
        return
    try:
        signature.bind(None, None, None)
    except TypeError:
        name = getattr(controller, "__name__", type(controller).__name__)
        raise ValueError(f"controller: expected a function of (t, q, v), got {name}{signature}") from None


def updated(controller: DynamicController, t: Scalar, q: Array, v: Array, memory: PyTree[Array]) -> PyTree[Array]:
    """The memory after ticks that are due at `t`, if any."""
    if not controller.ticks:
        return memory
    due = controller.next_tick(memory) <= t
    return jax.tree.map(lambda new, old: jnp.where(due, new, old), controller.update(t, q, v, memory), memory)
