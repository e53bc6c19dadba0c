"""Constraints beyond the tree of joints.

>>> model, level = jdyn.load("double_pendulum"), [jdyn.constraints.Gear("joint2", "joint1", (0.0, -1.0))]
>>> print(jdyn.constrained_dynamics(model, level, jnp.array([0.5, -0.5]), jnp.zeros(2), jnp.zeros(2)).a.round(3))
[-5.291  5.291]
"""

from jdyn.constraints import Assembly as Assembly
from jdyn.constraints import AssemblyError as AssemblyError
from jdyn.constraints import ConstrainedMotion as ConstrainedMotion
from jdyn.constraints import warm_start as warm_start
from jdyn.model import Connect as Connect
from jdyn.model import Constraint as Constraint
from jdyn.model import Distance as Distance
from jdyn.model import Gear as Gear
from jdyn.model import Guided as Guided
from jdyn.model import Hinge as Hinge
from jdyn.model import JointSum as JointSum
from jdyn.model import PointOnPlane as PointOnPlane
from jdyn.model import PrescribedFrame as PrescribedFrame
from jdyn.model import PrescribedJoint as PrescribedJoint
from jdyn.model import RollingDisk as RollingDisk
from jdyn.model import RollingSphere as RollingSphere
from jdyn.model import VelocityCoupling as VelocityCoupling
from jdyn.model import Weld as Weld
from jdyn.model import guide as guide
