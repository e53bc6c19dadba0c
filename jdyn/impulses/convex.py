"""Impulses of convex laws: the change of the velocity is the minimum of a strictly convex function."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import CHOLESKY, SMALL, Factorization, Structure, cholesky, cholesky_solution
from jdyn.dynamics.recursion.batching import in_chunks
from jdyn.impulses.law import Line
from jdyn.impulses.problem import ImpulseProblem, ImpulseSolver

# Number of first steps that are whole in any case, of all steps before giving up, and of evaluations of a line search.
# With one whole step heaps of boxes took a tenth fewer steps, and batches of robots longer.
WHOLE_STEPS, NEWTON_STEPS, LINE_STEPS = 2, 60, 40
# So many lanes of a batch wait for each other. Among 96 the slowest took twice as many steps as the mean.
LANES = 8
# A line search ends with a slope of this share of the one at its start, or a bracket of this width as a share of its
# lower end, since slopes jump where friction begins to stick. A tenth of both took as many Newton steps as a hundredth,
# and a third of the evaluations.
FLAT_SLOPE, NARROW_BRACKET = 0.1, 0.1
# A second step with the same Hessian counts if its length is less than this share of the first, and the shares of
# friction differ by less than this from those of its linear law.
SECOND_STEP = 0.1
# Newton steps smaller than this power of rounding, against the change of the velocity, end the iteration. It converges
# quadratically.
CONVERGED = 0.4

Vector = Float[Array, " nv"]
# For each law, what is taken to stick, and friction as shares of its bounds.
Sticking = tuple[Bool[Array, "..."], ...]
Shares = tuple[Float[Array, "..."], ...]


class VelocityChange(Structure):
    """A change of the velocity of the model, and of the velocities of all rows."""

    dv: Vector
    us: tuple[Array, ...]

    def __add__(self, other: "VelocityChange") -> "VelocityChange":
        return jax.tree.map(jnp.add, self, other)

    def times(self, share: Scalar) -> "VelocityChange":
        return jax.tree.map(lambda x: share * x, self)


class ConvexFunction(Structure):
    """½ dvᵀ A dv − p · dv plus the potentials of all laws, by the change dv of the velocity.

    Attributes:
        problem: A, p and the rows, whose laws are `ConvexLaw`s.
    """

    problem: ImpulseProblem

    def change(self, dv: Vector) -> VelocityChange:
        """The change of velocities of all rows by a change of the model's velocity."""
        return VelocityChange(dv, tuple(rows.changes(dv) for rows in self.problem.rows))

    def gradient(self, at: VelocityChange, sticking: Sticking) -> Vector:
        """Momentum that dv takes less that which the step gives, where `sticking` says what sticks."""
        return self.problem.balance(at.dv, self.impulses(at, sticking))

    def impulses(self, at: VelocityChange, sticking: Sticking) -> tuple[Array, ...]:
        """γ of all rows, where `sticking` says what sticks."""
        return self._map_laws(lambda law, u, sticking: law.impulse(u, sticking), at.us, sticking)

    def hessian(self, at: VelocityChange, sticking: Sticking, shares: Shares) -> Float[Array, "nv nv"]:
        """A + Jᵀ G J with the slopes G of all linear laws: that of the function where shares are those after dv."""
        slopes = self._map_laws(
            lambda law, u, sticking, shares: law.slope(u, sticking, shares), at.us, sticking, shares
        )
        added = (rows.J.weighed(G) for rows, G in zip(self.problem.rows, slopes, strict=True))
        return sum(added, start=self.problem.A)

    def sticks(self, at: VelocityChange) -> Sticking:
        """Tell what sticks."""
        return self._map_laws(lambda law, u: law.sticks(u), at.us)

    def may_stick(self, at: VelocityChange) -> Sticking:
        """Tell what may stick at the end, as a first guess of the active set."""
        return self._map_laws(lambda law, u: law.may_stick(u), at.us)

    def shares(self, at: VelocityChange) -> Shares:
        """Friction as shares of its bounds."""
        return self._map_laws(lambda law, u: law.shares(u), at.us)

    def reverses(self, at: VelocityChange, step: VelocityChange, sticking: Sticking) -> Sticking:
        """Tell where slip reverses in a step."""
        return self._map_laws(lambda law, u, du, sticking: law.reverses(u, du, sticking), at.us, step.us, sticking)

    def predicted_shares(self, at: VelocityChange, step: VelocityChange, sticking: Sticking, shares: Shares) -> Shares:
        """Shares after a step by the linear laws."""
        return self._map_laws(
            lambda law, u, du, sticking, shares: law.predicted_shares(u, du, sticking, shares),
            at.us,
            step.us,
            sticking,
            shares,
        )

    def share_errors(self, at: VelocityChange, shares: Shares) -> tuple[Scalar, Scalar]:
        """The largest error of a share, and about the distance of dv from the minimum that errors of shares make."""
        errors, lengths = zip(
            *self._map_laws(lambda law, u, shares: law.share_errors(u, shares), at.us, shares), strict=True
        )
        largest = functools.reduce(jnp.maximum, [jnp.max(x, initial=0) for x in errors])
        return largest, jnp.sum(jnp.stack([jnp.sum(x) for x in lengths]))

    def on_one_side(self, at: VelocityChange, before: VelocityChange) -> Bool[Array, ""]:
        """Tell whether all laws have no kink between the two, beside those of friction."""
        sides = self._map_laws(lambda law, u, before: law.on_one_side(u, before), at.us, before.us)
        return jnp.all(jnp.stack(sides))

    def line_derivatives(self, at: VelocityChange, step: VelocityChange) -> Line:
        """Derivatives of the potentials of all laws, in the direction of a step."""
        lines = self._map_laws(lambda law, u, w: law.line_derivatives(u, w), at.us, step.us)
        return functools.reduce(Line.__add__, lines)

    def _map_laws(self, what: Callable, us: Sequence[Array], *known: Sequence[Any]) -> tuple[Any, ...]:
        """Apply a function to each law, with the change of its velocities and what is known of it."""
        return tuple(map(what, [rows.law for rows in self.problem.rows], us, *known))


