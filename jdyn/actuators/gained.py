"""Actuators whose force is a gain times the command, and a bias: motors and servos."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.actuators.activation import Activation
from jdyn.actuators.actuator import Actuator, Travel
from jdyn.actuators.numbers import not_negative, number, positive
from jdyn.model import Factor, Scaling, Units, unit_of


class GainedActuator(Actuator):
    """An actuator with the force gain · u + bias, both by the length l of its transmission and the rate of that.

    >>> class Fading(jdyn.actuators.GainedActuator):  # weaker, the faster it moves
    ...     def gain(self, travel):
    ...         return 1 / (1 + travel.velocity**2)
    >>> print(Fading("joint1").force(6.0, jdyn.actuators.Travel(jnp.array(0.0), jnp.array(1.0)), None))
    3.0

    Attributes:
        activation: A state that follows u and takes its place, such as `jdyn.actuators.Lag(0.1)`; None for u itself.
    """

    activation: Activation | None = eqx.field(default=None, kw_only=True)

    @abc.abstractmethod
    def gain(self, travel: Travel) -> Scalar:
        """Force of a command of one [N or N m]."""

    def bias(self, travel: Travel) -> Scalar:
        """Force without a command [N or N m]; zero unless overridden."""
        return jnp.zeros_like(travel.length)

    def command_factors(self, scaling: Scaling) -> tuple[Factor, ...]:
        if self.activation is None:
            return super().command_factors(scaling)
        within = scaling._replace(command=self.followed_factor(scaling))
        if (unit := unit_of(self.activation, "command")) is None:
            raise scaling.refusal(
                self.activation, 'follows commands of unknown unit; give the class `units = {"command": "u"}`'
            )
        return (within.factor(unit),)

    def followed_factor(self, scaling: Scaling) -> Factor | None:
        return super().command_factors(scaling)[0]

    def start(self, travel):
        return None if self.activation is None else self.activation.start(travel.length.dtype)

    def rate(self, command: Scalar, travel: Travel, memory: Any) -> Array | None:
        return None if self.activation is None else self.activation.limited_rate(command, memory)

    def force(self, command: Scalar, travel: Travel, memory: Any) -> Scalar:
        u = command if self.activation is None else self.activation.output(memory)
        return self.gain(travel) * u + self.bias(travel)


class Motor(GainedActuator):
    """The command is the force: g u.

    >>> motor = jdyn.actuators.Motor("joint1", strength=3.0, force_range=(-10.0, 10.0))
    >>> print(motor.limited_force(jnp.array(5.0), jdyn.actuators.Travel(jnp.array(0.0), jnp.array(0.0)), None))
    10.0

    Attributes:
        strength: g [N or N m for a command of one].
    """

    units: ClassVar[Units] = {"command": "", "strength": "J/x"}

    strength: Scalar = eqx.field(default=1.0, converter=number("Motor.strength"))

    def gain(self, travel):
        return self.strength.astype(travel.length.dtype)


class PositionServo(GainedActuator):
    """The command is a length: kp (u − l) − kd dl/dt.

    A length that is an angle of a ball joint or a frame is the same again after a turn: with a `period` the set point
    is that of u, u ± period, u ± 2 period, ... which is nearest.

    >>> servo = jdyn.actuators.PositionServo("joint1", kp=50.0, kd=10.0)
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[servo], controller=jdyn.control.Constant(jnp.ones(1)))
    >>> print(jdyn.simulate(system, system.state(), 2.0).q[-1].round(2))
    [0.92]

    Attributes:
        kp: [N/m or N m/rad].
        kd: [N s/m or N m s/rad].
        period: Length of a turn [m or rad]; None if none comes back.
    """

    units: ClassVar[Units] = {"command": "x", "kp": "J/x^2", "kd": "J s/x^2", "period": "x"}

    kp: Scalar = eqx.field(converter=number("PositionServo.kp"))
    kd: Scalar = eqx.field(default=0.0, converter=not_negative("PositionServo.kd"))
    period: Scalar | None = eqx.field(
        default=None, converter=lambda x: None if x is None else positive("PositionServo.period")(x), kw_only=True
    )

    def force(self, command, travel, memory):
        force = super().force(command, travel, memory)
        if self.period is None:
            return force
        u = command if self.activation is None else self.activation.output(memory)
        return force - self.kp * self.period * jnp.round((u - travel.length) / self.period)

    def gain(self, travel):
        return self.kp

    def bias(self, travel):
        return -self.kp * travel.length - self.kd * travel.velocity


class VelocityServo(GainedActuator):
    """The command is a velocity: kd (u − dl/dt).

    >>> print(jdyn.actuators.VelocityServo("joint1", kd=4.0).force(1.0, jdyn.actuators.Travel(0.0, 0.5), None))
    2.0

    Attributes:
        kd: [N s/m or N m s/rad].
    """

    units: ClassVar[Units] = {"command": "x/s", "kd": "J s/x^2"}

    kd: Scalar = eqx.field(converter=not_negative("VelocityServo.kd"))

    def gain(self, travel):
        return self.kd

    def bias(self, travel):
        return -self.kd * travel.velocity


class Damper(GainedActuator):
    """The command, which is not negative, is a damping: −k u dl/dt.

    >>> brake = jdyn.actuators.Damper("joint1", command_range=(0.0, 10.0))
    >>> print(brake.limited_force(jnp.array(20.0), jdyn.actuators.Travel(jnp.array(0.0), jnp.array(0.5)), None))
    -5.0

    Attributes:
        strength: k [N s/m or N m s/rad for a command of one].
    """

    units: ClassVar[Units] = {"command": "", "strength": "J s/x^2"}

    strength: Scalar = eqx.field(default=1.0, converter=number("Damper.strength"))

    def gain(self, travel):
        return -self.strength * travel.velocity


class AffineActuator(GainedActuator):
    """Gain and bias are affine in length l and rate: g₀ + g₁ l + g₂ dl/dt, b₀ + b₁ l + b₂ dl/dt.

    >>> servo = jdyn.actuators.AffineActuator("joint1", gains=(50.0, 0.0, 0.0), biases=(0.0, -50.0, -10.0))
    >>> print(servo.force(1.0, jdyn.actuators.Travel(length=0.2, velocity=0.1), None))
    39.0

    Attributes:
        gains: g.
        biases: b.
    """

    # Commands may be anything, and keep their unit.
    units: ClassVar[Units] = {
        "command": "", "gains": ("J/x", "J/x^2", "J s/x^2"), "biases": ("J/x", "J/x^2", "J s/x^2")
    }  # fmt: skip

    gains: Float[Array, "3"] = eqx.field(converter=number("AffineActuator.gains"))
    biases: Float[Array, "3"] = eqx.field(default=(0.0, 0.0, 0.0), converter=number("AffineActuator.biases"))

    def gain(self, travel):
        return _affine(self.gains, travel)

    def bias(self, travel):
        return _affine(self.biases, travel)


def _affine(coefficients, travel):
    return coefficients[0] + coefficients[1] * travel.length + coefficients[2] * travel.velocity
