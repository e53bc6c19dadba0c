"""The velocity at which a step ends, as the minimum of a strictly convex function."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import CHOLESKY, Structure
from jdyn.contact.convex.impulses import Impulses
from jdyn.model.compiled import precise

# Newton steps before giving up, and the most evaluations that look for the minimum along one.
NEWTON_STEPS, LINE_STEPS = 50, 12
# A Newton step goes no further than this multiple of itself.
LONGEST = 1.5
# What is left of the slope at the minimum along a line. Near the solution full steps leave less.
FLAT = 1e-2
# Steps smaller than this power of rounding, against the velocities, end the iteration; larger ones than its root mean
# that it failed.
CONVERGED = 0.7

Vector = Float[Array, " nv"]


class Motion(Structure):
    """½ (v − free)ᵀ A (v − free) plus the potentials of all points, at their velocities J v.

    Attributes:
        A: Inertia, with what joints' springs and dampers add to it within the step.
        free: Velocity at the end of the step without contact.
        J: Velocities of the points by those of the joints, in world axes.
        impulses: At the points.
    """

    A: Float[Array, "nv nv"]
    free: Vector
    J: Float[Array, "points 3 nv"]
    impulses: Impulses

    def gradient(self, v: Vector) -> Vector:
        """Momentum at v less that which the step gives it."""
        gamma, _ = self.impulses.at(self.J @ v)
        return self.A @ (v - self.free) - jnp.tensordot(gamma, self.J, 2)

    def derivatives(self, v: Vector) -> tuple[Vector, Float[Array, "nv nv"]]:
        """The gradient, and the Hessian A + Jᵀ G J."""
        gamma, G = self.impulses.at(self.J @ v)
        gradient = self.A @ (v - self.free) - jnp.tensordot(gamma, self.J, 2)
        rows = self.J.reshape(-1, len(v))
        return gradient, self.A + rows.T @ (G @ self.J).reshape(rows.shape)


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
    """The minimum by Newton steps, each to the minimum along it.

    Its derivatives are those of the minimum, H dv = −∂(gradient)/∂θ dθ, and do not depend on the iteration or on the
    guess.

    Source: Castro, Permenter, Han, An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.
    """
    return _found(motion, jax.lax.stop_gradient(guess))


@eqx.filter_custom_jvp
def _found(motion: Motion, guess: Vector) -> Found:
    last = jax.lax.while_loop(_unfinished, lambda iterate: _improved(motion, iterate), _start(motion, guess))
    return Found(last.v, last.change <= jnp.sqrt(_small(guess.dtype)) * last.size, last.steps)


@_found.def_jvp
@precise
def _found_jvp(primals, tangents):
    (motion, guess), (d_motion, _) = primals, tangents
    found = _found(motion, guess)
    _, residual = eqx.filter_jvp(lambda motion: motion.gradient(found.v), (motion,), (d_motion,))
    _, H = motion.derivatives(found.v)
    change = -CHOLESKY.solve(CHOLESKY.factor(H), residual)
    # Flags and counts have no tangents.
    return found, Found(change, None, None)  # type: ignore[arg-type]


class _Iterate(NamedTuple):
    """A Newton iteration.

    Attributes:
        v: Minimum so far.
        change: Length of the last step, in the norm of A.
        size: That of the velocities.
        steps: Number of steps.
    """

    v: Vector
    change: Scalar
    size: Scalar
    steps: Int[Array, ""]


def _small(dtype) -> float:
    return float(jnp.finfo(dtype).eps) ** CONVERGED


def _start(motion: Motion, guess: Vector) -> _Iterate:
    infinite = jnp.full((), jnp.inf, guess.dtype)
    return _Iterate(guess, infinite, _length(motion.A, motion.free), jnp.array(0, jnp.int32))


def _length(A, v: Vector) -> Scalar:
    return jnp.sqrt(v @ (A @ v))


def _unfinished(iterate: _Iterate) -> Bool[Array, ""]:
    return (iterate.change > _small(iterate.v.dtype) * iterate.size) & (iterate.steps < NEWTON_STEPS)


def _improved(motion: Motion, iterate: _Iterate) -> _Iterate:
    gradient, H = motion.derivatives(iterate.v)
    step = -CHOLESKY.solve(CHOLESKY.factor(H), gradient)
    share = _lowest(motion, iterate.v, step)
    v = iterate.v + share * step
    size = jnp.maximum(_length(motion.A, motion.free), _length(motion.A, v))
    return _Iterate(v, share * _length(motion.A, step), size, iterate.steps + 1)


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
    slope, curvature = (v - motion.free) @ A_step, step @ A_step
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
