"""Contact by steps that minimise a convex function of the velocity."""

from jdyn.contact.convex.contact import ConvexContact as ConvexContact
from jdyn.contact.convex.contact import ConvexForces as ConvexForces
from jdyn.contact.convex.contact import StartOfSteps as StartOfSteps
from jdyn.contact.convex.friction import Friction as Friction
from jdyn.contact.convex.impulses import Impulses as Impulses
from jdyn.contact.convex.joint_friction import JointFriction as JointFriction
from jdyn.contact.convex.law import Law as Law
from jdyn.contact.convex.law import Springs as Springs
from jdyn.contact.convex.minimum import Found as Found
from jdyn.contact.convex.minimum import Motion as Motion
from jdyn.contact.convex.minimum import minimum as minimum
from jdyn.contact.convex.terms import AtPoints as AtPoints
from jdyn.contact.convex.terms import ByRow as ByRow
from jdyn.contact.convex.terms import Term as Term
from jdyn.contact.convex.turning import Turning as Turning
