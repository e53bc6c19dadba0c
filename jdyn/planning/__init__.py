"""Motions and configurations that serve a purpose: inverse kinematics and optimal control."""

from jdyn.planning.inverse_kinematics import Reach as Reach
from jdyn.planning.inverse_kinematics import Reached as Reached
from jdyn.planning.inverse_kinematics import best_inverse_kinematics as best_inverse_kinematics
from jdyn.planning.inverse_kinematics import inverse_kinematics as inverse_kinematics
from jdyn.planning.targets import FrameTarget as FrameTarget
