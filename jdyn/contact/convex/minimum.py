"""How a step changes the velocity, as the minimum of a strictly convex function."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import CHOLESKY, SMALL, Factorization, Structure, cholesky, cholesky_solution
from jdyn.contact.convex.law import Law, Line
from jdyn.contact.convex.terms import Term
from jdyn.dynamics.execution.batching import in_chunks
from jdyn.model.compiled import precise

# Steps that predict before Newton steps begin, all steps before giving up, and the most evaluations that look for the
# minimum along one. With 15 predictions heaps of boxes took up to a tenth more steps.
PREDICTED_STEPS, NEWTON_STEPS, LINE_STEPS = 8, 58, 40
# So many lanes of a batch wait for each other. Among 96 the slowest took twice as many steps as the mean.
LANES = 8
# A Newton step goes no further than this multiple of itself.
LONGEST = 1.5
# What is left of the slope at the minimum along a line. Near the solution full steps leave less.
FLAT = 1e-2
# A second step with the same Hessian counts if it is shorter than the first by this.
NEARER = 0.1
# Newton steps smaller than this power of rounding, against the change of the velocity, end the iteration. It converges
# quadratically.
CONVERGED = 0.4

Vector = Float[Array, " nv"]
# Of each term, what sticks.
Held = tuple[Bool[Array, "..."], ...]


class Motion(Structure):
    """½ dvᵀ A dv − impulse · dv plus the potentials of all terms, by the change dv of the velocity.

    Attributes:
        A: Inertia, with what joints' springs and dampers add to it within the step.
        impulse: A times the change of the velocity without any term.
        terms: At points of contact, and in joints.
    """

    A: Float[Array, "nv nv"]
    impulse: Vector
    terms: tuple[Term, ...]

    def gradient(self, dv: Vector, held: Held) -> Vector:
        """Momentum that dv takes less that which the step gives, where `held` says what sticks."""
        return self._less(dv, self._at(dv, held)[0])

    def derivatives(self, dv: Vector, held: Held) -> tuple[Vector, Float[Array, "nv nv"]]:
        """The gradient and the Hessian A + Jᵀ G J."""
        gammas, Gs = self._at(dv, held)
        H = sum((term.hessian(G) for term, G in zip(self.terms, Gs, strict=True)), start=self.A)
        return self._less(dv, gammas), H

    @property
    def size(self) -> Scalar:
        """About the length of the change without any term, in the norm of A."""
        return jnp.sqrt(jnp.sum(self.impulse**2 / jnp.diag(self.A)))

    @property
    def laws(self) -> list[Law]:
        """Of all terms."""
        return [term.law for term in self.terms]

    def changes(self, dv: Vector) -> list[Array]:
        """Of the velocities of all terms."""
        return [term.changes(dv) for term in self.terms]

    def holds(self, dv: Vector) -> Held:
        """What sticks."""
        return tuple(law.holds(u) for law, u in zip(self.laws, self.changes(dv), strict=True))

    def may_hold(self, dv: Vector) -> Held:
        """What may stick at the end, by a guess of the change."""
        return tuple(law.may_hold(u) for law, u in zip(self.laws, self.changes(dv), strict=True))

    def still_holds(self, dv: Vector, before: Vector, held: Held) -> Held:
        """What to take for sticking after an iteration."""
        states = zip(self.laws, self.changes(dv), self.changes(before), held, strict=True)
        return tuple(law.still_holds(u, before, held) for law, u, before, held in states)

    def followed(self, dv: Vector, before: Vector, held: Held) -> Bool[Array, ""]:
        """Whether all laws went on from `before` to `dv` nearly as their derivatives said."""
        states = zip(self.laws, self.changes(dv), self.changes(before), held, strict=True)
        return jnp.all(jnp.stack([law.followed(u, before, held) for law, u, before, held in states]))

    def on_one_side(self, dv: Vector, before: Vector) -> Bool[Array, ""]:
        """Whether all laws have no kink between the two, beside those of what sticks."""
        states = zip(self.laws, self.changes(dv), self.changes(before), strict=True)
        return jnp.all(jnp.stack([law.on_one_side(u, before) for law, u, before in states]))

    def along(self, us: Sequence[Array], ws: Sequence[Array]) -> Line:
        """The potentials of all terms at their changes, in their directions."""
        lines = [law.along(u, w) for law, u, w in zip(self.laws, us, ws, strict=True)]
        return functools.reduce(Line.__add__, lines)

    def _at(self, dv: Vector, held: Held) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """γ and −∂γ/∂u of all terms."""
        states = zip(self.laws, self.changes(dv), held, strict=True)
        gammas, Gs = zip(*(law.at(u, held) for law, u, held in states), strict=True)
        return gammas, Gs

    def _less(self, dv: Vector, gammas: Sequence[Array]) -> Vector:
        given = sum(term.generalized(gamma) for term, gamma in zip(self.terms, gammas, strict=True))
        return self.A @ dv - self.impulse - given


class Found(NamedTuple):
    """A minimum.

    Attributes:
        dv: Where it is.
        converged: Whether it is.
        steps: Newton steps.
    """

    dv: Vector
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


def minimum(motion: Motion, guess: Vector) -> Found:
    """The minimum, first by steps as if everything went on to stick or to slide until it shows the contrary, which find
    it in a few steps or not at all; then by Newton steps, each to the minimum along it, which always come nearer.

    Hessians are factored, however many coordinates there are. Conjugate gradients, preconditioned by the inertia of
    each tree with all that touches it, take 20 to 70 iterations for four digits and 40 to 150 for eight with 20 and 40
    bodies in a heap, since friction that sticks is 10⁵ times as stiff as other directions. A few of them take as long
    as a Cholesky factor of 240 coordinates, 0.2 ms.

    Its derivatives are those of the minimum, H ∂dv/∂θ = −∂(gradient)/∂θ, and do not depend on the iteration or on the
    guess.

    Source: Castro, Permenter, Han, An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023; for
    the first steps, Hintermüller, Ito, Kunisch, The primal-dual active set strategy as a semismooth Newton method, SIAM
    Journal on Optimization 13, 2002.
    """
    return _found(motion, jax.lax.stop_gradient(guess))


@eqx.filter_custom_jvp
def _found(motion: Motion, guess: Vector) -> Found:
    like = Found(guess, jnp.array(False), jnp.array(0, jnp.int32))
    return in_chunks(_iterated, LANES, like)(motion, guess)


def _iterated(motion: Motion, guess: Vector) -> Found:
    infinite = jnp.full((), jnp.inf, guess.dtype)
    start = _Iterate(guess, motion.may_hold(guess), infinite, motion.size, jnp.array(0, jnp.int32))
    last = jax.lax.while_loop(_Iterate.unfinished, lambda iterate: _next(motion, iterate), start)
    return Found(last.dv, last.change <= last.small, last.steps)


@_found.def_jvp
@precise
def _found_jvp(primals, tangents):
    (motion, guess), (d_motion, _) = primals, tangents
    found = _found(motion, guess)
    held = motion.holds(found.dv)
    _, residual = eqx.filter_jvp(lambda motion: motion.gradient(found.dv, held), (motion,), (d_motion,))
    _, H = motion.derivatives(found.dv, held)
    change = -CHOLESKY.solve(CHOLESKY.factor(H), residual)
    # Flags and counts have no tangents.
    return found, Found(change, None, None)  # type: ignore[arg-type]


class _Iterate(NamedTuple):
    """Where an iteration is.

    Attributes:
        dv: Minimum so far.
        held: What is taken to stick.
        change: Length of the last whole Newton step, in the norm of A; infinite where something turned out to do
            otherwise.
        size: That of the change of the velocity.
        steps: Number of steps.
    """

    dv: Vector
    held: Held
    change: Scalar
    size: Scalar
    steps: Int[Array, ""]

    @property
    def predicts(self) -> Bool[Array, ""]:
        """Whether all is still taken to go on as it did."""
        return self.steps < PREDICTED_STEPS

    @property
    def small(self) -> Scalar:
        """Up to which changes count as none."""
        return float(jnp.finfo(self.dv.dtype).eps) ** CONVERGED * self.size

    def unfinished(self) -> Bool[Array, ""]:
        # NaN ends it.
        return (self.change > self.small) & (self.steps < NEWTON_STEPS)

    def moved(self, motion: Motion, dv: Vector, step: Vector, held: Held, certain: Any) -> "_Iterate":
        """At dv, after a Newton step."""
        size = jnp.maximum(motion.size, _length(motion.A, dv))
        change = jnp.where(certain, _length(motion.A, step), jnp.inf)
        return _Iterate(dv, held, change, size, self.steps + 1)


def _length(A, dv: Vector) -> Scalar:
    return jnp.sqrt(dv @ (A @ dv))


def _next(motion: Motion, iterate: _Iterate) -> _Iterate:
    """After a Newton step: a whole one as predicted or, when predictions have not led to the minimum, one to the
    minimum along it.

    Where a whole step did as its Hessian said, a second one with the same Hessian follows: how long that is shows
    whether the first one was enough.
    """
    dv, predicts = iterate.dv, iterate.predicts
    held = jax.tree.map(functools.partial(jnp.where, predicts), iterate.held, motion.holds(dv))
    gradient, H = motion.derivatives(dv, held)
    factor, solve = _factorization(len(dv))
    L = factor(H)
    step = -solve(L, gradient)
    share = _lowest(motion, dv, step, ~predicts)
    after = motion.still_holds(dv + step, dv, held)
    certain = motion.followed(dv + step, dv, held) & (~predicts | _same(after, held))
    second = -solve(L, motion.gradient(dv + step, held))
    nearer = _length(motion.A, second) < NEARER * _length(motion.A, step)
    # The second step's gradient is that of what stuck before, and says nothing where that has changed.
    sticks = predicts | _same(motion.holds(dv + step), held)
    again = certain & sticks & motion.on_one_side(dv + step, dv) & (share == 1) & nearer
    end = dv + share * step + jnp.where(again, second, 0)
    return iterate.moved(motion, end, jnp.where(again, second, step), after, certain)


def _factorization(nv: int) -> Factorization:
    """LAPACK's, where its calls pay."""
    return CHOLESKY if nv > SMALL else Factorization(cholesky, cholesky_solution)


