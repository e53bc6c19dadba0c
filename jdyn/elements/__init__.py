"""Force elements: springs, dampers, friction, drag, thrusters, stops, and those of users."""

from jdyn.dynamics import Kinematics as Kinematics
from jdyn.elements.carried_weight import CarriedWeight as CarriedWeight
from jdyn.elements.drag import Drag as Drag
from jdyn.elements.element import ForceElement as ForceElement
from jdyn.elements.elements import Elements as Elements
from jdyn.elements.ellipsoid_medium import EllipsoidMedium as EllipsoidMedium
from jdyn.elements.frame_force import FrameForce as FrameForce
from jdyn.elements.joint_friction import LuGreFriction as LuGreFriction
from jdyn.elements.joint_friction import StribeckFriction as StribeckFriction
from jdyn.elements.medium import Medium as Medium
from jdyn.elements.point_spring import PointSpring as PointSpring
from jdyn.elements.stops import Stops as Stops
from jdyn.elements.stops import along_ends as along_ends
from jdyn.elements.stops import approach as approach
from jdyn.elements.stops import turns as turns
from jdyn.elements.tendon_inertia import TendonInertia as TendonInertia
from jdyn.elements.tendon_spring import TendonSpring as TendonSpring
