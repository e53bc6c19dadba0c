"""Motors by direct current."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.actuators.actuator import Actuator, Travel
from jdyn.actuators.numbers import limits, not_negative, number, positive
from jdyn.array import with_fields
from jdyn.model import Factor, Scaling, Units


def _positive_or_none(what: str) -> Callable[[Any], Array | None]:
    """Converter of a field whose numbers are positive; None stays None."""
    return lambda x: None if x is None else positive(what)(x)


def _bare(servo: Actuator | None) -> Actuator | None:
    """A servo without what the motor has: transmission and name."""
    return servo if servo is None else with_fields(servo, transmission=None, name="")


class Winding(eqx.Module):
    """The heat of a winding, whose resistance grows with it: C dT/dt = R(T) i² − (T − T₀) / R_th.

    >>> winding = jdyn.actuators.Winding(capacity=10.0, resistance=2.0)
    >>> motor = jdyn.actuators.DCMotor("joint1", resistance=1.0, constant=0.1, winding=winding)
    >>> print(motor.start(jdyn.actuators.Travel(jnp.array(0.0), jnp.array(0.0))))
    MotorState(current=None, temperature=Array(25., dtype=float64), bending=None, servo=None)

    Attributes:
        capacity: C [J/K].
        resistance: R_th, from the winding to what is around it [K/W].
        ambient: T₀, at which a motion starts [K or °C].
        coefficient: How much of the motor's resistance is added for each degree [1/K]; that of copper.
        reference: Temperature at which the motor's resistance is given; T₀ if left out.
    """

    units: ClassVar[Units] = {
        "capacity": "J", "resistance": "s/J", "ambient": "", "coefficient": "", "reference": ""
    }  # fmt: skip

    capacity: Scalar = eqx.field(converter=positive("Winding.capacity"))
    resistance: Scalar = eqx.field(converter=positive("Winding.resistance"))
    ambient: Scalar = eqx.field(default=25.0, converter=number("Winding.ambient"))
    coefficient: Scalar = eqx.field(default=0.00393, converter=number("Winding.coefficient"))
    reference: Scalar | None = eqx.field(
        default=None, converter=lambda x: None if x is None else number("Winding.reference")(x)
    )

    def growth(self, temperature: Scalar) -> Scalar:
        """Resistance at a temperature, in that of the motor."""
        reference = self.ambient if self.reference is None else self.reference
        return 1 + self.coefficient * (temperature - reference)


class Cogging(eqx.Module):
    """Torque of magnets that pull at iron: A sin(n l + φ), by the length l of the transmission.

    >>> magnets = jdyn.actuators.Cogging(amplitude=0.02, count=12)
    >>> motor = jdyn.actuators.DCMotor("joint1", resistance=1.0, constant=0.1, cogging=magnets)
    >>> print(motor.limited_force(0.0, jdyn.actuators.Travel(jnp.array(jnp.pi / 24), jnp.array(0.0)), None).round(3))
    0.02

    Attributes:
        amplitude: A [N m].
        count: n, periods in a radian of the transmission; of the motor, times the gear.
        phase: φ [rad].
    """

    units: ClassVar[Units] = {"amplitude": "J/x", "count": "1/x", "phase": ""}

    amplitude: Scalar = eqx.field(converter=number("Cogging.amplitude"))
    count: Scalar = eqx.field(converter=number("Cogging.count"))
    phase: Scalar = eqx.field(default=0.0, converter=number("Cogging.phase"))

    def torque(self, length: Scalar) -> Scalar:
        """[N m]."""
        return self.amplitude * jnp.sin(self.count * length + self.phase)


class Bristles(eqx.Module):
    """Dry friction of a motor by the LuGre model, as `jdyn.elements.LuGreFriction` has it: dz/dt = ω − σ₀ |ω| z / g(ω)
    and the torque −(σ₀ z + σ₁ dz/dt), with g(ω) = F_c + (F_s − F_c) exp(−(ω / ω_s)²).

    >>> brushes = jdyn.actuators.Bristles(coulomb=0.1, static=0.2, stribeck_speed=0.1, stiffness=100.0)
    >>> print(brushes.rate(jnp.array(2.0), jnp.array(0.0)), brushes.torque(jnp.array(0.0), jnp.array(1e-3)))
    2.0 -0.1

    Attributes:
        coulomb: F_c [N m].
        static: F_s [N m].
        stribeck_speed: ω_s [rad/s].
        stiffness: σ₀ [N m/rad].
        damping: σ₁ [N m s/rad].
    """

    units: ClassVar[Units] = {
        "coulomb": "J/x", "static": "J/x", "stribeck_speed": "x/s", "stiffness": "J/x^2", "damping": "J s/x^2"
    }  # fmt: skip

    coulomb: Scalar = eqx.field(converter=positive("Bristles.coulomb"))
    static: Scalar = eqx.field(converter=positive("Bristles.static"))
    stribeck_speed: Scalar = eqx.field(converter=positive("Bristles.stribeck_speed"))
    stiffness: Scalar = eqx.field(converter=positive("Bristles.stiffness"))
    damping: Scalar = eqx.field(default=0.0, converter=not_negative("Bristles.damping"))

    def rate(self, velocity: Scalar, bending: Scalar) -> Scalar:
        """dz/dt."""
        fading = jnp.exp(-((velocity / self.stribeck_speed) ** 2))
        sliding = self.coulomb + (self.static - self.coulomb) * fading
        return velocity - self.stiffness * jnp.abs(velocity) * bending / sliding

    def torque(self, velocity: Scalar, bending: Scalar) -> Scalar:
        """[N m]."""
        return -self.stiffness * bending - self.damping * self.rate(velocity, bending)


class MotorState(NamedTuple):
    """State of a `jdyn.actuators.DCMotor`; None for what it does not have.

    >>> motor = jdyn.actuators.DCMotor("joint1", resistance=1.0, constant=0.1, inductance=0.01)
    >>> print(motor.start(jdyn.actuators.Travel(jnp.array(0.0), jnp.array(0.0))).current)
    0.0

    Attributes:
        current: [A].
        temperature: Of the winding, in the unit of its ambient one.
        bending: z of its bristles [rad].
        servo: State of the servo that drives it.
    """

    current: Any = None
    temperature: Any = None
    bending: Any = None
    servo: Any = None


class DCMotor(Actuator):
    """The command is a voltage: L di/dt = u − R i − k ω, and the torque is k i.

    ω is the rate of the transmission, whose gear is that of the motor. Without an inductance, the current follows at
    once. The inertia J of its rotor is `armature` of the joint, gear² J, or a `jdyn.Rotor`, which also reacts on what
    carries it.

    A gear of efficiency η loses (1 − η) |k i|, as dry friction does: what drives has η times the torque, and what is
    driven feels 2 − η times the torque, which is 1/η but for the square of what is lost.

    With a `servo` the command is that of the servo, and u the voltage for the torque τ that this wants of a motor
    without inductance, u = R τ / k + k ω. `force_range` limits the torque of the current, to which cogging and friction
    are added.

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
        servo: What drives it, such as a `jdyn.actuators.PIDServo`, at the motor's transmission whatever its own; None
            for a command that is the voltage.
        voltage_range: Limits of u [V]; None for no limits.
        current_rate: Largest |di/dt| of a motor with an inductance [A/s]; None for no limit.
        cogging: None for a motor that does not cog.
        bristles: Dry friction; None for none.
    """

    # Volts stay what they are: an ampere is J/s, an ohm s/J.
    units: ClassVar[Units] = {
        "command": "", "resistance": "s/J", "constant": "s/x", "inductance": "s^2/J", "efficiency": "",
        "friction_speed": "x/s", "voltage_range": "", "current_rate": "J/s^2",
    }  # fmt: skip

    resistance: Scalar = eqx.field(converter=positive("DCMotor.resistance"))
    constant: Scalar = eqx.field(converter=number("DCMotor.constant"))
    inductance: Scalar | None = eqx.field(default=None, converter=_positive_or_none("DCMotor.inductance"))
    efficiency: Scalar = eqx.field(default=1.0, converter=number("DCMotor.efficiency"))
    friction_speed: Scalar = eqx.field(default=0.1, converter=positive("DCMotor.friction_speed"))
    winding: Winding | None = None
    servo: Actuator | None = eqx.field(default=None, converter=_bare, kw_only=True)
    voltage_range: Float[Array, "2"] | None = eqx.field(
        default=None, converter=limits("DCMotor.voltage_range"), kw_only=True
    )
    current_rate: Scalar | None = eqx.field(
        default=None, converter=_positive_or_none("DCMotor.current_rate"), kw_only=True
    )
    cogging: Cogging | None = eqx.field(default=None, kw_only=True)
    bristles: Bristles | None = eqx.field(default=None, kw_only=True)

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("",) if self.servo is None else self.servo.inputs

    def command_factors(self, scaling: Scaling) -> tuple[Factor, ...]:
        return super().command_factors(scaling) if self.servo is None else self.servo.command_factors(scaling)

    @property
    def command_limits(self) -> Float[Array, "*commands 2"] | None:
        """Its own limits and those of the servo, whichever are narrower."""
        own, inner = self.command_range, None if self.servo is None else self.servo.command_limits
        if own is None or inner is None:
            return inner if own is None else own
        return jnp.stack([jnp.maximum(own[..., 0], inner[..., 0]), jnp.minimum(own[..., 1], inner[..., 1])], axis=-1)

    def start(self, travel: Travel) -> MotorState | None:
        """State where a motion starts: no current, ambient temperature, straight bristles."""
        zero = jnp.zeros_like(travel.length)
        return _or_none(
            MotorState(
                None if self.inductance is None else zero,
                None if self.winding is None else zero + self.winding.ambient,
                None if self.bristles is None else zero,
                None if self.servo is None else self.servo.start(travel),
            )
        )

    def rate(self, command: Scalar, travel: Travel, memory: Any) -> MotorState | None:
        if memory is None:
            return None
        memory = MotorState(*memory)
        current = heating = None
        R, i = self.electric(command, travel, memory)
        if self.inductance is not None:
            current = (
                self.voltage(command, travel, memory) - R * i - self.constant * travel.velocity
            ) / self.inductance
            if self.current_rate is not None:
                current = jnp.clip(current, -self.current_rate, self.current_rate)
        if self.winding is not None:
            lost = (memory.temperature - self.winding.ambient) / self.winding.resistance
            heating = (R * i**2 - lost) / self.winding.capacity
        bending = None if self.bristles is None else self.bristles.rate(travel.velocity, memory.bending)
        servo = None if self.servo is None else self.servo.limited_rate(command, travel, memory.servo)
        return MotorState(current, heating, bending, servo)

    def force(self, command: Scalar, travel: Travel, memory: Any) -> Scalar:
        torque = self.constant * self.electric(command, travel, memory)[1]
        return torque - (1 - self.efficiency) * jnp.abs(torque) * jnp.tanh(travel.velocity / self.friction_speed)

    def limited_force(self, command: Scalar, travel: Travel, memory: Any) -> Scalar:
        force = super().limited_force(command, travel, memory)
        if self.cogging is not None:
            force = force + self.cogging.torque(travel.length)
        if self.bristles is not None:
            force = force + self.bristles.torque(travel.velocity, MotorState(*memory).bending)
        return force

    def voltage(self, command: Scalar, travel: Travel, memory: Any) -> Scalar:
        """u of a command [V]."""
        u = command
        if self.servo is not None:
            wanted = self.servo.limited_force(command, travel, None if memory is None else MotorState(*memory).servo)
            u = self.resistance * wanted / self.constant + self.constant * travel.velocity
        return u if self.voltage_range is None else jnp.clip(u, *self.voltage_range)

    def electric(self, command: Scalar, travel: Travel, memory: Any) -> tuple[Scalar, Scalar]:
        """Resistance [Ω] and current [A]."""
        state = MotorState() if memory is None else MotorState(*memory)
        R = self.resistance
        if self.winding is not None:
            R = R * self.winding.growth(state.temperature)
        if self.inductance is None:
            return R, (self.voltage(command, travel, memory) - self.constant * travel.velocity) / R
        return R, state.current


def _or_none(state: MotorState) -> MotorState | None:
    return state if jax.tree.leaves(state) else None
