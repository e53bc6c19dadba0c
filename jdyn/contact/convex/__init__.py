"""Contact by steps that minimise a convex function of the velocity."""

from jdyn.contact.convex.contact import ConvexContact as ConvexContact
from jdyn.contact.convex.contact import ConvexForces as ConvexForces
from jdyn.contact.convex.impulses import Impulses as Impulses
from jdyn.contact.convex.minimum import Found as Found
from jdyn.contact.convex.minimum import Motion as Motion
from jdyn.contact.convex.minimum import minimum as minimum
