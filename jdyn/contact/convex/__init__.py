"""Contact as rows of an impulse problem, whose laws are convex."""

from jdyn.contact.convex.contact import ConvexContact as ConvexContact
from jdyn.contact.convex.contact import ConvexForces as ConvexForces
from jdyn.contact.convex.lagged import LaggedContact as LaggedContact
from jdyn.contact.convex.turning import Turning as Turning
