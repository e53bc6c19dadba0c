"""Solvers beside diffrax' own, under its interface."""

from jdyn.simulation.solver import ManifoldSolver as ManifoldSolver
from jdyn.simulation.solvers.adams_bashforth_moulton import AdamsBashforthMoulton as AdamsBashforthMoulton
from jdyn.simulation.solvers.automatic import Automatic as Automatic
from jdyn.simulation.solvers.bader_deuflhard import BaderDeuflhard as BaderDeuflhard
from jdyn.simulation.solvers.bulirsch_stoer import BulirschStoer as BulirschStoer
from jdyn.simulation.solvers.cash_karp import CashKarp as CashKarp
from jdyn.simulation.solvers.convex_euler import ConvexEuler as ConvexEuler
from jdyn.simulation.solvers.implicit_midpoint import ImplicitMidpoint as ImplicitMidpoint
from jdyn.simulation.solvers.linearly_implicit_euler import LinearlyImplicitEuler as LinearlyImplicitEuler
from jdyn.simulation.solvers.moreau_euler import MoreauEuler as MoreauEuler
from jdyn.simulation.solvers.rodas5p import Rodas5P as Rodas5P
from jdyn.simulation.solvers.rosj43 import ROSJ43 as ROSJ43
from jdyn.simulation.solvers.semi_implicit_euler import SemiImplicitEuler as SemiImplicitEuler
from jdyn.simulation.solvers.stormer_verlet import StormerVerlet as StormerVerlet
