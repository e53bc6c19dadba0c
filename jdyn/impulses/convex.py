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

# Steps that are whole whatever comes of them, all steps before giving up, and the most evaluations that look for the
# minimum along one. With one whole step heaps of boxes took a tenth fewer steps, and batches of robots longer.
WHOLE_STEPS, NEWTON_STEPS, LINE_STEPS = 2, 60, 40
# So many lanes of a batch wait for each other. Among 96 the slowest took twice as many steps as the mean.
LANES = 8
# What may be left of the slope at the minimum along a line; and the width of the bracket that it lies in, as a share of
# its lower end, since slopes jump where friction begins to hold. A tenth of both took as many Newton steps as a
# hundredth, and a third of the evaluations.
FLAT, NARROW = 0.1, 0.1
# A second step with the same Hessian counts if it is shorter than the first by this, and friction did nearly as its
# linear law said.
NEARER = 0.1
# Newton steps smaller than this power of rounding, against the change of the velocity, end the iteration. It converges
# quadratically.
CONVERGED = 0.4

Vector = Float[Array, " nv"]
# Of each law, what sticks, and what friction gives of its bounds.
Held = tuple[Bool[Array, "..."], ...]
Shares = tuple[Float[Array, "..."], ...]


class Change(Structure):
    """A change of the velocity of the model, and what it makes of the velocities of all rows."""

    dv: Vector
    us: tuple[Array, ...]

    def __add__(self, other: "Change") -> "Change":
        return jax.tree.map(jnp.add, self, other)

    def times(self, share: Scalar) -> "Change":
        return jax.tree.map(lambda x: share * x, self)


class Function(Structure):
    """½ dvᵀ A dv − p · dv plus the potentials of all laws, by the change dv of the velocity.

    Attributes:
        problem: A, p and the rows, whose laws are `ConvexLaw`s.
    """

    problem: ImpulseProblem

    def change(self, dv: Vector) -> Change:
        """Value and derivatives of a change of the velocity."""
        return Change(dv, tuple(rows.changes(dv) for rows in self.problem.rows))

    def gradient(self, at: Change, held: Held) -> Vector:
        """Momentum that dv takes less that which the step gives, where `held` says what sticks."""
        return self.problem.balance(at.dv, self.impulses(at, held))

    def impulses(self, at: Change, held: Held) -> tuple[Array, ...]:
        """γ of all rows, where `held` says what sticks."""
        return self._of_laws(lambda law, u, held: law.impulse(u, held), at.us, held)

    def hessian(self, at: Change, held: Held, shares: Shares) -> Float[Array, "nv nv"]:
        """A + Jᵀ G J with the slopes G of all linear laws: that of the function where shares are those after dv."""
        slopes = self._of_laws(lambda law, u, held, shares: law.slope(u, held, shares), at.us, held, shares)
        added = (rows.J.weighed(G) for rows, G in zip(self.problem.rows, slopes, strict=True))
        return sum(added, start=self.problem.A)

    def holds(self, at: Change) -> Held:
        """Tell what sticks."""
        return self._of_laws(lambda law, u: law.holds(u), at.us)

    def may_hold(self, at: Change) -> Held:
        """Tell what may stick at the end, by a guess of the change."""
        return self._of_laws(lambda law, u: law.may_hold(u), at.us)

    def shares(self, at: Change) -> Shares:
        """Shares that friction gives of its bounds."""
        return self._of_laws(lambda law, u: law.shares(u), at.us)

    def turns(self, at: Change, step: Change, held: Held) -> Held:
        """Tell where slip turns back in a step."""
        return self._of_laws(lambda law, u, du, held: law.turns(u, du, held), at.us, step.us, held)

    def tends(self, at: Change, step: Change, held: Held, shares: Shares) -> Shares:
        """Shares that linear laws give in a step."""
        return self._of_laws(
            lambda law, u, du, held, shares: law.tends(u, du, held, shares), at.us, step.us, held, shares
        )

    def missed(self, at: Change, shares: Shares) -> tuple[Scalar, Scalar]:
        """The largest difference of any share from the true one, and about how far that keeps dv from the minimum."""
        missed, lengths = zip(*self._of_laws(lambda law, u, shares: law.missed(u, shares), at.us, shares), strict=True)
        largest = functools.reduce(jnp.maximum, [jnp.max(x, initial=0) for x in missed])
        return largest, jnp.sum(jnp.stack([jnp.sum(x) for x in lengths]))

    def on_one_side(self, at: Change, before: Change) -> Bool[Array, ""]:
        """Tell whether all laws have no kink between the two, beside those of friction."""
        sides = self._of_laws(lambda law, u, before: law.on_one_side(u, before), at.us, before.us)
        return jnp.all(jnp.stack(sides))

    def along(self, at: Change, step: Change) -> Line:
        """The potentials of all laws, in the direction of a step."""
        lines = self._of_laws(lambda law, u, w: law.along(u, w), at.us, step.us)
        return functools.reduce(Line.__add__, lines)

    def _of_laws(self, what: Callable, us: Sequence[Array], *known: Sequence[Any]) -> tuple[Any, ...]:
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
        function = Function(problem)
        at = function.change(unknowns)
        return function.gradient(at, function.holds(at))

    def correction(self, problem, unknowns, residual):
        function = Function(problem)
        at = function.change(unknowns)
        H = function.hessian(at, function.holds(at), function.shares(at))
        return CHOLESKY.solve(CHOLESKY.factor(H), residual)

    def result(self, problem, unknowns):
        function = Function(problem)
        at = function.change(unknowns)
        return unknowns, function.impulses(at, function.holds(at))


