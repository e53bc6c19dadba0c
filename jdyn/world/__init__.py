"""Worlds of objects that move by themselves until they touch."""

from jdyn.world.coordinator import Coordinator as Coordinator
from jdyn.world.four_parts import DynamicPart as DynamicPart
from jdyn.world.four_parts import GeometricPart as GeometricPart
from jdyn.world.four_parts import GraphicalPart as GraphicalPart
from jdyn.world.four_parts import KinematicPart as KinematicPart
from jdyn.world.impacts import Impact as Impact
from jdyn.world.impacts import Impacts as Impacts
from jdyn.world.motion import ObjectMotion as ObjectMotion
from jdyn.world.motion import WorldMotion as WorldMotion
from jdyn.world.object import WorldObject as WorldObject
from jdyn.world.scenes import SCENES as SCENES
from jdyn.world.scenes import Scene as Scene
from jdyn.world.scenes import billiards as billiards
from jdyn.world.scenes import newtons_cradle as newtons_cradle
from jdyn.world.scenes import two_pumas as two_pumas
from jdyn.world.world import World as World