class Convex(ImpulseSolver):
    """Convex laws: the solution is the minimum of ½ dvᵀ A dv − p · dv plus the potentials of all laws.

    Newton steps find it, the first one as if all that may stick did so, which often is enough; later ones lead to about
    the minimum along each. Laws are linear in what friction gives beside the velocity, see `Friction`: ten boxes that
    begin within each other take 17 steps, where Newton's method for the velocity alone took 36, or gave up.

    Hessians are factored, however many coordinates there are. Conjugate gradients, preconditioned by the inertia of
    each tree with all that touches it, take 20 to 70 iterations for four digits and 40 to 150 for eight with 20 and 40
    bodies in a heap, since friction that sticks is 10⁵ times as stiff as other directions. A few of them take as long
    as a Cholesky factor of 240 coordinates, 0.2 ms.

    Derivatives are those of the minimum, H ∂dv/∂θ = −∂(gradient)/∂θ.

    Source: Castro, Permenter, Han, An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023, for
    the function and steps to the minimum along them; `Friction` names that of linear laws; for the first step,
    Hintermüller, Ito, Kunisch, The primal-dual active set strategy as a semismooth Newton method, SIAM Journal on
    Optimization 13, 2002.
    """

    def iterate(self, problem, guess):
        if not problem.rows:
            return CHOLESKY.solve(CHOLESKY.factor(problem.A), problem.p), jnp.array(True), jnp.array(0, jnp.int32)
        like = guess, jnp.array(False), jnp.array(0, jnp.int32)
        return in_chunks(_iterated, LANES, like)(problem, guess)

    def residual(self, problem, unknowns):
        function = ConvexFunction(problem)
        at = function.change(unknowns)
        return function.gradient(at, function.sticks(at))

    def correction(self, problem, unknowns, residual):
        function = ConvexFunction(problem)
        at = function.change(unknowns)
        H = function.hessian(at, function.sticks(at), function.shares(at))
        return CHOLESKY.solve(CHOLESKY.factor(H), residual)

    def result(self, problem, unknowns):
        function = ConvexFunction(problem)
        at = function.change(unknowns)
        return unknowns, function.impulses(at, function.sticks(at))