def _same(a: Held, b: Held) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(a == b) for a, b in zip(a, b, strict=True)]))


class _Bracket(NamedTuple):
    """The minimum along a line, between shares of a step.

    Attributes:
        low, high: Where the slope is still negative, and where it is positive.
        share: Where it is known last.
        slope: Along the line.
        next: Where to look next.
        looks: How often it was looked at.
    """

    low: Scalar
    high: Scalar
    share: Scalar
    slope: Scalar
    next: Scalar
    looks: Int[Array, ""]


def _lowest(motion: Motion, dv: Vector, step: Vector, wanted: Bool[Array, ""]) -> Scalar:
    """Share of a step at the minimum along it: Newton's method within a bracket. One where it is not wanted."""
    us, ws = motion.changes(dv), motion.changes(step)
    A_step = motion.A @ step
    slope, curvature = dv @ A_step - motion.impulse @ step, step @ A_step
    start = slope + motion.along(us, ws).slope

    def look(bracket: _Bracket) -> _Bracket:
        share = bracket.next
        terms = motion.along([u + share * w for u, w in zip(us, ws, strict=True)], ws)
        here, bend = slope + share * curvature + terms.slope, curvature + terms.curvature
        low = jnp.where(here < 0, share, bracket.low)
        high = jnp.where(here < 0, bracket.high, share)
        newton = share - here / jnp.where(bend > 0, bend, 1)
        inside = (newton > low) & (newton < high)
        return _Bracket(low, high, share, here, jnp.where(inside, newton, (low + high) / 2), bracket.looks + 1)

    def unfinished(bracket: _Bracket) -> Bool[Array, ""]:
        return wanted & (jnp.abs(bracket.slope) > FLAT * jnp.abs(start)) & (bracket.looks < LINE_STEPS)

    zero, one = jnp.zeros_like(start), jnp.ones_like(start)
    first = _Bracket(zero, LONGEST * one, one, jnp.full_like(start, jnp.inf), one, jnp.array(0, jnp.int32))
    return jax.lax.while_loop(unfinished, look, first).share
