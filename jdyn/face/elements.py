"""Force elements that are ready; `jdyn.ForceElement` is for those of users.

>>> spring = jdyn.elements.PointSpring("tip", "world", stiffness=200.0, damping=20.0, rest_length=0.5)
>>> print(spring.frame_a, spring.stiffness)
tip 200.0
"""

from jdyn.dynamics import Kinematics as Kinematics
from jdyn.elements import CarriedWeight as CarriedWeight
from jdyn.elements import Drag as Drag
from jdyn.elements import EllipsoidMedium as EllipsoidMedium
from jdyn.elements import FrameForce as FrameForce
from jdyn.elements import LuGreFriction as LuGreFriction
from jdyn.elements import Medium as Medium
from jdyn.elements import PointSpring as PointSpring
from jdyn.elements import StribeckFriction as StribeckFriction
from jdyn.elements import TendonInertia as TendonInertia
from jdyn.elements import TendonSpring as TendonSpring
