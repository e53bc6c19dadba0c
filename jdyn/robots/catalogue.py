"""Every bundled robot, by name."""

from collections.abc import Callable

from jdyn.model import Model
from jdyn.robots.acrobot import acrobot
from jdyn.robots.cartpole import cartpole
from jdyn.robots.crane import crane
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
    )
}
"""Functions that make the bundled robots, by name. Each works without arguments, and accepts `dtype`.

>>> sorted(jdyn.ROBOTS)
['acrobot', 'cartpole', 'chain', 'crane', 'double_pendulum', 'panda', 'pendulum', 'prrr', 'puma560', 'quadruped',
'stanford_arm']
>>> jdyn.ROBOTS["pendulum"](length=2.0).name
'pendulum'
"""
