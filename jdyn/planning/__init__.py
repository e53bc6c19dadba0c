"""Motions and configurations that serve a purpose: inverse kinematics and optimal control."""

from jdyn.planning.costs import Cost as Cost
from jdyn.planning.costs import SquaredResiduals as SquaredResiduals
from jdyn.planning.feedback import PlanFeedback as PlanFeedback
from jdyn.planning.ilqr import Optimized as Optimized
from jdyn.planning.ilqr import Plan as Plan
from jdyn.planning.ilqr import ilqr as ilqr
from jdyn.planning.inverse_kinematics import Reach as Reach
from jdyn.planning.inverse_kinematics import Reached as Reached
from jdyn.planning.inverse_kinematics import best_inverse_kinematics as best_inverse_kinematics
from jdyn.planning.inverse_kinematics import inverse_kinematics as inverse_kinematics
from jdyn.planning.targets import FrameTarget as FrameTarget
