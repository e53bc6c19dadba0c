"""Servos of orientations."""

from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.actuators.actuator import Actuator, Travel
from jdyn.actuators.numbers import not_negative, number, positive
from jdyn.model import Units
from jdyn.spatial.rotation import quaternion_conjugate, quaternion_exp, quaternion_log, quaternion_multiply
from jdyn.transmissions import Transmission


class OrientationServo(Actuator):
    """The command is an orientation: kp e − kd ω, where the rotation vector e leads from that of the transmission to
    the command, the shortest way, in axes of what turns.

    >>> servo = jdyn.actuators.OrientationServo(jdyn.transmissions.FrameOrientation("tip"), kp=40.0, kd=8.0)
    >>> goal = jdyn.control.Constant(jnp.array([0.0, -1.0, 0.0]))
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[servo], controller=goal)
    >>> print(jdyn.simulate(system, system.state(), 4.0).q[-1].round(2))
    [0.9]

    Attributes:
        transmission: A `jdyn.transmissions.BallOrientation` or `jdyn.transmissions.FrameOrientation`.
        kp: [N m/rad].
        kd: [N m s/rad].
        largest: Largest size of the torque, whose direction stays [N m]; None for no limit.
        command: `"vector"` for a rotation vector, three numbers, or `"quaternion"`, wxyz of any length but zero, which
            counts as no turn.

    Raises:
        ValueError: if the transmission is no orientation.
    """

    units: ClassVar[Units] = {"command": "", "kp": "J", "kd": "J s", "largest": "J"}

    transmission: Transmission
    kp: Scalar = eqx.field(converter=number("OrientationServo.kp"))
    kd: Scalar = eqx.field(default=0.0, converter=not_negative("OrientationServo.kd"))
    largest: Scalar | None = eqx.field(
        default=None, converter=lambda x: None if x is None else positive("OrientationServo.largest")(x), kw_only=True
    )
    command: Literal["vector", "quaternion"] = eqx.field(static=True, default="vector", kw_only=True)

    def __check_init__(self):
        if self.command not in ("vector", "quaternion"):
            raise ValueError(f'OrientationServo.command: expected "vector" or "quaternion", got {self.command!r}')
        if getattr(self.transmission, "count", 1) != 3:
            raise ValueError(
                "OrientationServo.transmission: expected an orientation, such as "
                f"jdyn.transmissions.BallOrientation(...), got {self.transmission!r}"
            )

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("x", "y", "z") if self.command == "vector" else ("w", "x", "y", "z")

    def force(self, command: Array, travel: Travel, memory: Any) -> Float[Array, "3"]:
        if self.command == "vector":
            goal = quaternion_exp(command)
        else:
            square = command @ command
            none = jnp.array([1.0, 0.0, 0.0, 0.0], command.dtype)
            goal = jnp.where(square > 0, command / jnp.sqrt(jnp.where(square > 0, square, 1)), none)
        missing = quaternion_log(quaternion_multiply(quaternion_conjugate(quaternion_exp(travel.length)), goal))
        return self.kp * missing - self.kd * travel.velocity

    def limited_force(self, command: Array, travel: Travel, memory: Any) -> Float[Array, "3"]:
        torque = super().limited_force(command, travel, memory)
        if self.largest is None:
            return torque
        square = torque @ torque
        beyond = square > self.largest**2
        return torque * jnp.where(beyond, self.largest / jnp.sqrt(jnp.where(beyond, square, 1)), 1)
