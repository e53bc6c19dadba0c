"""Transmissions: lengths by which actuators and springs act on a mechanism, and their moment arms.

>>> wrist = jdyn.transmissions.GearedJoint("joint2", gear=50.0)
>>> arm = jdyn.elements.Kinematics.of(jdyn.load("double_pendulum"), jnp.array([0.3, 0.1]), jnp.zeros(2))
>>> print(wrist.length(arm), wrist.moments(arm))
5.0 [ 0. 50.]
"""

from jdyn.transmissions import Adhesion as Adhesion
from jdyn.transmissions import BallOrientation as BallOrientation
from jdyn.transmissions import FixedTendon as FixedTendon
from jdyn.transmissions import FrameOrientation as FrameOrientation
from jdyn.transmissions import Geared as Geared
from jdyn.transmissions import GearedFrame as GearedFrame
from jdyn.transmissions import GearedJoint as GearedJoint
from jdyn.transmissions import PathPoint as PathPoint
from jdyn.transmissions import Pulley as Pulley
from jdyn.transmissions import SliderCrank as SliderCrank
from jdyn.transmissions import SpatialTendon as SpatialTendon
from jdyn.transmissions import Transmission as Transmission
from jdyn.transmissions import WrappedCylinder as WrappedCylinder
from jdyn.transmissions import WrappedSphere as WrappedSphere
