"""Impulses at points of contact within a step, as gradients of convex functions of the velocity."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

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
    """

    h: Scalar
    normal: Vectors
    force: Points
    stiffness: Points
    dissipation: Points
    bound: Points
    slip: Points

    def at(self, u: Vectors) -> tuple[Vectors, Float[Array, "points 3 3"]]:
        """γ and −∂γ/∂u, which is symmetric and not negative."""
        speed, beside = self._split(u)
        pressed, fall = self._pressed(speed)
        way, slides, hold = self._held(beside)
        gamma = pressed[:, None] * self.normal - self.bound[:, None] * way
        across = jnp.eye(3, dtype=u.dtype)[None] - _squares(self.normal) - slides[:, None, None] * _squares(way)
        return gamma, fall[:, None, None] * _squares(self.normal) + hold[:, None, None] * across

    def along(self, u: Vectors, w: Vectors) -> Line:
        """At u, in the direction w."""
        (speed, beside), (w_normal, w_beside) = self._split(u), self._split(w)
        pressed, fall = self._pressed(speed)
        way, slides, hold = self._held(beside)
        with_way = _dot(way, w_beside)
        slope = self.bound * with_way - pressed * w_normal
        curvature = fall * w_normal**2 + hold * (_dot(w_beside, w_beside) - slides * with_way**2)
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

    def _held(self, beside: Vectors) -> tuple[Vectors, Points, Points]:
        """Direction of friction, shorter than 1 where it holds; whether it slides; how friction rises across it."""
        square = _dot(beside, beside)
        slides = square > self.slip**2
        speed = jnp.where(slides, jnp.sqrt(jnp.where(slides, square, 1)), self.slip)
        return beside / speed[:, None], slides.astype(speed.dtype), self.bound / speed


def _dot(x: Vectors, y: Vectors) -> Points:
    return jnp.sum(x * y, axis=1)


def _squares(x: Vectors) -> Float[Array, "points 3 3"]:
    return jax.vmap(jnp.outer)(x, x)
