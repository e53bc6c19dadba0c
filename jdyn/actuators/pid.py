"""A position servo with an integral, whose set point moves at a limited rate."""

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.actuators.activation import SlewLimit
from jdyn.actuators.actuator import Actuator, Travel
from jdyn.actuators.numbers import limits, not_negative, number
from jdyn.model import Factor, Scaling, Units


class PIDServo(Actuator):
    """The command is a length: kp e + ki ∫e dt + kd de/dt, where e is what is missing to the set point.

    With several `inputs` it takes as many commands: `"velocity"` is the rate of the set point, to which kd compares the
    rate of the transmission, and `"force"` is added. Without `"position"` the set point is zero.

    >>> servo = jdyn.actuators.PIDServo("joint1", kp=60.0, ki=60.0, kd=15.0)
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[servo], controller=jdyn.control.Constant(jnp.ones(1)))
    >>> print(jdyn.simulate(system, system.state(), 10.0).q[-1].round(3))
    [1.]

    Attributes:
        kp: [N/m or N m/rad].
        ki: [N/(m s) or N m/(rad s)].
        kd: [N s/m or N m s/rad].
        slew: How the set point follows the command, `jdyn.actuators.SlewLimit(rate)`; None where it is the command,
            whose own rate is then taken to be zero.
        integral_range: Limits of ki ∫e dt, at which it stays [N or N m]; None for no limits.
        derivative: `"error"`, or `"length"` for kd that takes a set point without a `"velocity"` as one that rests,
            also while it slews.
        inputs: Which of `"position"`, `"velocity"` and `"force"` it takes, in this order.
    """

    units: ClassVar[Units] = {"kp": "J/x^2", "ki": "J/x^2 s", "kd": "J s/x^2", "integral_range": "J/x"}

    kp: Scalar = eqx.field(converter=number("PIDServo.kp"))
    ki: Scalar = eqx.field(converter=number("PIDServo.ki"))
    kd: Scalar = eqx.field(default=0.0, converter=not_negative("PIDServo.kd"))
    slew: SlewLimit | None = eqx.field(default=None, kw_only=True)
    integral_range: Float[Array, "2"] | None = eqx.field(
        default=None, converter=limits("PIDServo.integral_range"), kw_only=True
    )
    derivative: Literal["error", "length"] = eqx.field(static=True, default="error", kw_only=True)
    inputs: tuple[str, ...] = eqx.field(static=True, default=("position",), converter=tuple, kw_only=True)

    def __check_init__(self):
        known = [what for what in ("position", "velocity", "force") if what in self.inputs]
        if not known or self.inputs != tuple(known):
            raise ValueError(f'PIDServo.inputs: expected some of "position", "velocity", "force", got {self.inputs!r}')
        if self.derivative not in ("error", "length"):
            raise ValueError(f'PIDServo.derivative: expected "error" or "length", got {self.derivative!r}')

    def command_factors(self, scaling: Scaling) -> tuple[Factor, ...]:
        units = {"position": "x", "velocity": "x/s", "force": "J/x"}
        return tuple(scaling.factor(units[what]) for what in self.inputs)

    def followed_factor(self, scaling: Scaling) -> Factor:
        return scaling.factor("x")

    def start(self, travel: Travel) -> tuple[Array, Array | None]:
        """ki ∫e dt, and the set point, which starts where the transmission is."""
        return jnp.zeros_like(travel.length), None if self.slew is None else travel.length

    def rate(self, command: Scalar, travel: Travel, memory: Any) -> tuple[Array, Array | None]:
        integral, _ = memory
        missing, slewing = self._missing(command, travel, memory)
        rate = self.ki * missing
        if self.integral_range is not None:
            lower, upper = self.integral_range
            rate = jnp.where(((integral <= lower) & (rate < 0)) | ((integral >= upper) & (rate > 0)), 0, rate)
        return rate, None if self.slew is None else slewing

    def force(self, command: Scalar, travel: Travel, memory: Any) -> Scalar:
        integral, _ = memory
        missing, slewing = self._missing(command, travel, memory)
        integral = integral if self.integral_range is None else jnp.clip(integral, *self.integral_range)
        if "velocity" in self.inputs:
            slewing = self._input("velocity", command)
        elif self.derivative == "length":
            slewing = jnp.zeros_like(travel.velocity)
        added = self._input("force", command) if "force" in self.inputs else 0
        return self.kp * missing + integral + self.kd * (slewing - travel.velocity) + added

    def _missing(self, command, travel, memory):
        """Length that is missing to the set point, and the rate of that point."""
        wanted = self._input("position", command) if "position" in self.inputs else jnp.zeros_like(travel.length)
        if self.slew is None:
            return wanted - travel.length, jnp.zeros_like(travel.velocity)
        _, goal = memory
        return goal - travel.length, self.slew.limited_rate(wanted, goal)

    def _input(self, what, command):
        return command if len(self.inputs) == 1 else command[self.inputs.index(what)]
