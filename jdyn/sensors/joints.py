"""Sensors of joints."""

from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from jdyn.model import Factor, JointName, Scaling
from jdyn.sensors.reading import Reading
from jdyn.sensors.sensor import Sensor


class _JointSensor(Sensor):
    joint: JointName = eqx.field(static=True)

    uses_forces: ClassVar[bool] = False


class JointPosition(_JointSensor):
    """Coordinates of a joint [rad or m]: a scalar if it has one, else an array, as `q` has them.

    >>> sensor = jdyn.sensors.JointPosition("angle", "joint2")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("double_pendulum"), jnp.array([0.1, 0.2]), jnp.zeros(2))
    >>> print(sensor.value(reading))
    0.2

    Attributes:
        name: Key of its values.
        joint: Name of a joint, which may follow another one.
    """

    def value_factor(self, scaling: Scaling) -> Factor:
        return scaling.joint(self.joint)

    def value(self, reading: Reading) -> Float[Array, "*coordinates"]:
        model, topology = reading.model, reading.model.topology
        q = model.expand(reading.kinematics.q)[topology.q_slice(topology.joint(self.joint))]
        return q[0] if len(q) == 1 else q


class JointVelocity(_JointSensor):
    """Velocities of a joint [rad/s or m/s]: a scalar if it has one degree of freedom, else an array, as `v` has them.

    >>> sensor = jdyn.sensors.JointVelocity("speed", "joint2")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("double_pendulum"), jnp.zeros(2), jnp.array([0.1, 0.2]))
    >>> print(sensor.value(reading))
    0.2

    Attributes:
        name: Key of its values.
        joint: Name of a joint, which may follow another one.
    """

    def value_factor(self, scaling: Scaling) -> Factor:
        return scaling.along(scaling.joint(self.joint)).factor("x/s")

    def value(self, reading: Reading) -> Float[Array, "*coordinates"]:
        model, topology = reading.model, reading.model.topology
        v = model.expand_velocity(reading.kinematics.v)[topology.v_slice(topology.joint(self.joint))]
        return v[0] if len(v) == 1 else v