def _iterated(problem: ImpulseProblem, guess: Vector) -> tuple[Vector, Bool[Array, ""], Int[Array, ""]]:
    function = Function(problem)
    at, infinite = function.change(guess), jnp.full((), jnp.inf, guess.dtype)
    start = _Iterate(
        at, function.may_hold(at), function.shares(at), infinite, function.problem.size, jnp.array(0, jnp.int32)
    )
    last = jax.lax.while_loop(_Iterate.unfinished, lambda iterate: _next(function, iterate), start)
    return last.at.dv, (last.left <= last.small) & jnp.isfinite(last.left), last.steps


class _Iterate(NamedTuple):
    """State of the iteration.

    Attributes:
        at: Minimum so far.
        held: What is taken to stick: what does so, and what may next.
        shares: What friction is taken to give of its bounds: what linear laws make of it in a whole step.
        left: About how far the minimum is, in the norm of A: the length of the last whole Newton step or, where that is
            more, what the linear laws missed in it.
        size: That of the change of the velocity.
        steps: Number of steps.
    """

    at: Change
    held: Held
    shares: Shares
    left: Scalar
    size: Scalar
    steps: Int[Array, ""]

    @property
    def small(self) -> Scalar:
        """Up to which changes count as none."""
        return float(jnp.finfo(self.at.dv.dtype).eps) ** CONVERGED * self.size

    def unfinished(self) -> Bool[Array, ""]:
        # NaN ends it.
        return (self.left > self.small) & (self.steps < NEWTON_STEPS)


def _length(A, dv: Vector) -> Scalar:
    return jnp.sqrt(dv @ (A @ dv))


def _next(function: Function, iterate: _Iterate) -> _Iterate:
    """After a Newton step, whole or to about the minimum along it.

    Where a whole step did as its linear laws said, a second one with the same Hessian follows, which often shows that
    the first one was enough.
    """
    at, held = iterate.at, iterate.held
    factor, solve = _factorization(len(at.dv))
    L = factor(function.hessian(at, held, iterate.shares))
    gradient = function.gradient(at, held)
    step = function.change(-solve(L, gradient))
    after = at + step
    gradient_after = function.gradient(after, function.holds(after))
    second = function.change(-solve(L, gradient_after))
    lengths = _length(function.problem.A, step.dv), _length(function.problem.A, second.dv)
    shares = function.tends(at, step, held, iterate.shares)
    missed, error = function.missed(after, shares)
    again = (missed < NEARER) & (lengths[1] < NEARER * lengths[0]) & function.on_one_side(after, at)
    # Where nothing is taken to hold that does not, the gradient is that of the function.
    begins = jnp.where(_same(held, function.holds(at)), gradient @ step.dv, 0)
    ends, flat = gradient_after @ step.dv, iterate.small * lengths[0]
    whole = (iterate.steps < WHOLE_STEPS) | again | (ends <= jnp.maximum(FLAT * jnp.abs(begins), flat))
    part = jnp.where(whole, 1, _lowest(function, at, step, ends, flat, ~whole & iterate.unfinished()))
    # The second step begins with true shares, and laws are linear as before.
    turned = function.tends(at, step + second, held, iterate.shares)
    turned = jax.tree.map(lambda true, x, y: true + (x - y), function.shares(after), turned, shares)
    _, error_again = function.missed(after + second, turned)
    left = jnp.where(again, jnp.maximum(lengths[1], error_again), jnp.maximum(lengths[0], error))
    end = at + step.times(part) + second.times(jnp.where(again, 1, 0))
    turns = function.turns(at, step, held)
    held = jax.tree.map(lambda holds, turns: holds | (turns & whole), function.holds(end), turns)
    size = jnp.maximum(function.problem.size, _length(function.problem.A, end.dv))
    return _Iterate(end, held, shares, left, size, iterate.steps + 1)


