"""Transmissions: lengths by which actuators and springs act on several joints, and their moment arms."""

from jdyn.transmissions.adhesion import Adhesion as Adhesion
from jdyn.transmissions.adhesion import NoSurfaces as NoSurfaces
from jdyn.transmissions.adhesion import Surfaces as Surfaces
from jdyn.transmissions.fixed_tendon import FixedTendon as FixedTendon
from jdyn.transmissions.geared import Geared as Geared
from jdyn.transmissions.geared import GearedFrame as GearedFrame
from jdyn.transmissions.geared import GearedJoint as GearedJoint
from jdyn.transmissions.geared import as_transmission as as_transmission
from jdyn.transmissions.orientation import BallOrientation as BallOrientation
from jdyn.transmissions.orientation import FrameOrientation as FrameOrientation
from jdyn.transmissions.slider_crank import SliderCrank as SliderCrank
from jdyn.transmissions.spatial_tendon import PathPoint as PathPoint
from jdyn.transmissions.spatial_tendon import Pulley as Pulley
from jdyn.transmissions.spatial_tendon import SpatialTendon as SpatialTendon
from jdyn.transmissions.spatial_tendon import WrappedCylinder as WrappedCylinder
from jdyn.transmissions.spatial_tendon import WrappedSphere as WrappedSphere
from jdyn.transmissions.together import Travels as Travels
from jdyn.transmissions.together import forces_on_bodies as forces_on_bodies
from jdyn.transmissions.together import rows_of as rows_of
from jdyn.transmissions.transmission import Transmission as Transmission
