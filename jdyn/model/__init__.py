"""Mechanisms: joint kinds, static topology, the model PyTree and its builder."""

from jdyn.model.build import Builder as Builder
from jdyn.model.build import Fixed as Fixed
from jdyn.model.build import Mimic as Mimic
from jdyn.model.build import ModelError as ModelError
from jdyn.model.build import ModelWarning as ModelWarning
from jdyn.model.build import pose as pose
from jdyn.model.joints import Ball as Ball
from jdyn.model.joints import Continuous as Continuous
from jdyn.model.joints import Free as Free
from jdyn.model.joints import Helical as Helical
from jdyn.model.joints import Joint as Joint
from jdyn.model.joints import Planar as Planar
from jdyn.model.joints import Prismatic as Prismatic
from jdyn.model.joints import Revolute as Revolute
from jdyn.model.joints import Universal as Universal
from jdyn.model.joints import motion_bias as motion_bias
from jdyn.model.model import Limits as Limits
from jdyn.model.model import Model as Model
from jdyn.model.model import checked as checked
from jdyn.model.model import taken as taken
from jdyn.model.random_tree import random_tree as random_tree
from jdyn.model.topology import WORLD as WORLD
from jdyn.model.topology import Geometry as Geometry
from jdyn.model.topology import Topology as Topology
