"""Sensors that are mounted on a frame and read in its axes."""

from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from jdyn.array import as_numbers
from jdyn.model import Name, Units
from jdyn.sensors.reading import Reading
from jdyn.sensors.sensor import Sensor, as_arrays
from jdyn.spatial import Transform


class MountedSensor(Sensor):
    """A sensor on a frame, which reads in its own axes: what such sensors have in common.

    >>> sensor = jdyn.sensors.Velocimeter("speed", "tip", jdyn.pose((0.0, 0.0, 0.5)))
    >>> isinstance(sensor, jdyn.sensors.MountedSensor)
    True
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0]))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [1. 0. 0.]

    Attributes:
        name: Key of its values.
        frame: Name of the body or frame on which it is mounted, or `"world"`.
        pose: Of the sensor in that frame; the frame itself if None.
    """

    frame: Name = eqx.field(static=True)
    pose: Transform | None = eqx.field(default=None, converter=as_arrays)

    uses_forces: ClassVar[bool] = False

    def _in_axes(self, reading: Reading, x: Float[Array, "3"]) -> Float[Array, "3"]:
        """A vector of world axes in those of the sensor."""
        return reading.pose(self.frame, self.pose).rotation.T @ x


class Gyro(MountedSensor):
    """Angular velocity [rad/s] in axes of the sensor. Fields are those of `MountedSensor`.

    >>> sensor = jdyn.sensors.Gyro("gyro", "tip")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.ones(1), jnp.array([2.0]))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [ 0. -2.  0.]
    """

    units: ClassVar[Units] = {"value": "1/s"}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        return self._in_axes(reading, reading.velocity(self.frame, self.pose)[:3])


class Velocimeter(MountedSensor):
    """Velocity of the sensor [m/s] in its axes. Fields are those of `MountedSensor`.

    >>> sensor = jdyn.sensors.Velocimeter("speed", "tip")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.ones(1), jnp.array([2.0]))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [2. 0. 0.]
    """

    units: ClassVar[Units] = {"value": "m/s"}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        return self._in_axes(reading, reading.velocity(self.frame, self.pose)[3:])


class Accelerometer(MountedSensor):
    """Acceleration relative to free fall [m/s²] in axes of the sensor: at rest it reads 9.81 upwards, in free fall
    nothing. Fields are those of `MountedSensor`.

    >>> sensor = jdyn.sensors.Accelerometer("imu", "tip")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1), a=jnp.zeros(1))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [0.   0.   9.81]
    """

    units: ClassVar[Units] = {"value": "m/s^2"}
    uses_forces: ClassVar[bool] = True

    def value(self, reading: Reading) -> Float[Array, "3"]:
        change = reading.acceleration(self.frame, self.pose)[3:]
        return self._in_axes(reading, change - reading.model.gravity)


class Magnetometer(MountedSensor):
    """Magnetic field in axes of the sensor. Fields are those of `MountedSensor`, and

    >>> sensor = jdyn.sensors.Magnetometer("compass", "tip", field=[0.0, 0.3, 0.4])
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.array([jnp.pi / 2]), jnp.zeros(1))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [0.4 0.3 0. ]

    Attributes:
        field: The field in world axes, in any unit. That of MuJoCo is (0, -0.5, 0) if left out.
    """

    units: ClassVar[Units] = {"value": "", "field": ""}

    field: Float[Array, "3"] = eqx.field(default=(0.0, -0.5, 0.0), converter=as_numbers, kw_only=True)

    def value(self, reading: Reading) -> Float[Array, "3"]:
        return self._in_axes(reading, self.field)