def _factorization(nv: int) -> Factorization:
    """LAPACK's, where its calls pay."""
    return CHOLESKY if nv > SMALL else Factorization(cholesky, cholesky_solution)


def _same(a: Held, b: Held) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(a == b) for a, b in zip(a, b, strict=True)]))


class _Bracket(NamedTuple):
    """The minimum along a line, between shares of a step.

    Attributes:
        low, high: Where the slope is still negative, and where it is positive.
        start, slope: Slopes along the line where it begins, and where it is known last.
        share: Where it is known last.
        next: Where to look next.
        looks: How often it was looked at.
    """

    low: Scalar
    high: Scalar
    start: Scalar
    slope: Scalar
    share: Scalar
    next: Scalar
    looks: Int[Array, ""]

    def after(self, line: Line) -> "_Bracket":
        """With what is known at one more share, which is first where the line begins. Newton's method tells where to
        look next, unless it leads out."""
        share, first = self.next, self.looks == 0
        low, high = jnp.where(line.slope < 0, share, self.low), jnp.where(line.slope < 0, self.high, share)
        start = jnp.where(first, line.slope, self.start)
        # At the first look the slope after the whole step is known, too: a secant.
        curvature = jnp.where(first, self.slope - line.slope, line.curvature)
        newton = share - line.slope / jnp.where(curvature > 0, curvature, 1)
        next = jnp.where((newton > low) & (newton < high), newton, (low + high) / 2)
        return _Bracket(low, high, start, line.slope, share, next, self.looks + 1)


def _lowest(function: Function, at: Change, step: Change, end: Scalar, flat: Scalar, wanted: Bool[Array, ""]) -> Scalar:
    """Share of a step at the minimum along it, where it is wanted; zero where it leads upwards, as it may if what is
    taken to hold does not.

    Args:
        end: Slope along the step after all of it, positive.
        flat: What may be left of the slope in any case.
    """
    A_step = function.problem.A @ step.dv
    slope, curvature = at.dv @ A_step - function.problem.p @ step.dv, step.dv @ A_step

    def look(bracket: _Bracket) -> _Bracket:
        share = bracket.next
        terms = function.along(at + step.times(share), step)
        return bracket.after(Line(slope + share * curvature, curvature) + terms)

    def is_flat(bracket: _Bracket) -> Bool[Array, ""]:
        return jnp.abs(bracket.slope) <= jnp.maximum(FLAT * jnp.abs(bracket.start), flat)

    def unfinished(bracket: _Bracket) -> Bool[Array, ""]:
        narrow = bracket.high - bracket.low < NARROW * bracket.low
        sought = (bracket.looks < 2) | (~is_flat(bracket) & ~narrow & (bracket.looks < LINE_STEPS))
        return wanted & (bracket.start < 0) & sought

    zero, one = jnp.zeros_like(slope), jnp.ones_like(slope)
    unknown = _Bracket(zero, one, -one, end, one, zero, jnp.array(0, jnp.int32))
    last = jax.lax.while_loop(unfinished, look, unknown)
    # Up to where the slope is still negative the function falls.
    return jnp.where(is_flat(last), last.share, last.low)
