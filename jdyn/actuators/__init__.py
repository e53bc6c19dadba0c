"""Actuators: motors, servos and muscles between the commands of a controller and a mechanism."""

from jdyn.actuators.activation import Activation as Activation
from jdyn.actuators.activation import Delay as Delay
from jdyn.actuators.activation import Integrator as Integrator
from jdyn.actuators.activation import Lag as Lag
from jdyn.actuators.activation import MuscleActivation as MuscleActivation
from jdyn.actuators.activation import SlewLimit as SlewLimit
from jdyn.actuators.actuator import Actuator as Actuator
from jdyn.actuators.actuator import Travel as Travel
from jdyn.actuators.actuators import Actuators as Actuators
from jdyn.actuators.dc_motor import Bristles as Bristles
from jdyn.actuators.dc_motor import Cogging as Cogging
from jdyn.actuators.dc_motor import DCMotor as DCMotor
from jdyn.actuators.dc_motor import MotorState as MotorState
from jdyn.actuators.dc_motor import Winding as Winding
from jdyn.actuators.elastic import ElasticDrive as ElasticDrive
from jdyn.actuators.gained import AffineActuator as AffineActuator
from jdyn.actuators.gained import Damper as Damper
from jdyn.actuators.gained import GainedActuator as GainedActuator
from jdyn.actuators.gained import Motor as Motor
from jdyn.actuators.gained import PositionServo as PositionServo
from jdyn.actuators.gained import VelocityServo as VelocityServo
from jdyn.actuators.muscle import Muscle as Muscle
from jdyn.actuators.orientation import OrientationServo as OrientationServo
from jdyn.actuators.pid import PIDServo as PIDServo
