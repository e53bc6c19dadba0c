"""Solvers of rigid contact: sweeps that approach a solution, and Newton's method that finds it."""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Int, Scalar

from jdyn.array import LU, SVD, LeastNorm
from jdyn.dynamics.recursion.batching import in_chunks
from jdyn.execution.compiled import precise
from jdyn.geometry.directions import length_and_unit
from jdyn.impulses.cones.problem import ConeProblem, ContactMode, Points, Vectors
from jdyn.model import Units

# Impulses are found with residuals of this power of rounding, as a share of the numbers of which they are differences.
FOUND = 0.7
# Where points repeat each other up to rounding, residuals do not come down so far. Motions go on with these, which a
# solver does not try to halve more often than in so many rounds.
USABLE, STUCK = 0.4, 40
# What they leave of speeds is below this power of rounding, as a share of the speeds without impulses.
STOPPED = 0.35
# Newton steps after each round of sweeps.
NEWTON_STEPS = 16
# Where impulses of several points do what those of one do, Newton steps move them by this power of rounding.
SHIFT = 0.8
# So many lanes of a batch wait for each other.
LANES = 8


class ConeSolution(NamedTuple):
    """Solution of a `ConeProblem`.

    >>> apart = jdyn.impulses.ConeProblem(jnp.eye(3)[None, :, None], jnp.ones((1, 3)), jnp.array([0.5]))
    >>> found = jdyn.impulses.ADMM().solve(apart)
    >>> print(found.gamma, found.velocity, found.converged)
    [[0. 0. 0.]] [[1. 1. 1.]] True

    Attributes:
        gamma: Impulses γ along two tangents and the normal of each point [N s]. Where several share a load in many
            ways, the smallest of these modes, if all of these push.
        velocity: w = G γ + b [m/s].
        converged: Whether they are found. If not, γ are the best that were.
        usable: Whether these are near enough that motions may go on with them: `error` is less than 1e-6 in double
            precision, and 2e-3 in single precision. If not, they are no answer.
        error: The largest residual, as a share of the numbers of which it is the difference.
        mode: `ContactMode` of each point.
        margin: How far each point is from another mode, where derivatives have a kink: a share of its numbers.
        rounds: How often the solver has swept.
    """

    gamma: Vectors
    velocity: Vectors
    converged: Bool[Array, ""]
    usable: Bool[Array, ""]
    error: Scalar
    mode: Int[Array, " points"]
    margin: Points
    rounds: Int[Array, ""]


class ConeSolver(eqx.Module):
    """Solver of a `ConeProblem`, with derivatives of any order in both modes.

    Sweeps approach a solution and tell what sticks, slides and parts; from there Newton's method finds it, or sweeps go
    on. Derivatives are those of the equations of the modes at the solution: one-sided where `margin` is zero. Those of
    impulses that share a load in many ways are the smallest, those of velocities unique.

    >>> class Damped(jdyn.impulses.ConeSolver):  # projected steps along the residual
    ...     rounds: int = 100
    ...     def start(self, problem):
    ...         return jnp.zeros_like(problem.b)
    ...     def swept(self, problem, state):
    ...         return state - problem.residual(state)
    ...     def impulses(self, problem, state):
    ...         return state
    >>> problem = jdyn.impulses.ConeProblem(jnp.eye(3)[None, :, None], jnp.array([[2.0, 0.0, -1.0]]), jnp.array([0.5]))
    >>> print(Damped().solve(problem).gamma)
    [[-0.5  0.   1. ]]

    Attributes:
        rounds: How often it sweeps and tries Newton's method, at most.
    """

    units: ClassVar[Units] = {}

    rounds: eqx.AbstractVar[int]

    @abc.abstractmethod
    def start(self, problem: ConeProblem) -> Any:
        """State of the sweeps where they begin, arrays alone."""

    @abc.abstractmethod
    def swept(self, problem: ConeProblem, state: Any) -> Any:
        """State after a round of sweeps."""

    @abc.abstractmethod
    def impulses(self, problem: ConeProblem, state: Any) -> Vectors:
        """γ, in the cones."""

    def solve(self, problem: ConeProblem) -> ConeSolution:
        """Solve the problem."""
        gamma, rounds = _found(self, problem)
        # What is only reported.
        known = jax.lax.stop_gradient(gamma)
        error, rounding = problem.error(known), float(jnp.finfo(gamma.dtype).eps)
        mode, margin = problem.modes(gamma)
        stops = problem.speed_error(known) <= rounding**STOPPED
        converged, usable = (stops & (error <= rounding**power) for power in (FOUND, USABLE))
        return ConeSolution(gamma, problem.velocities(gamma), converged, usable, error, mode, margin, rounds)


@eqx.filter_custom_jvp
def _found(solver: ConeSolver, problem: ConeProblem) -> tuple[Vectors, Int[Array, ""]]:
    if problem.b.size == 0:
        return problem.b, jnp.array(0, jnp.int32)
    return in_chunks(lambda problem: _iterated(solver, problem), LANES, (problem.b, jnp.array(0, jnp.int32)))(problem)


