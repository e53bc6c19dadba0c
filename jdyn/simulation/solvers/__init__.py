"""Solvers that follow the rotations of a model."""

from jdyn.simulation.solvers.manifold_solver import ManifoldSolver as ManifoldSolver
from jdyn.simulation.solvers.manifold_solver import on_manifold as on_manifold
