"""Controllers: modules called as `controller(t, q, v) -> tau`; references to follow: `reference(t) -> (q, v, a)`."""

from jdyn.control.controller import Controller as Controller
from jdyn.control.feedback import PD as PD
from jdyn.control.feedback import ComputedTorque as ComputedTorque
from jdyn.control.feedforward import Constant as Constant
from jdyn.control.feedforward import GravityCompensation as GravityCompensation
from jdyn.control.lqr import LQR as LQR
from jdyn.control.operational_space import OperationalSpace as OperationalSpace
from jdyn.control.references import Quintic as Quintic
from jdyn.control.references import Reference as Reference
from jdyn.control.references import Spline as Spline
from jdyn.control.riccati import riccati as riccati
from jdyn.control.tracking import FeedforwardPD as FeedforwardPD
from jdyn.control.tracking import Tracking as Tracking
