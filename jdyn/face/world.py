"""Worlds: objects, each a system, that move by themselves until they touch; see `jdyn.World`.

>>> world = jdyn.World(contact=None).with_object("arm", jdyn.load("pendulum"), q=[1.0])
>>> motion = world.simulate(1.0)
>>> print(motion["arm"].q[-1].round(3))
[-0.902]
"""

from jdyn.world import Coordinator as Coordinator
from jdyn.world import DynamicPart as DynamicPart
from jdyn.world import GeometricPart as GeometricPart
from jdyn.world import GraphicalPart as GraphicalPart
from jdyn.world import Impact as Impact
from jdyn.world import Impacts as Impacts
from jdyn.world import KinematicPart as KinematicPart
from jdyn.world import ObjectMotion as ObjectMotion
from jdyn.world import Scene as Scene
from jdyn.world import WorldMotion as WorldMotion
from jdyn.world import WorldObject as WorldObject
from jdyn.world import billiards as billiards
from jdyn.world import newtons_cradle as newtons_cradle
from jdyn.world import two_pumas as two_pumas
