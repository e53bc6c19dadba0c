"""Every bundled robot, by name."""

from collections.abc import Callable

from jdyn.model import Model
from jdyn.robots.acrobot import acrobot
from jdyn.robots.ball_on_plate import ball_on_plate
from jdyn.robots.cartpole import cartpole
from jdyn.robots.cartpole_with_walls import cartpole_with_walls
from jdyn.robots.crane import crane
from jdyn.robots.free_bodies import ball, box
from jdyn.robots.gripper import gripper
from jdyn.robots.hopper import hopper
from jdyn.robots.panda import panda
from jdyn.robots.pendulums import chain, double_pendulum, pendulum
from jdyn.robots.prrr import prrr
from jdyn.robots.puma560 import puma560
from jdyn.robots.quadruped import quadruped
from jdyn.robots.stanford_arm import stanford_arm

ROBOTS: dict[str, Callable[..., Model]] = {
    maker.__name__: maker
    for maker in (
        pendulum,
        double_pendulum,
        cartpole,
        acrobot,
        prrr,
        chain,
        puma560,
        stanford_arm,
        panda,
        quadruped,
        crane,
        ball,
        box,
        ball_on_plate,
        cartpole_with_walls,
        gripper,
        hopper,
    )
}
"""Functions that make the bundled robots, by name. Each works without arguments, and accepts `dtype`.

>>> sorted(jdyn.ROBOTS)
['acrobot', 'ball', 'ball_on_plate', 'box', 'cartpole', 'cartpole_with_walls', 'chain', 'crane', 'double_pendulum',
'gripper', 'hopper', 'panda', 'pendulum', 'prrr', 'puma560', 'quadruped', 'stanford_arm']
>>> jdyn.ROBOTS["pendulum"](length=2.0).name
'pendulum'
"""
