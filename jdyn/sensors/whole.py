"""Sensors of the whole system: time and energy."""

from typing import ClassVar

from jaxtyping import Scalar

from jdyn.dynamics.energy import energy_of_motion, energy_of_places
from jdyn.model import Units
from jdyn.sensors.reading import Reading
from jdyn.sensors.sensor import Sensor


class _WholeSensor(Sensor):
    uses_forces: ClassVar[bool] = False


class Clock(_WholeSensor):
    """Time [s].

    >>> print(jdyn.sensors.Clock("t").value(jdyn.sensors.Reading.of(jdyn.load("pendulum"), *jnp.zeros((2, 1)), t=0.5)))
    0.5
    """

    units: ClassVar[Units] = {"value": "s"}

    def value(self, reading: Reading) -> Scalar:
        return reading.t


class KineticEnergy(_WholeSensor):
    """Kinetic energy of all bodies and rotors [J].

    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([3.0]))
    >>> print(jdyn.sensors.KineticEnergy("kinetic").value(reading).round(3))
    1.5
    """

    units: ClassVar[Units] = {"value": "J"}

    def value(self, reading: Reading) -> Scalar:
        seen = reading.kinematics
        return energy_of_motion(reading.model, seen.velocities, reading.model.expand_velocity(seen.v))


class PotentialEnergy(_WholeSensor):
    """Potential energy of gravity, zero at the world's origin, and of springs of joints [J]; without that of force
    elements.

    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1))
    >>> print(jdyn.sensors.PotentialEnergy("potential").value(reading).round(3))
    -4.905
    """

    units: ClassVar[Units] = {"value": "J"}

    def value(self, reading: Reading) -> Scalar:
        seen = reading.kinematics
        return energy_of_places(reading.model, seen.poses, reading.model.expand(seen.q))
