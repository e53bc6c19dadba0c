"""Bundled mechanisms with published parameters, and `load`."""

from jdyn.robots.acrobot import acrobot as acrobot
from jdyn.robots.ball_on_plate import ball_on_plate as ball_on_plate
from jdyn.robots.cartpole import cartpole as cartpole
from jdyn.robots.cartpole_with_walls import cartpole_with_walls as cartpole_with_walls
from jdyn.robots.catalogue import ROBOTS as ROBOTS
from jdyn.robots.crane import crane as crane
from jdyn.robots.free_bodies import ball as ball
from jdyn.robots.free_bodies import box as box
from jdyn.robots.gripper import gripper as gripper
from jdyn.robots.hopper import hopper as hopper
from jdyn.robots.links import per_link as per_link
from jdyn.robots.load import load as load
from jdyn.robots.load import load_configurations as load_configurations
from jdyn.robots.load import load_constraints as load_constraints
from jdyn.robots.load import load_mocap_poses as load_mocap_poses
from jdyn.robots.panda import panda as panda
from jdyn.robots.pendulums import chain as chain
from jdyn.robots.pendulums import double_pendulum as double_pendulum
from jdyn.robots.pendulums import pendulum as pendulum
from jdyn.robots.prrr import prrr as prrr
from jdyn.robots.puma560 import puma560 as puma560
from jdyn.robots.quadruped import quadruped as quadruped
from jdyn.robots.stanford_arm import stanford_arm as stanford_arm