def _iterated(problem: ImpulseProblem, guess: Vector) -> tuple[Vector, Bool[Array, ""], Int[Array, ""]]:
    function = ConvexFunction(problem)
    at, infinite = function.change(guess), jnp.full((), jnp.inf, guess.dtype)
    start = _Iterate(
        at, function.may_stick(at), function.shares(at), infinite, function.problem.size, jnp.array(0, jnp.int32)
    )
    last = jax.lax.while_loop(_Iterate.unfinished, lambda iterate: _newton_step(function, iterate), start)
    return last.at.dv, (last.remaining <= last.small) & jnp.isfinite(last.remaining), last.steps


class _Iterate(NamedTuple):
    """State of the iteration.

    Attributes:
        at: Change of the velocity so far.
        sticking: Active set: what sticks, and what may stick next.
        shares: Friction as shares of its bounds, by the linear laws after a whole step.
        remaining: About the distance from the minimum, in the norm of A: the length of the last whole Newton step, or
            the error of the linear laws in it if that is more.
        size: Norm of the change of the velocity.
        steps: Number of steps.
    """

    at: VelocityChange
    sticking: Sticking
    shares: Shares
    remaining: Scalar
    size: Scalar
    steps: Int[Array, ""]

    @property
    def small(self) -> Scalar:
        """Largest change that counts as none."""
        return float(jnp.finfo(self.at.dv.dtype).eps) ** CONVERGED * self.size

    def unfinished(self) -> Bool[Array, ""]:
        # NaN ends it.
        return (self.remaining > self.small) & (self.steps < NEWTON_STEPS)


def _norm(A, dv: Vector) -> Scalar:
    return jnp.sqrt(dv @ (A @ dv))


def _newton_step(function: ConvexFunction, iterate: _Iterate) -> _Iterate:
    """The iterate after a Newton step, whole or to about the minimum along it.

    If a whole step agrees with its linear laws, a second one with the same Hessian follows, which often shows that the
    first one was enough.
    """
    at, sticking = iterate.at, iterate.sticking
    factor, solve = _factorization(len(at.dv))
    L = factor(function.hessian(at, sticking, iterate.shares))
    gradient = function.gradient(at, sticking)
    step = function.change(-solve(L, gradient))
    after = at + step
    gradient_after = function.gradient(after, function.sticks(after))
    second = function.change(-solve(L, gradient_after))
    lengths = _norm(function.problem.A, step.dv), _norm(function.problem.A, second.dv)
    shares = function.predicted_shares(at, step, sticking, iterate.shares)
    share_error, error = function.share_errors(after, shares)
    again = (share_error < SECOND_STEP) & (lengths[1] < SECOND_STEP * lengths[0]) & function.on_one_side(after, at)
    # If nothing is taken to stick that does not, the gradient is that of the function.
    start_slope = jnp.where(_same(sticking, function.sticks(at)), gradient @ step.dv, 0)
    end_slope, flat = gradient_after @ step.dv, iterate.small * lengths[0]
    whole = (iterate.steps < WHOLE_STEPS) | again | (end_slope <= jnp.maximum(FLAT_SLOPE * jnp.abs(start_slope), flat))
    part = jnp.where(whole, 1, _line_search(function, at, step, end_slope, flat, ~whole & iterate.unfinished()))
    # The second step begins with true shares, and has the same linear laws.
    second_shares = function.predicted_shares(at, step + second, sticking, iterate.shares)
    second_shares = jax.tree.map(lambda true, x, y: true + (x - y), function.shares(after), second_shares, shares)
    _, error_again = function.share_errors(after + second, second_shares)
    remaining = jnp.where(again, jnp.maximum(lengths[1], error_again), jnp.maximum(lengths[0], error))
    end = at + step.times(part) + second.times(jnp.where(again, 1, 0))
    reverses = function.reverses(at, step, sticking)
    sticking = jax.tree.map(lambda sticks, reverses: sticks | (reverses & whole), function.sticks(end), reverses)
    size = jnp.maximum(function.problem.size, _norm(function.problem.A, end.dv))
    return _Iterate(end, sticking, shares, remaining, size, iterate.steps + 1)