@_found.def_jvp
@precise
def _found_jvp(primals, tangents):
    (solver, problem), (_, moved) = primals, tangents
    gamma, rounds = _found(solver, problem)
    _, residual = eqx.filter_jvp(lambda problem: problem.residual(gamma), (problem,), (moved,))
    slopes = problem.slopes(gamma)
    factors, transposed = jax.lax.stop_gradient((SVD.factor(slopes), SVD.factor(slopes.T)))
    change = jax.lax.custom_linear_solve(
        lambda x: slopes @ x,
        -residual.ravel(),
        lambda _, x: SVD.solve(factors, x),
        lambda _, x: SVD.solve(transposed, x),
    )
    return (gamma, rounds), (change.reshape(gamma.shape), None)


def _iterated(solver: ConeSolver, problem: ConeProblem) -> tuple[Vectors, Int[Array, ""]]:
    # So that points are alike, however heavy their bodies are.
    scale = jnp.sqrt(problem.rates)
    gamma, rounds = _of_alike(solver, problem.scaled(scale))
    gamma = scale[:, None] * gamma
    # Newton's steps leave roundings that pull.
    gamma = gamma.at[:, 2].set(jnp.maximum(gamma[:, 2], 0))
    mode, _ = problem.modes(gamma)
    # One point alone shares its load with none, and most of the time nothing touches.
    shares = jnp.sum(mode != ContactMode.APART) > 1
    smallest = jax.lax.cond(unvmap_any(shares), lambda: _smallest(problem, gamma), lambda: gamma)
    return jnp.where(shares, smallest, gamma), rounds


def _of_alike(solver: ConeSolver, problem: ConeProblem) -> tuple[Vectors, Int[Array, ""]]:
    rounding = float(jnp.finfo(problem.b.dtype).eps)

    def unfinished(iterate):
        *_, error, last, rounds = iterate
        stuck = (error <= rounding**USABLE) & (rounds - last >= STUCK)
        return (error > rounding**FOUND) & ~stuck & (rounds < solver.rounds)

    def next_round(iterate):
        state, best, least, last, rounds = iterate
        state, rounds = solver.swept(problem, state), rounds + 1
        gamma = _polished(problem, solver.impulses(problem, state))
        error = problem.error(gamma)
        better, last = error < least, jnp.where(error < least / 2, rounds, last)
        return state, jnp.where(better, gamma, best), jnp.where(better, error, least), last, rounds

    none, zero = jnp.zeros_like(problem.b), jnp.array(0, jnp.int32)
    begin = solver.start(problem), none, problem.error(none), zero, zero
    _, gamma, *_, rounds = jax.lax.while_loop(unfinished, next_round, begin)
    return gamma, rounds


def _polished(problem: ConeProblem, gamma: Vectors) -> Vectors:
    """The best of γ and of what whole steps of Newton's method lead to, as long as residuals are not found or still
    shrink. Shorter steps, which bring the residual down each time, soon are stuck."""
    rounding = float(jnp.finfo(gamma.dtype).eps)
    shift = rounding**SHIFT * jnp.eye(gamma.size, dtype=gamma.dtype)

    def unfinished(iterate):
        *_, least, shrinks, steps = iterate
        return ((least > rounding**FOUND) | (shrinks & (least > rounding))) & (steps < NEWTON_STEPS)

    def step(iterate):
        gamma, best, least, _, steps = iterate
        towards = LU.solve(LU.factor(problem.slopes(gamma) + shift), problem.residual(gamma).ravel())
        gamma = gamma - jnp.where(jnp.all(jnp.isfinite(towards)), towards, 0).reshape(gamma.shape)
        error = problem.error(gamma)
        better = error < least
        return gamma, jnp.where(better, gamma, best), jnp.minimum(error, least), error < least / 2, steps + 1

    begin = gamma, gamma, problem.error(gamma), jnp.array(True), jnp.array(0, jnp.int32)
    return jax.lax.while_loop(unfinished, step, begin)[1]


def _smallest(problem: ConeProblem, gamma: Vectors) -> Vectors:
    """The smallest impulses of the same modes that make the same velocities, if all of these push, or else γ."""
    mode, _ = problem.modes(gamma)
    # What each point may do: push and hold in three directions, or push along the edge of its cone.
    _, edge = jax.vmap(length_and_unit)(gamma)
    holding = jnp.broadcast_to(jnp.eye(3, dtype=gamma.dtype), problem.blocks.shape)
    sliding = jnp.zeros_like(problem.blocks).at[:, :, 2].set(edge)
    sticks, slides = (jnp.reshape(mode == each, (-1, 1, 1)) for each in (ContactMode.STICKS, ContactMode.SLIDES))
    E = jnp.where(sticks, holding, jnp.where(slides, sliding, 0))
    S = jnp.einsum("iac,iajb,jbd->icjd", E, problem.G, E).reshape(2 * (gamma.size,))
    least = LeastNorm.of(S, problem.rank).solve(S @ jnp.einsum("iac,ia->ic", E, gamma).ravel())
    found = jnp.einsum("iac,ic->ia", E, least.reshape(gamma.shape))
    enough = jnp.maximum(float(jnp.finfo(gamma.dtype).eps) ** FOUND, problem.error(gamma))
    return jnp.where(problem.error(found) <= enough, found, gamma)
