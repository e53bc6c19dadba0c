"""The protocol of actuators: a command, and a travel of what they move, become a force."""

import abc
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Scalar

from jdyn.actuators.numbers import limits
from jdyn.model import Factor, Name, Scaling, Units, times, unit_of
from jdyn.transmissions import Transmission, as_transmission


class Travel(NamedTuple):
    """Length of a transmission and its rate [m, m/s or rad, rad/s].

    >>> servo = jdyn.actuators.PositionServo("joint1", kp=50.0, kd=10.0)
    >>> print(servo.force(1.0, jdyn.actuators.Travel(length=0.2, velocity=0.1), None))
    39.0
    """

    length: Scalar
    velocity: Scalar


class Actuator(eqx.Module):
    """A motor, a servo, a muscle: turns a command into a force along a transmission.

    `jdyn.System(model, actuators=[...])` takes any number of them; the controller then gives their commands. A subclass
    defines `force`, and `start` and `rate` if it has a state. Every number is a leaf.

    >>> class Spring(jdyn.actuators.Actuator):  # the command is the length at rest
    ...     stiffness: float
    ...
    ...     def force(self, command, travel, memory):
    ...         return self.stiffness * (command - travel.length)
    >>> spring = Spring("joint1", 30.0, force_range=(-10.0, 10.0))
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[spring], controller=jdyn.control.Constant(jnp.ones(1)))
    >>> print(jdyn.simulate(system, system.state(), 0.01).tau[0])
    [10.]

    Attributes:
        transmission: What it acts on; the name of a joint stands for `jdyn.transmissions.GearedJoint`.
        name: How messages and results call it; that of its transmission if left out.
        command_range: Limits of the command, or of each, shape (commands, 2); None for no limits.
        force_range: Limits of the force [N or N m]; None for no limits.
    """

    units: ClassVar[Units] = {"force_range": "J/x"}

    transmission: Transmission = eqx.field(converter=as_transmission)
    name: Name = eqx.field(static=True, default="", kw_only=True)
    command_range: Float[Array, "*commands 2"] | None = eqx.field(
        default=None, converter=limits("command_range", rows=True), kw_only=True
    )
    force_range: Float[Array, "2"] | None = eqx.field(default=None, converter=limits("force_range"), kw_only=True)

    @abc.abstractmethod
    def force(self, command: Scalar, travel: Travel, memory: Any) -> Scalar:
        """Force along the transmission before its limits [N or N m]: positive ones lengthen it.

        Args:
            command: The command within its limits; an array of shape (commands,) for an actuator with several `inputs`.
            travel: Length of the transmission and its rate.
            memory: State of the actuator; None for one without.
        """

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of its commands, where it takes several; most take one, without a name."""
        return ("",)

    @property
    def command_limits(self) -> Float[Array, "*commands 2"] | None:
        """Limits that commands meet, its own unless there is an actuator within; None for no limits."""
        return self.command_range

    def start(self, travel: Travel) -> PyTree[Array]:
        """State where a motion starts, integrated with the motion; None for an actuator without, as here."""
        return None

    def rate(self, command: Scalar, travel: Travel, memory: Any) -> PyTree[Array]:
        """Rate of that state; zero unless overridden."""
        return jax.tree.map(jnp.zeros_like, memory)

    def scaled(self, scaling: Scaling) -> Self:
        """The same on a scaled mechanism.

        Raises:
            ValueError: if the unit of a number, or that of its commands, is not known.
        """
        if self.transmission is not None:
            scaling = scaling.along(self.transmission.travel_factor(scaling))
        limits, factors = self.command_range, self.command_factors(scaling)
        if limits is not None and any(not isinstance(factor, float | int) for factor in factors):
            each = jnp.stack([jnp.asarray(factor, scaling.model.dtype) for factor in factors])
            alone = limits.ndim == 1 and len(factors) == 1
            limits = times(jnp.broadcast_to(limits, (len(factors), 2)), each[:, None])
            limits = limits[0] if alone else limits
        within = scaling._replace(command=self.followed_factor(scaling))
        return within.numbers(self, command_range=limits)

    def command_factors(self, scaling: Scaling) -> tuple[Factor, ...]:
        """Factor of each of its commands, whose unit is `"command"` among the `units` of the class.

        Raises:
            ValueError: if there is none.
        """
        if (unit := unit_of(self, "command")) is None:
            raise scaling.refusal(self, 'has commands of unknown unit; give the class `units = {"command": "x"}`')
        return (scaling.factor(unit),) * len(self.inputs)

    def followed_factor(self, scaling: Scaling) -> Factor | None:
        """Factor of the number that follows the command, if there is one."""
        return None

    def limited_command(self, command: Scalar) -> Scalar:
        """A command within its limits."""
        if self.command_range is None:
            return command
        return jnp.clip(command, self.command_range[..., 0], self.command_range[..., 1])

    def limited_force(self, command: Scalar, travel: Travel, memory: Any) -> Scalar:
        """The force of a command, both within their limits."""
        force = self.force(self.limited_command(command), travel, memory)
        return force if self.force_range is None else jnp.clip(force, *self.force_range)

    def limited_rate(self, command: Scalar, travel: Travel, memory: Any) -> PyTree[Array]:
        """The rate of the state under a command within its limits."""
        return self.rate(self.limited_command(command), travel, memory)
