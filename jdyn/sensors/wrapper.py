"""Sensors around others."""

import equinox as eqx

from jdyn.model import Factor, Name, Scaling
from jdyn.sensors.sensor import Sensor
from jdyn.terminal.messages import short


class Wrapper(Sensor):
    """A sensor around another one, whose name it has and whose needs are its own.

    Attributes:
        sensor: The sensor within.
    """

    name: Name = eqx.field(static=True, init=False)
    sensor: Sensor

    def __post_init__(self):
        if not isinstance(self.sensor, Sensor):
            raise ValueError(
                f"{type(self).__name__}.sensor: expected a sensor, such as jdyn.sensors.Gyro(...), got "
                f"{short(self.sensor)}"
            )
        self.name = self.sensor.name

    def value_factor(self, scaling: Scaling) -> Factor:
        return self.sensor.value_factor(scaling)

    @property
    def uses_forces(self) -> bool:
        return self.sensor.uses_forces

    @property
    def uses_actuators(self) -> bool:
        return self.sensor.uses_actuators

    @property
    def uses_shapes(self) -> bool:
        return self.sensor.uses_shapes
