"""Actuators between the commands of a controller and a mechanism.

>>> arm = jdyn.load("double_pendulum")
>>> servos = [jdyn.actuators.PositionServo(joint, kp=200.0, kd=20.0) for joint in arm.joint_names]
>>> system = jdyn.System(arm, actuators=servos, controller=lambda t, q, v: jnp.array([0.5, -0.5]))
>>> print(jdyn.simulate(system, system.state(), 3.0).q[-1].round(1))
[ 0.5 -0.5]
"""

from jdyn.actuators import Activation as Activation
from jdyn.actuators import Actuator as Actuator
from jdyn.actuators import AffineActuator as AffineActuator
from jdyn.actuators import Bristles as Bristles
from jdyn.actuators import Cogging as Cogging
from jdyn.actuators import Damper as Damper
from jdyn.actuators import DCMotor as DCMotor
from jdyn.actuators import Delay as Delay
from jdyn.actuators import ElasticDrive as ElasticDrive
from jdyn.actuators import GainedActuator as GainedActuator
from jdyn.actuators import Integrator as Integrator
from jdyn.actuators import Lag as Lag
from jdyn.actuators import Motor as Motor
from jdyn.actuators import MotorState as MotorState
from jdyn.actuators import Muscle as Muscle
from jdyn.actuators import MuscleActivation as MuscleActivation
from jdyn.actuators import OrientationServo as OrientationServo
from jdyn.actuators import PIDServo as PIDServo
from jdyn.actuators import PositionServo as PositionServo
from jdyn.actuators import SlewLimit as SlewLimit
from jdyn.actuators import Travel as Travel
from jdyn.actuators import VelocityServo as VelocityServo
from jdyn.actuators import Winding as Winding
