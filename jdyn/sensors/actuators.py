"""Sensors of actuators, and of transmissions such as tendons."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.model import ActuatorName, Factor, JointName, Scaling
from jdyn.sensors.reading import Reading
from jdyn.sensors.sensor import Sensor
from jdyn.transmissions import Transmission, as_transmission


class _ActuatorSensor(Sensor):
    actuator: ActuatorName = eqx.field(static=True)

    uses_forces: ClassVar[bool] = False
    uses_actuators: ClassVar[bool] = True


class ActuatorForce(_ActuatorSensor):
    """Force of an actuator along its transmission, within its limits [N or N m].

    >>> servo = jdyn.actuators.PositionServo("joint1", kp=50.0)
    >>> sensor = jdyn.sensors.ActuatorForce("load", "joint1")
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[servo], sensors=[sensor])
    >>> print(system.sense(system.state(jnp.array([0.1])))["load"])
    -5.0

    Attributes:
        name: Key of its values.
        actuator: Name of the actuator.
    """

    def value_factor(self, scaling: Scaling) -> Factor:
        return scaling.along(scaling.travels[self.actuator]).factor("J/x")

    def value(self, reading: Reading) -> Scalar | Float[Array, "3"]:
        return reading.of_actuators.forces[reading.actuator(self.actuator)]


class ActuatorPosition(_ActuatorSensor):
    """Length of the transmission of an actuator [m or rad].

    >>> motor = jdyn.actuators.Motor(jdyn.transmissions.GearedJoint("joint1", gear=20.0))
    >>> sensor = jdyn.sensors.ActuatorPosition("encoder", "joint1")
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[motor], sensors=[sensor])
    >>> print(system.sense(system.state(jnp.array([0.1])))["encoder"])
    2.0

    Attributes:
        name: Key of its values.
        actuator: Name of the actuator.
    """

    def value_factor(self, scaling: Scaling) -> Factor:
        return scaling.travels[self.actuator]

    def value(self, reading: Reading) -> Scalar | Float[Array, "3"]:
        return reading.of_actuators.lengths[reading.actuator(self.actuator)]


class ActuatorVelocity(_ActuatorSensor):
    """Rate of the length of the transmission of an actuator [m/s or rad/s].

    >>> motor = jdyn.actuators.Motor(jdyn.transmissions.GearedJoint("joint1", gear=20.0))
    >>> sensor = jdyn.sensors.ActuatorVelocity("tachometer", "joint1")
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[motor], sensors=[sensor])
    >>> print(system.sense(system.state(v=jnp.array([0.1])))["tachometer"])
    2.0

    Attributes:
        name: Key of its values.
        actuator: Name of the actuator.
    """

    def value_factor(self, scaling: Scaling) -> Factor:
        return scaling.along(scaling.travels[self.actuator]).factor("x/s")

    def value(self, reading: Reading) -> Scalar | Float[Array, "3"]:
        return reading.of_actuators.velocities[reading.actuator(self.actuator)]


class JointActuatorForce(Sensor):
    """Generalized force of all actuators on a joint [N m or N]: a scalar if it has one degree of freedom.

    >>> motor = jdyn.actuators.PositionServo(jdyn.transmissions.GearedJoint("joint1", gear=2.0), kp=50.0)
    >>> sensor = jdyn.sensors.JointActuatorForce("torque", "joint1")
    >>> system = jdyn.System(jdyn.load("pendulum"), actuators=[motor], sensors=[sensor])
    >>> print(system.sense(system.state(jnp.array([0.1])))["torque"])
    -20.0

    Attributes:
        name: Key of its values.
        joint: Name of a joint that follows no other one.
    """

    joint: JointName = eqx.field(static=True)

    uses_forces: ClassVar[bool] = False
    uses_actuators: ClassVar[bool] = True

    def value_factor(self, scaling: Scaling) -> Factor:
        return scaling.along(scaling.joint(self.joint)).factor("J/x")

    def value(self, reading: Reading) -> Float[Array, "*coordinates"]:
        topology = reading.model.topology
        body = topology.joint(self.joint)
        places = [
            topology.independent_v.index(k) for k in range(topology.v_offsets[body], topology.v_offsets[body + 1])
        ]
        force = reading.of_actuators.generalized[jnp.array(places)]
        return force[0] if len(places) == 1 else force


class TransmissionPosition(Sensor):
    """Length of a transmission, such as a tendon [m or rad].

    >>> sensor = jdyn.sensors.TransmissionPosition("turns", jdyn.transmissions.GearedJoint("joint1", gear=20.0))
    >>> system = jdyn.System(jdyn.load("pendulum"), sensors=[sensor])
    >>> print(system.sense(system.state(jnp.array([0.1])))["turns"])
    2.0

    Attributes:
        name: Key of its values.
        transmission: The transmission; the name of a joint stands for its coordinate.
    """

    transmission: Transmission = eqx.field(converter=as_transmission)

    uses_forces: ClassVar[bool] = False

    def value_factor(self, scaling: Scaling) -> Factor:
        return self.transmission.travel_factor(scaling)

    def value(self, reading: Reading) -> Scalar:
        return self.transmission.length(reading.kinematics)


class TransmissionVelocity(Sensor):
    """Rate of the length of a transmission, such as a tendon [m/s or rad/s].

    >>> sensor = jdyn.sensors.TransmissionVelocity("speed", jdyn.transmissions.GearedJoint("joint1", gear=20.0))
    >>> system = jdyn.System(jdyn.load("pendulum"), sensors=[sensor])
    >>> print(system.sense(system.state(v=jnp.array([0.1])))["speed"])
    2.0

    Attributes:
        name: Key of its values.
        transmission: The transmission; the name of a joint stands for its coordinate.
    """

    transmission: Transmission = eqx.field(converter=as_transmission)

    uses_forces: ClassVar[bool] = False

    def value_factor(self, scaling: Scaling) -> Factor:
        return scaling.along(self.transmission.travel_factor(scaling)).factor("x/s")

    def value(self, reading: Reading) -> Scalar:
        return self.transmission.moments(reading.kinematics) @ reading.kinematics.v
