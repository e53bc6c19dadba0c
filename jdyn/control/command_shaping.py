"""Changes of the commands of a controller: limits, sampling, delay, lag."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.control.arguments import scalar_or
from jdyn.control.controller import DynamicController, with_memory
from jdyn.model import Model, checked


class _Shaper(DynamicController):
    """Changes the command of a controller; its memory is the pair (inner memory, own memory)."""

    controller: eqx.AbstractVar[DynamicController]

    @property
    def ticks(self):
        return self.controller.ticks

    def next_tick(self, memory):
        return self.controller.next_tick(memory[0])

    def update(self, t, q, v, memory):
        return self.controller.update(t, q, v, memory[0]), memory[1]


class Saturated(_Shaper):
    """The command, limited to the effort of the joints' actuators.

    >>> model = jdyn.load("cartpole")
    >>> limited = jdyn.Saturated(jdyn.control.Constant(jnp.array([25.0, 0.0])), model)
    >>> q, v = jnp.zeros(2), jnp.zeros(2)
    >>> print(limited.force(0.0, q, v, limited.start(0.0, q, v)))
    [10.  0.]

    Args:
        controller: Any controller.
        model: The mechanism.
        effort: Largest generalized force [N m or N], a scalar or shape (nv,); the model's limits if left out. Many
            robot files have zero for an unknown limit, so zero means no limit.

    Raises:
        ValueError: if a shape is wrong.
    """

    controller: DynamicController
    effort: Float[Array, "*nv"]

    def __init__(self, controller, model: Model, effort: ArrayLike | None = None):
        checked(model)
        self.controller = with_memory(controller)
        if effort is None:
            limit = model.limits.effort[jnp.array(model.topology.independent_v)]
            effort = jnp.where(limit > 0, limit, jnp.inf)
        self.effort = scalar_or(model, model.nv, "effort", effort)

    def start(self, t, q, v):
        return self.controller.start(t, q, v), None

    def force(self, t, q, v, memory):
        return jnp.clip(self.controller.force(t, q, v, memory[0]), -self.effort, self.effort)

    def rate(self, t, q, v, memory):
        return self.controller.rate(t, q, v, memory[0]), None


class ZeroOrderHold(DynamicController):
    """A digital controller: it samples the state once in each period and holds its command in between.

    The inner controller is called at the ticks only, with the state at that time. If its memory has a rate, that is
    integrated between ticks.

    >>> model = jdyn.load("pendulum")
    >>> digital = jdyn.control.ZeroOrderHold(jdyn.PD(model, jnp.ones(1), kp=5.0, kd=1.0), period=0.01, delay=1)
    >>> motion = jdyn.simulate(model, jnp.zeros(1), jnp.zeros(1), 1.0, controller=digital)
    >>> motion.tau.shape
    (101, 1)

    Args:
        controller: Any controller without ticks.
        period: Time between ticks [s]; the first tick is the start of the simulation.
        delay: Number of periods before a command acts, or one for each output of the controller; before the first one
            acts, the command at the start does.

    Raises:
        ValueError: if the inner controller has ticks, or `delay` is negative, or there are not as many as outputs.
    """

    controller: DynamicController
    period: Scalar
    delay: int | tuple[int, ...] = eqx.field(static=True)

    def __init__(self, controller, period: ArrayLike, delay: int | Sequence[int] = 0):
        self.controller = with_memory(controller)
        if self.controller.ticks:
            raise ValueError(f"controller: {type(self.controller).__name__} has ticks of its own; hold it once only")
        self.delay = tuple(delay) if isinstance(delay, Sequence) else delay
        if min(self._delays, default=-1) < 0:
            raise ValueError(f"delay: expected a number of periods, or one for each output, got {delay}")
        self.period = jnp.asarray(period, float)

    @property
    def _delays(self) -> tuple[int, ...]:
        return self.delay if isinstance(self.delay, tuple) else (self.delay,)

    def start(self, t, q, v):
        inner = self.controller.start(t, q, v)
        command = self.controller.force(t, q, v, inner)
        if isinstance(self.delay, tuple) and command.shape != (len(self.delay),):
            raise ValueError(f"delay: expected one for each of {command.size} outputs, got {self.delay}")
        return inner, _Held(jnp.stack([command] * (max(self._delays) + 1)), t, jnp.ones_like(t))

    def force(self, t, q, v, memory):
        commands = memory[1].commands
        if not isinstance(self.delay, tuple):
            return commands[0]
        return commands[max(self.delay) - np.array(self.delay), np.arange(len(self.delay))]

    def rate(self, t, q, v, memory):
        return self.controller.rate(t, q, v, memory[0]), jax.tree.map(jnp.zeros_like, memory[1])

    @property
    def ticks(self):
        return True

    def next_tick(self, memory):
        # Count ticks: a sum of periods would accumulate rounding.
        return memory[1].start + memory[1].count * self.period.astype(memory[1].start.dtype)

    def update(self, t, q, v, memory):
        inner, held = memory
        commands = jnp.concatenate([held.commands[1:], self.controller.force(t, q, v, inner)[None]])
        return inner, _Held(commands, held.start, held.count + 1)


class _Held(eqx.Module):
    """Memory of a digital controller.

    Attributes:
        commands: The command that acts after the longest delay, and those that follow [N m or N].
        start: Start of the simulation [s].
        count: Number of ticks, including the next one.
    """

    commands: Float[Array, "delay+1 outputs"]
    start: Scalar
    count: Scalar


class FirstOrderLag(_Shaper):
    """A motor that follows its command with a time constant: T dτ/dt + τ = command.

    >>> motor = jdyn.control.FirstOrderLag(jdyn.control.Constant(jnp.array([2.0])), time_constant=0.1)
    >>> q, v = jnp.zeros(1), jnp.zeros(1)
    >>> print(motor.force(0.0, q, v, motor.start(0.0, q, v)))
    [2.]

    Args:
        controller: Any controller.
        time_constant: T [s]. The torque at the start is the command.
    """

    controller: DynamicController
    time_constant: Scalar

    def __init__(self, controller, time_constant: ArrayLike):
        self.controller, self.time_constant = with_memory(controller), jnp.asarray(time_constant, float)

    def start(self, t, q, v):
        inner = self.controller.start(t, q, v)
        return inner, self.controller.force(t, q, v, inner)

    def force(self, t, q, v, memory):
        return memory[1]

    def rate(self, t, q, v, memory):
        inner, tau = memory
        missing = self.controller.force(t, q, v, inner) - tau
        return self.controller.rate(t, q, v, inner), missing / self.time_constant.astype(tau.dtype)
