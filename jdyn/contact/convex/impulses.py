"""Impulses at points of contact within a step, as gradients of convex functions of the velocity."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.array import Structure

Points = Float[Array, "points"]
Vectors = Float[Array, "points 3"]


class Line(NamedTuple):
    """First and second derivative of the sum of all potentials along a line."""

    slope: Scalar
    curvature: Scalar


class Impulses(Structure):
    """γ(u) for the velocities u of shape b relative to shape a, one of each point, at the end of a step of length h.

    With the speed u_n = u · normal and the velocity u_t beside it,

        γ = n(u_n) normal − bound u_t / max(|u_t|, slip),
        n(u_n) = h (force − h stiffness u_n)₊ (1 − dissipation u_n)₊.

    Both parts fall along u, so that −γ is the gradient of a convex function: n is the impulse of Hunt and Crossley's
    law with the depth at the end of the step, and the bound of friction is known from its start.

    Source: Castro, Han, Masterjohn, Irrotational contact fields, arXiv 2312.03908, 2023, the lagged model.

    Attributes:
        h: Length of the step [s].
        normal: Unit vectors from a to b.
        force: Of the springs at the start, stiffness times depth; negative where shapes are apart [N].
        stiffness: [N/m].
        dissipation: [s/m].
        bound: Largest impulse of friction [N s].
        slip: Speed up to which friction holds, in proportion to the speed [m/s].
        stopped: Speed that friction can about take away; where iterations begin depends on it, not where they end.
    """

    h: Scalar
    normal: Vectors
    force: Points
    stiffness: Points
    dissipation: Points
    bound: Points
    slip: Points
    stopped: Points

    def presses(self, u: Vectors) -> Bool[Array, " points"]:
        """Where there is an impulse along the normal."""
        return self._pressed(_dot(u, self.normal))[1] > 0

    def holds(self, u: Vectors) -> Bool[Array, " points"]:
        """Where friction sticks."""
        _, beside = self._split(u)
        return _dot(beside, beside) <= self.slip**2

    def may_hold(self, u: Vectors) -> Bool[Array, " points"]:
        """Where friction may stop what slides now."""
        _, beside = self._split(u)
        return _dot(beside, beside) <= jnp.maximum(self.slip, self.stopped) ** 2

    def still_holds(self, u: Vectors, before: Vectors, held: Bool[Array, " points"]) -> Bool[Array, " points"]:
        """Where friction sticks, and where slip has turned back since `before`: it does not slide the other way until
        what holds it has given in."""
        turned = _dot(self._split(u)[1], self._split(before)[1]) < 0
        return self.holds(u) | (turned & ~held)

    def at(self, u: Vectors, held: Bool[Array, " points"]) -> tuple[Vectors, Float[Array, "points 3 3"]]:
        """γ and −∂γ/∂u, symmetric and not negative, where `held` says what sticks, at any speed, and what slides."""
        speed, beside = self._split(u)
        pressed, fall = self._pressed(speed)
        way, hold = self._rubbed(beside, held)
        gamma = pressed[:, None] * self.normal - self.bound[:, None] * way
        # As squares, which are not negative whatever rounding makes of a slow slip's direction.
        beside_normal = jnp.eye(3, dtype=u.dtype)[None] - _squares(self.normal)
        across = jnp.where(held[:, None, None], beside_normal @ beside_normal, _squares(self._across(way)))
        return gamma, fall[:, None, None] * _squares(self.normal) + hold[:, None, None] * across

    def along(self, u: Vectors, w: Vectors) -> Line:
        """At u, in the direction w."""
        (speed, beside), (w_normal, w_beside) = self._split(u), self._split(w)
        pressed, fall = self._pressed(speed)
        held = self.holds(u)
        way, hold = self._rubbed(beside, held)
        slope = self.bound * _dot(way, w_beside) - pressed * w_normal
        across = jnp.where(held, _dot(w_beside, w_beside), _dot(self._across(way), w_beside) ** 2)
        curvature = fall * w_normal**2 + hold * across
        return Line(jnp.sum(slope), jnp.sum(curvature))

    def _split(self, u: Vectors) -> tuple[Points, Vectors]:
        """Along the normal, and the rest."""
        speed = _dot(u, self.normal)
        return speed, u - speed[:, None] * self.normal

    def _pressed(self, speed: Points) -> tuple[Points, Points]:
        """n, and how it falls with the speed."""
        force = self.force - self.h * self.stiffness * speed
        damping = 1 - self.dissipation * speed
        pushes = (force > 0) & (damping > 0)
        fall = self.h * (self.h * self.stiffness * damping + self.dissipation * force)
        return jnp.where(pushes, self.h * force * damping, 0), jnp.where(pushes, fall, 0)

    def _across(self, way: Vectors) -> Vectors:
        """Beside both the normal and a direction of slip."""
        return jnp.cross(self.normal, way)

    def _rubbed(self, beside: Vectors, held: Bool[Array, " points"]) -> tuple[Vectors, Points]:
        """Against what friction acts, as a share of its bound, and how it rises across that."""
        square = _dot(beside, beside)
        slides = ~held & (square > 0)
        speed = jnp.where(slides, jnp.sqrt(jnp.where(slides, square, 1)), self.slip)
        return beside / speed[:, None], self.bound / speed


def _dot(x: Vectors, y: Vectors) -> Points:
    return jnp.sum(x * y, axis=1)


def _squares(x: Vectors) -> Float[Array, "points 3 3"]:
    return jax.vmap(jnp.outer)(x, x)
