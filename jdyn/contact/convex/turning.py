"""Friction against turning and rolling at points of contact, as the gradient of a convex function."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.contact.convex.in_planes import Matrices, beside, rise, rubbing_along, split, squares
from jdyn.contact.directional import weighed_rows
from jdyn.impulses.friction import Friction, clipped, row_dot
from jdyn.impulses.law import ConvexLaw, Line

Vectors = Float[Array, "points 3"]
# About the normal, and beside it.
Sticking = Bool[Array, "2 points"]
Shares = Float[Array, "2 points 3"]
Numbers = Float[Array, "2 points"]


class Turning(ConvexLaw):
    """γ(u), where u is how the angular velocities of shape b relative to shape a at points of contact change in a step:
    friction against turning about the normal, and friction against rolling, by the angular velocity beside it. Their
    bounds are lengths times the normal impulse, known from the start of the step as that against sliding is.

    Attributes:
        normal: Unit vectors from a to b.
        spinning, rolling: Friction.
        spin, roll: Angular velocities about the normal and beside it at the end if u is zero, that beside it weighed
            [rad/s].
        weights: Weights of rolling by its direction; None where it does not matter.
    """

    normal: Vectors
    spinning: Friction
    rolling: Friction
    spin: Vectors
    roll: Vectors
    weights: Matrices | None = None

    @classmethod
    def from_start(
        cls,
        normal: Vectors,
        spinning: Friction,
        rolling: Friction,
        start: Vectors,
        gained: Vectors,
        weights: Matrices | None = None,
    ) -> "Turning":
        """Make it of angular velocities where the step begins, and of how they grow within it if nothing
        accelerates."""
        turning = start + gained
        spin = row_dot(turning, normal)[:, None] * normal
        return cls(normal, spinning, rolling, spin, weighed_rows(weights, beside(turning, normal)), weights)

    def sticks(self, u: Vectors) -> Sticking:
        return self._both(Friction.sticks, u)

    def may_stick(self, u: Vectors) -> Sticking:
        return self._both(Friction.may_stick, u)

    def shares(self, u: Vectors) -> Shares:
        return self._both(Friction.true_share, u)

    def reverses(self, u: Vectors, du: Vectors, sticking: Sticking) -> Sticking:
        return self._both(Friction.reverses, u, self._split(du), sticking)

    def predicted_shares(self, u: Vectors, du: Vectors, sticking: Sticking, shares: Shares) -> Shares:
        return self._both(Friction.predicted_shares, u, self._split(du), sticking, shares)

    def share_errors(self, u: Vectors, shares: Shares) -> tuple[Numbers, Numbers]:
        return self._both(Friction.share_errors, u, shares)

    def impulse(self, u: Vectors, sticking: Sticking) -> Vectors:
        spinning, rolling = self._both(Friction.impulse, u, sticking)
        return spinning + weighed_rows(self.weights, rolling)

    def slope(self, u: Vectors, sticking: Sticking, shares: Shares) -> Matrices:
        spin, roll = self._turning(u)
        # What turns about the normal has no direction beside its own.
        bent = jnp.where(sticking[0], 1, 1 - row_dot(clipped(shares[0]), self.spinning.share(spin, sticking[0])))
        spinning = self.spinning.steepness(spin, sticking[0]) * jnp.maximum(bent, 0)
        rolling = rise(self.rolling, self.normal, roll, sticking[1], shares[1])
        if self.weights is not None:
            rolling = self.weights @ rolling @ self.weights
        return spinning[:, None, None] * squares(self.normal) + rolling

    def line_derivatives(self, u: Vectors, w: Vectors) -> Line:
        (spin, roll), (w_along, w_beside) = self._turning(u), self._split(w)
        sticking = self.spinning.sticks(spin)
        slope = jnp.sum(self.spinning.bound * row_dot(self.spinning.share(spin, sticking), w_along))
        rise = jnp.where(sticking, self.spinning.steepness(spin, sticking), 0)
        spinning = Line(slope, jnp.sum(rise * row_dot(w_along, w_along)))
        return spinning + rubbing_along(self.rolling, self.normal, roll, w_beside)

    def _both(self, what: Callable, u: Vectors, *known: Any) -> Any:
        """Both kinds of friction together: against turning about the normal, and against rolling."""
        frictions = self.spinning, self.rolling
        return jax.tree.map(lambda *x: jnp.stack(x), *map(what, frictions, self._turning(u), *known))

    def _turning(self, u: Vectors) -> tuple[Vectors, Vectors]:
        along, beside = self._split(u)
        return self.spin + along, self.roll + beside

    def _split(self, u: Vectors) -> tuple[Vectors, Vectors]:
        speed, beside = split(u, self.normal)
        return speed[:, None] * self.normal, weighed_rows(self.weights, beside)
