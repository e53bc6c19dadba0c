"""Impulses: rows that hold or push, their laws, the problem that they make of a step, and solvers of it."""

from jdyn.dynamics.row_jacobians import DenseJacobian as DenseJacobian
from jdyn.dynamics.row_jacobians import MatrixJacobian as MatrixJacobian
from jdyn.dynamics.row_jacobians import PointJacobian as PointJacobian
from jdyn.dynamics.row_jacobians import SparseJacobian as SparseJacobian
from jdyn.dynamics.row_jacobians import UnitJacobian as UnitJacobian
from jdyn.impulses.cones import ADMM as ADMM
from jdyn.impulses.cones import ConeProblem as ConeProblem
from jdyn.impulses.cones import ConeSolution as ConeSolution
from jdyn.impulses.cones import ConeSolver as ConeSolver
from jdyn.impulses.cones import ContactMode as ContactMode
from jdyn.impulses.cones import GaussSeidel as GaussSeidel
from jdyn.impulses.conjugate_gradients import WarmStart as WarmStart
from jdyn.impulses.convex import Convex as Convex
from jdyn.impulses.friction import Friction as Friction
from jdyn.impulses.joint_friction_law import JointFriction as JointFriction
from jdyn.impulses.law import ConvexLaw as ConvexLaw
from jdyn.impulses.law import Law as Law
from jdyn.impulses.law import Springs as Springs
from jdyn.impulses.problem import ImpulseProblem as ImpulseProblem
from jdyn.impulses.problem import ImpulseSolver as ImpulseSolver
from jdyn.impulses.problem import Solution as Solution
from jdyn.impulses.rows import Rows as Rows
