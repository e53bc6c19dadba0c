"""Motors by direct current."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Scalar

from jdyn.actuators.actuator import Actuator, Travel
from jdyn.actuators.numbers import number, positive


class Winding(eqx.Module):
    """The heat of a winding, whose resistance grows with it: C dT/dt = R(T) i² − (T − T₀) / R_th.

    >>> winding = jdyn.actuators.Winding(capacity=10.0, resistance=2.0)
    >>> motor = jdyn.actuators.DCMotor("joint1", resistance=1.0, constant=0.1, winding=winding)
    >>> print(motor.start(jdyn.actuators.Travel(jnp.array(0.0), jnp.array(0.0))))
    (None, Array(25., dtype=float64))

    Attributes:
        capacity: C [J/K].
        resistance: R_th, from the winding to what is around it [K/W].
        ambient: T₀, at which the motor's resistance is given, and at which a motion starts [K or °C].
        coefficient: How much of R(T₀) is added for each degree [1/K]; that of copper.
    """

    capacity: Scalar = eqx.field(converter=positive("Winding.capacity"))
    resistance: Scalar = eqx.field(converter=positive("Winding.resistance"))
    ambient: Scalar = eqx.field(default=25.0, converter=number("Winding.ambient"))
    coefficient: Scalar = eqx.field(default=0.00393, converter=number("Winding.coefficient"))


class DCMotor(Actuator):
    """The command is a voltage: L di/dt = u − R i − k ω, and the torque is k i.

    ω is the rate of the transmission, whose gear is that of the motor. Without an inductance, the current follows at
    once. The inertia J of its rotor is `armature` of the joint, gear² J, or a `jdyn.Rotor`, which also reacts on what
    carries it.

    A gear of efficiency η loses (1 − η) |k i|, as dry friction does: what drives has η times the torque, and what is
    driven feels 2 − η times the torque, which is 1/η but for the square of what is lost.

    An inductance makes the motion stiff where L / R is short. `jdyn.solvers.Rodas5P()` then takes long steps.

    >>> shaft = jdyn.transmissions.GearedJoint("joint1", gear=20.0)
    >>> motor = jdyn.actuators.DCMotor(shaft, resistance=0.5, constant=0.05)
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[motor], controller=jdyn.control.Constant(jnp.ones(1)))
    >>> print(jdyn.simulate(system, system.state(), 20.0).q[-1].round(3))  # 20 k u / R = m g sin(q) / 2
    [0.42]

    Attributes:
        resistance: R [Ω].
        constant: k [N m/A, which is V s/rad].
        inductance: L [H]; None if the current follows at once.
        efficiency: η of the gear.
        friction_speed: Speed at which the friction of the gear has reached three quarters of its value [rad/s].
        winding: Its heat; None if the resistance is constant.
    """

    resistance: Scalar = eqx.field(converter=positive("DCMotor.resistance"))
    constant: Scalar = eqx.field(converter=number("DCMotor.constant"))
    inductance: Scalar | None = eqx.field(
        default=None, converter=lambda x: None if x is None else positive("DCMotor.inductance")(x)
    )
    efficiency: Scalar = eqx.field(default=1.0, converter=number("DCMotor.efficiency"))
    friction_speed: Scalar = eqx.field(default=0.1, converter=positive("DCMotor.friction_speed"))
    winding: Winding | None = None

    def start(self, travel: Travel) -> tuple[Array | None, Array | None] | None:
        """Current [A] and temperature; None for what has no state."""
        if self.inductance is None and self.winding is None:
            return None
        zero = jnp.zeros_like(travel.length)
        current = None if self.inductance is None else zero
        return current, None if self.winding is None else zero + self.winding.ambient

    def rate(self, command: Scalar, travel: Travel, memory: Any) -> tuple[Array | None, Array | None] | None:
        if memory is None:
            return None
        R, i = self.electric(command, travel, memory)
        current = heating = None
        if self.inductance is not None:
            current = (command - R * i - self.constant * travel.velocity) / self.inductance
        if self.winding is not None:
            lost = (memory[1] - self.winding.ambient) / self.winding.resistance
            heating = (R * i**2 - lost) / self.winding.capacity
        return current, heating

    def force(self, command: Scalar, travel: Travel, memory: Any) -> Scalar:
        torque = self.constant * self.electric(command, travel, memory)[1]
        return torque - (1 - self.efficiency) * jnp.abs(torque) * jnp.tanh(travel.velocity / self.friction_speed)

    def electric(self, command: Scalar, travel: Travel, memory: Any) -> tuple[Scalar, Scalar]:
        """Resistance [Ω] and current [A]."""
        R = self.resistance
        if self.winding is not None:
            R = R * (1 + self.winding.coefficient * (memory[1] - self.winding.ambient))
        if self.inductance is None:
            return R, (command - self.constant * travel.velocity) / R
        return R, memory[0]
