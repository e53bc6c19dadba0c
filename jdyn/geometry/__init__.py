"""Shapes, how far apart they are, and the points at which they touch; nothing of models."""

from jdyn.geometry.distance import separation as separation
from jdyn.geometry.field_distance import field_separation as field_separation
from jdyn.geometry.height_field import HeightField as HeightField
from jdyn.geometry.hull import ConvexHull as ConvexHull
from jdyn.geometry.patches import contact_patch as contact_patch
from jdyn.geometry.rays import RayHit as RayHit
from jdyn.geometry.rays import ray_hit as ray_hit
from jdyn.geometry.separation import Separation as Separation
from jdyn.geometry.shapes import Box as Box
from jdyn.geometry.shapes import Capsule as Capsule
from jdyn.geometry.shapes import Convex as Convex
from jdyn.geometry.shapes import Cylinder as Cylinder
from jdyn.geometry.shapes import Ellipsoid as Ellipsoid
from jdyn.geometry.shapes import HalfSpace as HalfSpace
from jdyn.geometry.shapes import Plane as Plane
from jdyn.geometry.shapes import Sphere as Sphere
