"""The velocity at which a step ends, as the minimum of a strictly convex function."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import CHOLESKY, Structure
from jdyn.contact.convex.impulses import Impulses
from jdyn.dynamics.execution.batching import in_chunks
from jdyn.model.compiled import precise

# Steps that predict before Newton steps begin, all steps before giving up, and the most evaluations that look for the
# minimum along one.
PREDICTED_STEPS, NEWTON_STEPS, LINE_STEPS = 15, 65, 12
# So many lanes of a batch wait for each other. Among 96 the slowest took twice as many steps as the mean.
LANES = 8
# Points whose part of the Hessian is left out together where all are apart. A humanoid's step took two thirds.
BLOCK = 16
# A Newton step goes no further than this multiple of itself.
LONGEST = 1.5
# What is left of the slope at the minimum along a line. Near the solution full steps leave less.
FLAT = 1e-2
# Newton steps smaller than this power of rounding, against the velocities, end the iteration. It converges
# quadratically.
CONVERGED = 0.45

Vector = Float[Array, " nv"]
Held = Bool[Array, " points"]


class Motion(Structure):
    """½ vᵀ A v − momentum · v plus the potentials of all points, at their velocities J v.

    Attributes:
        A: Inertia, with what joints' springs and dampers add to it within the step.
        momentum: A times the velocity at the end of the step without contact.
        J: Velocities of the points by those of the joints, in world axes.
        impulses: At the points.
    """

    A: Float[Array, "nv nv"]
    momentum: Vector
    J: Float[Array, "points 3 nv"]
    impulses: Impulses

    def gradient(self, v: Vector, held: Held) -> Vector:
        """Momentum at v less that which the step gives it, where `held` says which points stick."""
        return self._less(v, self.impulses.at(self.J @ v, held)[0])

    def derivatives(self, v: Vector, held: Held) -> tuple[Vector, Float[Array, "nv nv"]]:
        """The gradient and the Hessian A + Jᵀ G J."""
        gamma, G = self.impulses.at(self.J @ v, held)
        return self._less(v, gamma), self._plus(G)

    def _plus(self, G: Float[Array, "points 3 3"]) -> Float[Array, "nv nv"]:
        """A + Jᵀ G J. Blocks of points that are apart, and have no G, are left out."""
        missing = -len(G) % BLOCK
        blocks = (jnp.pad(x, [(0, missing), (0, 0), (0, 0)]).reshape(-1, BLOCK, *x.shape[1:]) for x in (G, self.J))

        def add(H, block):
            G, J = block
            rows = J.reshape(-1, len(H))
            return jax.lax.cond(
                unvmap_any(G != 0), lambda H: H + rows.T @ (G @ J).reshape(rows.shape), lambda H: H, H
            ), None

        return jax.lax.scan(add, self.A, tuple(blocks))[0]

    @property
    def size(self) -> Scalar:
        """About the length of the velocity without contact, in the norm of A."""
        return jnp.sqrt(jnp.sum(self.momentum**2 / jnp.diag(self.A)))

    def holds(self, v: Vector) -> Held:
        """Which points stick."""
        return self.impulses.holds(self.J @ v)

    def _less(self, v: Vector, gamma: Float[Array, "points 3"]) -> Vector:
        return self.A @ v - self.momentum - jnp.tensordot(gamma, self.J, 2)


class Found(NamedTuple):
    """A minimum.

    Attributes:
        v: Where it is.
        converged: Whether it is.
        steps: Newton steps.
    """

    v: Vector
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


def minimum(motion: Motion, guess: Vector) -> Found:
    """The minimum, first by steps as if each point went on to stick or to slide until it shows the contrary, which find
    it in a few steps or not at all; then by Newton steps, each to the minimum along it, which always find it.

    Its derivatives are those of the minimum, H dv = −∂(gradient)/∂θ dθ, and do not depend on the iteration or on the
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
    held = motion.impulses.may_hold(motion.J @ guess)
    start = _Iterate(guess, held, infinite, motion.size, jnp.array(0, jnp.int32))
    near = jax.lax.while_loop(
        lambda iterate: iterate.unfinished(PREDICTED_STEPS), lambda iterate: _predicted(motion, iterate), start
    )
    last = jax.lax.while_loop(
        lambda iterate: iterate.unfinished(NEWTON_STEPS), lambda iterate: _improved(motion, iterate), near
    )
    return Found(last.v, last.change <= _small(guess.dtype) * last.size, last.steps)


