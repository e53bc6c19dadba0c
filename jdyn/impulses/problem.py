"""The impulse problem of a step: change of the velocity and impulses of rows."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, Scalar

from jdyn.array import Structure
from jdyn.execution.compiled import precise
from jdyn.impulses.rows import Rows

Vector = Float[Array, " nv"]


class ImpulseProblem(Structure):
    """A dv = p + Σ Jᵀ γ with the laws γ of all rows.

    Attributes:
        A: Inertia, with the added inertia of springs and dampers in joints; symmetric and positive definite.
        p: A times the change of the velocity without any row.
        rows: Rows of contact, joints and constraints.
    """

    A: Float[Array, "nv nv"]
    p: Vector
    rows: tuple[Rows, ...]

    @property
    def size(self) -> Scalar:
        """About the norm of the change without any row, by A."""
        return jnp.sqrt(jnp.sum(self.p**2 / jnp.diag(self.A)))

    def balance(self, dv: Vector, gammas: tuple[Array, ...]) -> Vector:
        """A dv − p − Σ Jᵀ γ: zero at a solution."""
        given = sum(rows.generalized(gamma) for rows, gamma in zip(self.rows, gammas, strict=True))
        return self.A @ dv - self.p - given


class Solution(NamedTuple):
    """Solution of an `ImpulseProblem`.

    Attributes:
        dv: Change of the velocity of the model.
        gammas: Impulses of each of the rows.
        converged: Whether the solver has found it.
        steps: Iterations.
    """

    dv: Vector
    gammas: tuple[Array, ...]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


class ImpulseSolver(eqx.Module):
    """Solver of an `ImpulseProblem`: `solve` has derivatives of any order in both modes.

    A solver iterates to its unknowns, such as dv or (dv, γ), and states the equations that they meet in the end.
    Derivatives follow from these equations alone, by the implicit function theorem, and depend on neither the iteration
    nor its start.
    """

    @abc.abstractmethod
    def iterate(self, problem: ImpulseProblem, guess: Vector) -> tuple[PyTree[Array], Bool[Array, ""], Int[Array, ""]]:
        """The unknowns from a guess of dv, whether they are found, and the number of iterations."""

    @abc.abstractmethod
    def residual(self, problem: ImpulseProblem, unknowns: PyTree[Array]) -> PyTree[Array]:
        """Residual of the equations, zero at a solution; which rows stick, slide or are apart there does not change."""

    @abc.abstractmethod
    def correction(self, problem: ImpulseProblem, unknowns: PyTree[Array], residual: PyTree[Array]) -> PyTree[Array]:
        """Change of the unknowns that removes a small residual: a linear function of it."""

    @abc.abstractmethod
    def result(self, problem: ImpulseProblem, unknowns: PyTree[Array]) -> tuple[Vector, tuple[Array, ...]]:
        """dv, and the impulses of each of the rows."""

    def solve(self, problem: ImpulseProblem, guess: Vector) -> Solution:
        """Solve the problem from a guess of dv, on which the solution does not depend."""
        unknowns, converged, steps = _found(self, problem, jax.lax.stop_gradient(guess))
        return Solution(*self.result(problem, unknowns), converged, steps)


@eqx.filter_custom_jvp
def _found(solver: ImpulseSolver, problem: ImpulseProblem, guess: Vector) -> Any:
    return solver.iterate(problem, guess)


@_found.def_jvp
@precise
def _found_jvp(primals, tangents):
    (solver, problem, guess), (_, d_problem, _) = primals, tangents
    found = _found(solver, problem, guess)
    unknowns, *_ = found
    _, residual = eqx.filter_jvp(lambda problem: solver.residual(problem, unknowns), (problem,), (d_problem,))
    change = jax.tree.map(jnp.negative, solver.correction(problem, unknowns, residual))
    # Flags and counts have no tangents.
    return found, (change, None, None)
