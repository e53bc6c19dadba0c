"""Drives that move what they drive through a spring: series elasticity, and backlash."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.actuators.actuator import Actuator, Travel
from jdyn.actuators.numbers import not_negative, positive
from jdyn.model import Factor, Scaling, Units


class ElasticDrive(Actuator):
    """An actuator that moves a rotor of its own, which a spring and a damper couple with the transmission.

    With a gap, the spring begins beyond half of it on either side, and the damper acts there alone: backlash. The
    actuator within sees the rotor: J dω/dt = f − b ω − (k s + d ds/dt), where s is the spring's stretch.

    >>> drive = jdyn.actuators.ElasticDrive(jdyn.actuators.Motor("joint1"), inertia=0.01, stiffness=400.0, damping=1.0)
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[drive])
    >>> print(system.state().parts["controller"].actuators["joint1"][0])  # angle and speed of the rotor
    [0. 0.]

    Attributes:
        actuator: What moves the rotor; the drive takes its transmission.
        inertia: J, at the transmission's end of the gear [kg m² or kg].
        stiffness: k [N m/rad or N/m].
        damping: d [N m s/rad or N s/m].
        friction: b, of the rotor's bearings [N m s/rad or N s/m].
        gap: Backlash, the whole of it [rad or m].
    """

    units: ClassVar[Units] = {
        "inertia": "kg m^2/x^2", "stiffness": "J/x^2", "damping": "J s/x^2", "friction": "J s/x^2", "gap": "x"
    }  # fmt: skip

    actuator: Actuator
    inertia: Scalar
    stiffness: Scalar
    damping: Scalar
    friction: Scalar
    gap: Scalar

    def __init__(
        self,
        actuator: Actuator,
        inertia: ArrayLike,
        stiffness: ArrayLike,
        damping: ArrayLike = 0.0,
        friction: ArrayLike = 0.0,
        gap: ArrayLike = 0.0,
        *,
        name: str = "",
    ):
        # One transmission, so that it has one gear.
        self.transmission, self.name = actuator.transmission, name or actuator.name
        self.actuator = eqx.tree_at(lambda actuator: actuator.transmission, actuator, None)
        self.command_range = self.force_range = None
        self.inertia = positive("ElasticDrive.inertia")(inertia)
        self.stiffness = not_negative("ElasticDrive.stiffness")(stiffness)
        self.damping = not_negative("ElasticDrive.damping")(damping)
        self.friction = not_negative("ElasticDrive.friction")(friction)
        self.gap = not_negative("ElasticDrive.gap")(gap)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.actuator.inputs

    def command_factors(self, scaling: Scaling) -> tuple[Factor, ...]:
        return self.actuator.command_factors(scaling)

    @property
    def command_limits(self) -> Float[Array, "*commands 2"] | None:
        """Limits of the actuator within."""
        return self.actuator.command_limits

    def start(self, travel: Travel) -> tuple[Array, Any]:
        """Travel of the rotor and its rate, where the spring is not stretched, and the state of the actuator within."""
        return jnp.stack(travel), self.actuator.start(travel)

    def rate(self, command: Scalar, travel: Travel, memory: Any) -> tuple[Array, Any]:
        rotor, inner = Travel(*memory[0]), memory[1]
        driven = self.actuator.limited_force(command, rotor, inner)
        acceleration = (driven - self.friction * rotor.velocity - self._coupling(travel, rotor)) / self.inertia
        within = self.actuator.rate(self.actuator.limited_command(command), rotor, inner)
        return jnp.stack([rotor.velocity, acceleration]), within

    def force(self, command: Scalar, travel: Travel, memory: Any) -> Scalar:
        return self._coupling(travel, Travel(*memory[0]))

    def _coupling(self, travel: Travel, rotor: Travel) -> Scalar:
        """Force of spring and damper on the transmission."""
        apart = rotor.length - travel.length
        stretch = apart - jnp.clip(apart, -0.5 * self.gap, 0.5 * self.gap)
        damped = jnp.where((stretch != 0) | (self.gap == 0), rotor.velocity - travel.velocity, 0)
        return self.stiffness * stretch + self.damping * damped
