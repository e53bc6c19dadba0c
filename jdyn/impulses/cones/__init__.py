"""Rigid contact as complementarity on cones of friction: the problem, and solvers of it."""

from jdyn.impulses.cones.admm import ADMM as ADMM
from jdyn.impulses.cones.gauss_seidel import GaussSeidel as GaussSeidel
from jdyn.impulses.cones.problem import ConeProblem as ConeProblem
from jdyn.impulses.cones.problem import ContactMode as ContactMode
from jdyn.impulses.cones.solver import ConeSolution as ConeSolution
from jdyn.impulses.cones.solver import ConeSolver as ConeSolver
