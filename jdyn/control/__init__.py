"""Controllers, called as `controller(t, q, v) -> tau`; those with a memory; actuators; references to follow."""

from jdyn.control.command_shaping import FirstOrderLag as FirstOrderLag
from jdyn.control.command_shaping import Saturated as Saturated
from jdyn.control.command_shaping import ZeroOrderHold as ZeroOrderHold
from jdyn.control.controller import Controller as Controller
from jdyn.control.controller import DynamicController as DynamicController
from jdyn.control.controller import with_memory as with_memory
from jdyn.control.driven import Driven as Driven
from jdyn.control.feedback import PD as PD
from jdyn.control.feedback import PID as PID
from jdyn.control.feedback import ComputedTorque as ComputedTorque
from jdyn.control.feedforward import Constant as Constant
from jdyn.control.feedforward import GravityCompensation as GravityCompensation
from jdyn.control.held_contacts import HeldContacts as HeldContacts
from jdyn.control.lqr import LQR as LQR
from jdyn.control.operational_space import OperationalSpace as OperationalSpace
from jdyn.control.operational_space import Posture as Posture
from jdyn.control.part_controller import PartController as PartController
from jdyn.control.references import Quintic as Quintic
from jdyn.control.references import Reference as Reference
from jdyn.control.references import Spline as Spline
from jdyn.control.riccati import riccati as riccati
from jdyn.control.singular_region import SingularRegion as SingularRegion
from jdyn.control.tracking import FeedforwardPD as FeedforwardPD
from jdyn.control.tracking import Tracking as Tracking
