"""Sensors, named outputs of a system: `jdyn.System(model, sensors=[...])` takes any number of them.

>>> imu = [jdyn.sensors.Gyro("gyro", "tip"), jdyn.sensors.Accelerometer("accelerometer", "tip")]
>>> system = jdyn.System(jdyn.load("pendulum"), sensors=imu)
>>> motion = jdyn.simulate(system, system.state(jnp.ones(1)), 1.0)
>>> print(motion.sensors["gyro"].shape == (*motion.ts.shape, 3), motion.sensors["accelerometer"][0].round(2) + 0.0)
True [-4.13  0.    5.3 ]
"""

from jdyn.sensors import Accelerometer as Accelerometer
from jdyn.sensors import ActuatorForce as ActuatorForce
from jdyn.sensors import ActuatorPosition as ActuatorPosition
from jdyn.sensors import ActuatorReadings as ActuatorReadings
from jdyn.sensors import ActuatorVelocity as ActuatorVelocity
from jdyn.sensors import Clock as Clock
from jdyn.sensors import Distance as Distance
from jdyn.sensors import DistanceNormal as DistanceNormal
from jdyn.sensors import DistancePoints as DistancePoints
from jdyn.sensors import Force as Force
from jdyn.sensors import FrameAngularAcceleration as FrameAngularAcceleration
from jdyn.sensors import FrameAngularVelocity as FrameAngularVelocity
from jdyn.sensors import FrameAxis as FrameAxis
from jdyn.sensors import FrameLinearAcceleration as FrameLinearAcceleration
from jdyn.sensors import FrameLinearVelocity as FrameLinearVelocity
from jdyn.sensors import FramePosition as FramePosition
from jdyn.sensors import FrameQuaternion as FrameQuaternion
from jdyn.sensors import FrameSensor as FrameSensor
from jdyn.sensors import Gyro as Gyro
from jdyn.sensors import Imperfect as Imperfect
from jdyn.sensors import JointActuatorForce as JointActuatorForce
from jdyn.sensors import JointPosition as JointPosition
from jdyn.sensors import JointVelocity as JointVelocity
from jdyn.sensors import KineticEnergy as KineticEnergy
from jdyn.sensors import Limb as Limb
from jdyn.sensors import Magnetometer as Magnetometer
from jdyn.sensors import MountedSensor as MountedSensor
from jdyn.sensors import PointLoads as PointLoads
from jdyn.sensors import PotentialEnergy as PotentialEnergy
from jdyn.sensors import Rangefinder as Rangefinder
from jdyn.sensors import Reading as Reading
from jdyn.sensors import Sampled as Sampled
from jdyn.sensors import Sensor as Sensor
from jdyn.sensors import SubtreeAngularMomentum as SubtreeAngularMomentum
from jdyn.sensors import SubtreeCenterOfMass as SubtreeCenterOfMass
from jdyn.sensors import SubtreeLinearVelocity as SubtreeLinearVelocity
from jdyn.sensors import Surroundings as Surroundings
from jdyn.sensors import Torque as Torque
from jdyn.sensors import Touch as Touch
from jdyn.sensors import TransmissionPosition as TransmissionPosition
from jdyn.sensors import TransmissionVelocity as TransmissionVelocity
from jdyn.sensors import Velocimeter as Velocimeter
