"""Constraints beyond the tree of joints: their rows, the systems that they lead to, and motion on their manifold."""

from jdyn.dynamics.constraints.acceleration import ConstrainedMotion as ConstrainedMotion
from jdyn.dynamics.constraints.acceleration import accelerations_and_forces as accelerations_and_forces
from jdyn.dynamics.constraints.acceleration import constrained_dynamics as constrained_dynamics
from jdyn.dynamics.constraints.acceleration import distance as distance
from jdyn.dynamics.constraints.acceleration import iterates as iterates
from jdyn.dynamics.constraints.acceleration import warm_start as warm_start
from jdyn.dynamics.constraints.assembly import Assembled as Assembled
from jdyn.dynamics.constraints.assembly import Assembly as Assembly
from jdyn.dynamics.constraints.assembly import AssemblyError as AssemblyError
from jdyn.dynamics.constraints.assembly import assemble as assemble
from jdyn.dynamics.constraints.conjugate_gradients import WarmStart as WarmStart
from jdyn.dynamics.constraints.projection import Change as Change
from jdyn.dynamics.constraints.projection import Projected as Projected
from jdyn.dynamics.constraints.projection import impulse_response as impulse_response
from jdyn.dynamics.constraints.projection import projected as projected
from jdyn.dynamics.constraints.rows import Rows as Rows
from jdyn.dynamics.constraints.rows import closed as closed
from jdyn.dynamics.constraints.rows import constraint_rows as constraint_rows
from jdyn.dynamics.constraints.singular import blocked as blocked
