"""Activations: what an actuator acts by follows its command with a delay of its own."""

import abc
from typing import ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.actuators.numbers import limits, not_negative, number, positive
from jdyn.model import Scaling, Units


class Activation(eqx.Module):
    """A state x that follows the command, and takes its place in the force of an actuator.

    >>> class Squared(jdyn.actuators.Activation):  # follows the square of the command
    ...     def rate(self, command, x):
    ...         return 10.0 * (command**2 - x)
    >>> motor = jdyn.actuators.Motor("joint1", activation=Squared(range=(0.0, 1.0)))
    >>> print(motor.rate(0.5, jdyn.actuators.Travel(0.0, 0.0), jnp.array(0.0)))
    2.5

    Attributes:
        initial: x where a motion starts.
        range: Limits of x, at which it stays; None for no limits.
    """

    units: ClassVar[Units] = {"initial": "u", "range": "u"}

    initial: Scalar = eqx.field(default=0.0, converter=number("Activation.initial"), kw_only=True)
    range: Float[Array, "2"] | None = eqx.field(default=None, converter=limits("Activation.range"), kw_only=True)

    @abc.abstractmethod
    def rate(self, command: Scalar, x: Scalar) -> Scalar:
        """Rate of x between its limits."""

    def start(self, dtype) -> Array:
        """x where a motion starts."""
        return self.initial.astype(dtype)

    def limited_rate(self, command: Scalar, x: Scalar) -> Scalar:
        """Rate of x, which does not lead out of its limits."""
        rate = self.rate(command, x)
        if self.range is None:
            return rate
        lower, upper = self.range
        return jnp.where(((x <= lower) & (rate < 0)) | ((x >= upper) & (rate > 0)), 0, rate)

    def output(self, x: Array) -> Scalar:
        """Value that takes the place of the command."""
        return x if self.range is None else jnp.clip(x, *self.range)


class Integrator(Activation):
    """The command is a rate: dx/dt = u.

    >>> print(jdyn.actuators.Integrator(range=(-1.0, 1.0)).limited_rate(0.5, jnp.array(1.0)))
    0.0
    """

    units: ClassVar[Units] = {"command": "u/s"}

    def rate(self, command, x):
        return command


class Lag(Activation):
    """x follows with a time constant: T dx/dt = u − x.

    >>> print(jdyn.actuators.Lag(0.5).rate(1.0, 0.2))
    1.6

    Attributes:
        time_constant: T [s].
    """

    units: ClassVar[Units] = {"command": "u", "time_constant": "s"}

    time_constant: Scalar = eqx.field(converter=positive("Lag.time_constant"))

    def rate(self, command, x):
        return (command - x) / self.time_constant


class Delay(Activation):
    """Dead time, as that of as many lags in a row: steps arrive after the delay, and take delay / √lags to rise.

    `jdyn.control.ZeroOrderHold` has an exact one for sampled commands.

    >>> print(jdyn.actuators.Delay(0.2, lags=4).rate(jnp.array(1.0), jnp.zeros(4)))
    [20.  0.  0.  0.]

    Attributes:
        delay: [s].
        lags: How many. x is the row of their outputs.
    """

    units: ClassVar[Units] = {"command": "u", "delay": "s"}

    delay: Scalar = eqx.field(converter=positive("Delay.delay"))
    lags: int = eqx.field(static=True, default=8)

    def start(self, dtype):
        return jnp.full(self.lags, self.initial, dtype)

    def rate(self, command, x):
        return (jnp.concatenate([command[None], x[:-1]]) - x) * (self.lags / self.delay)

    def output(self, x):
        return super().output(x[-1])


class SlewLimit(Activation):
    """x follows with a limited rate: dx/dt = ±slew, and near the command (u − x) / T.

    >>> print(jdyn.actuators.SlewLimit(2.0).rate(1.0, 0.2))
    2.0

    Attributes:
        slew: Largest rate [1/s times the unit of the command].
        time_constant: T [s].
    """

    units: ClassVar[Units] = {"command": "u", "slew": "u/s", "time_constant": "s"}

    slew: Scalar = eqx.field(converter=positive("SlewLimit.slew"))
    time_constant: Scalar = eqx.field(default=1e-3, converter=positive("SlewLimit.time_constant"))

    def rate(self, command, x):
        return jnp.clip((command - x) / self.time_constant, -self.slew, self.slew)


class MuscleActivation(Activation):
    """Activation of a muscle: it rises sooner than it falls, later the more of it there is, and falls sooner then.

    >>> print(jdyn.actuators.MuscleActivation(rise=0.01, fall=0.04).rate(1.0, jnp.array(0.0)))
    200.0

    Source: Millard et al. 2013, Flexing computational muscle, as MuJoCo has it (`mju_muscleDynamics`).

    Attributes:
        rise, fall: Time constants [s].
        smoothing: Width of u − x in which one turns into the other; at zero they switch.
    """

    units: ClassVar[Units] = {"command": "u", "rise": "s", "fall": "s", "smoothing": "u"}

    rise: Scalar = eqx.field(default=0.01, converter=positive("MuscleActivation.rise"))
    fall: Scalar = eqx.field(default=0.04, converter=positive("MuscleActivation.fall"))
    smoothing: Scalar = eqx.field(default=0.0, converter=not_negative("MuscleActivation.smoothing"))

    def scaled(self, scaling: Scaling) -> Self:
        """The same with other time constants.

        Raises:
            ValueError: if it follows a command that is a length, since it goes from zero to one.
        """
        if not isinstance(scaling.command, float | int):
            raise scaling.refusal(self, "follows a command in m, but goes from 0 to 1 whatever the unit is")
        return scaling.numbers(self)

    def rate(self, command, x):
        missing, share = jnp.clip(command, 0, 1) - x, 0.5 + 1.5 * jnp.clip(x, 0, 1)
        rise, fall = self.rise * share, self.fall / share
        smooth = self.smoothing > 0
        along = jnp.clip(missing / jnp.where(smooth, self.smoothing, 1) + 0.5, 0, 1)
        eased = along**3 * (along * (6 * along - 15) + 10)
        return missing / jnp.where(smooth, fall + (rise - fall) * eased, jnp.where(missing > 0, rise, fall))