def _factorization(nv: int) -> Factorization:
    """LAPACK's, where its calls pay."""
    return CHOLESKY if nv > SMALL else Factorization(cholesky, cholesky_solution)


def _same(a: Sticking, b: Sticking) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(a == b) for a, b in zip(a, b, strict=True)]))


class _Bracket(NamedTuple):
    """Bracket of the minimum along a line, by shares of a step.

    Attributes:
        low, high: Shares with a negative and with a positive slope.
        start, slope: Slope at the start of the line, and at the last share evaluated.
        share: Last share evaluated.
        next: Next share to evaluate.
        looks: Number of evaluations.
    """

    low: Scalar
    high: Scalar
    start: Scalar
    slope: Scalar
    share: Scalar
    next: Scalar
    looks: Int[Array, ""]

    def after(self, line: Line) -> "_Bracket":
        """The bracket after one more evaluation, the first one of which is at the start of the line. Newton's method
        gives the next share, unless it leads out of the bracket."""
        share, first = self.next, self.looks == 0
        low, high = jnp.where(line.slope < 0, share, self.low), jnp.where(line.slope < 0, self.high, share)
        start = jnp.where(first, line.slope, self.start)
        # After the first evaluation the slope after the whole step is known, too: a secant.
        curvature = jnp.where(first, self.slope - line.slope, line.curvature)
        newton = share - line.slope / jnp.where(curvature > 0, curvature, 1)
        next = jnp.where((newton > low) & (newton < high), newton, (low + high) / 2)
        return _Bracket(low, high, start, line.slope, share, next, self.looks + 1)


def _line_search(
    function: ConvexFunction,
    at: VelocityChange,
    step: VelocityChange,
    end: Scalar,
    flat: Scalar,
    wanted: Bool[Array, ""],
) -> Scalar:
    """Share of a step at the minimum along it, if it is `wanted`; zero if the step leads upwards, as it may if
    something is taken to stick that does not.

    Args:
        function: The function to minimize.
        at: Start of the step.
        step: The step.
        end: Slope along the step at its end, positive.
        flat: Slope that counts as zero in any case.
        wanted: Whether to search.
    """
    A_step = function.problem.A @ step.dv
    slope, curvature = at.dv @ A_step - function.problem.p @ step.dv, step.dv @ A_step

    def look(bracket: _Bracket) -> _Bracket:
        share = bracket.next
        terms = function.line_derivatives(at + step.times(share), step)
        return bracket.after(Line(slope + share * curvature, curvature) + terms)

    def is_flat(bracket: _Bracket) -> Bool[Array, ""]:
        return jnp.abs(bracket.slope) <= jnp.maximum(FLAT_SLOPE * jnp.abs(bracket.start), flat)

    def unfinished(bracket: _Bracket) -> Bool[Array, ""]:
        narrow = bracket.high - bracket.low < NARROW_BRACKET * bracket.low
        sought = (bracket.looks < 2) | (~is_flat(bracket) & ~narrow & (bracket.looks < LINE_STEPS))
        return wanted & (bracket.start < 0) & sought

    zero, one = jnp.zeros_like(slope), jnp.ones_like(slope)
    unknown = _Bracket(zero, one, -one, end, one, zero, jnp.array(0, jnp.int32))
    last = jax.lax.while_loop(unfinished, look, unknown)
    # Up to where the slope is still negative the function falls.
    return jnp.where(is_flat(last), last.share, last.low)
