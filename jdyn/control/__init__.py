"""Controllers: modules called as `controller(t, q, v) -> tau`."""

from jdyn.control.controller import Controller as Controller
from jdyn.control.feedback import PD as PD
from jdyn.control.feedback import ComputedTorque as ComputedTorque
from jdyn.control.feedforward import Constant as Constant
from jdyn.control.feedforward import GravityCompensation as GravityCompensation