@_found.def_jvp
@precise
def _found_jvp(primals, tangents):
    (motion, guess), (d_motion, _) = primals, tangents
    found = _found(motion, guess)
    held = motion.holds(found.v)
    _, residual = eqx.filter_jvp(lambda motion: motion.gradient(found.v, held), (motion,), (d_motion,))
    _, H = motion.derivatives(found.v, held)
    change = -CHOLESKY.solve(CHOLESKY.factor(H), residual)
    # Flags and counts have no tangents.
    return found, Found(change, None, None)  # type: ignore[arg-type]


class _Iterate(NamedTuple):
    """Where an iteration is.

    Attributes:
        v: Minimum so far.
        held: Which points are taken to stick.
        change: Length of the last whole Newton step, in the norm of A; infinite where points turned out to do something
            else.
        size: That of the velocities.
        steps: Number of steps.
    """

    v: Vector
    held: Held
    change: Scalar
    size: Scalar
    steps: Int[Array, ""]

    def unfinished(self, most: int) -> Bool[Array, ""]:
        return (self.change > _small(self.v.dtype) * self.size) & (self.steps < most)

    def moved(self, motion: Motion, v: Vector, step: Vector, held: Held, certain: Any) -> "_Iterate":
        """At v, after a Newton step."""
        size = jnp.maximum(motion.size, _length(motion.A, v))
        change = jnp.where(certain, _length(motion.A, step), jnp.inf)
        return _Iterate(v, held, change, size, self.steps + 1)


def _small(dtype) -> float:
    return float(jnp.finfo(dtype).eps) ** CONVERGED


def _length(A, v: Vector) -> Scalar:
    return jnp.sqrt(v @ (A @ v))


def _predicted(motion: Motion, iterate: _Iterate) -> _Iterate:
    """After a Newton step and, where all points did as predicted, a second one with the same Hessian: how long that is
    shows whether the first one was enough."""
    v, held, impulses = iterate.v, iterate.held, motion.impulses
    gradient, H = motion.derivatives(v, held)
    L = CHOLESKY.factor(H)
    first = v - CHOLESKY.solve(L, gradient)
    u, u_first = motion.J @ v, motion.J @ first
    after = impulses.still_holds(u_first, u, held)
    same = jnp.all((after == held) & (impulses.presses(u_first) == impulses.presses(u)))
    second = jnp.where(same, -CHOLESKY.solve(L, motion.gradient(first, held)), 0)
    return iterate.moved(motion, first + second, second, after, same)


def _improved(motion: Motion, iterate: _Iterate) -> _Iterate:
    """After a Newton step to the minimum along it."""
    v = iterate.v
    gradient, H = motion.derivatives(v, motion.holds(v))
    step = -CHOLESKY.solve(CHOLESKY.factor(H), gradient)
    return iterate.moved(motion, v + _lowest(motion, v, step) * step, step, iterate.held, True)


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


def _lowest(motion: Motion, v: Vector, step: Vector) -> Scalar:
    """Share of a step at the minimum along it: Newton's method within a bracket."""
    u, w = motion.J @ v, motion.J @ step
    A_step = motion.A @ step
    slope, curvature = v @ A_step - motion.momentum @ step, step @ A_step
    start = slope + motion.impulses.along(u, w).slope

    def look(bracket: _Bracket) -> _Bracket:
        share = bracket.next
        points = motion.impulses.along(u + share * w, w)
        here, bend = slope + share * curvature + points.slope, curvature + points.curvature
        low = jnp.where(here < 0, share, bracket.low)
        high = jnp.where(here < 0, bracket.high, share)
        newton = share - here / jnp.where(bend > 0, bend, 1)
        inside = (newton > low) & (newton < high)
        return _Bracket(low, high, share, here, jnp.where(inside, newton, (low + high) / 2), bracket.looks + 1)

    def unfinished(bracket: _Bracket) -> Bool[Array, ""]:
        return (jnp.abs(bracket.slope) > FLAT * jnp.abs(start)) & (bracket.looks < LINE_STEPS)

    zero, one = jnp.zeros_like(start), jnp.ones_like(start)
    first = _Bracket(zero, LONGEST * one, one, jnp.full_like(start, jnp.inf), one, jnp.array(0, jnp.int32))
    return jax.lax.while_loop(unfinished, look, first).share
