"""Constraints beyond the tree of joints: their rows, the systems that they lead to, and motion on their manifold."""

from jdyn.constraints.acceleration import ConstrainedMotion as ConstrainedMotion
from jdyn.constraints.acceleration import accelerations_and_forces as accelerations_and_forces
from jdyn.constraints.acceleration import constrained_dynamics as constrained_dynamics
from jdyn.constraints.acceleration import distance as distance
from jdyn.constraints.acceleration import iterates as iterates
from jdyn.constraints.acceleration import warm_start as warm_start
from jdyn.constraints.assembly import Assembled as Assembled
from jdyn.constraints.assembly import Assembly as Assembly
from jdyn.constraints.assembly import AssemblyError as AssemblyError
from jdyn.constraints.assembly import assemble as assemble
from jdyn.constraints.projection import Change as Change
from jdyn.constraints.projection import Projected as Projected
from jdyn.constraints.projection import impulse_response as impulse_response
from jdyn.constraints.projection import projected as projected
from jdyn.constraints.rows import ConstraintRows as ConstraintRows
from jdyn.constraints.rows import closed as closed
from jdyn.constraints.rows import constraint_rows as constraint_rows
from jdyn.constraints.singular import blocked as blocked
