"""Friction against turning and rolling at points of contact, as the gradient of a convex function."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.contact.convex.in_planes import Matrices, beside, rise, rubbing_along, split, squares
from jdyn.impulses.friction import Friction, row_dot, within
from jdyn.impulses.law import ConvexLaw, Line

Vectors = Float[Array, "points 3"]
# About the normal, and beside it.
Held = Bool[Array, "2 points"]
Shares = Float[Array, "2 points 3"]
Numbers = Float[Array, "2 points"]


class Turning(ConvexLaw):
    """γ(u), where u is how the angular velocities of shape b relative to shape a at points of contact change in a step:
    friction against turning about the normal, and friction against rolling, by the angular velocity beside it. Their
    bounds are lengths times the normal impulse, known from the start of the step as that against sliding is.

    Attributes:
        normal: Unit vectors from a to b.
        spinning, rolling: Friction.
        spin, roll: Angular velocities about the normal and beside it at the end if u is zero [rad/s].
    """

    normal: Vectors
    spinning: Friction
    rolling: Friction
    spin: Vectors
    roll: Vectors

    @classmethod
    def from_start(
        cls, normal: Vectors, spinning: Friction, rolling: Friction, start: Vectors, gained: Vectors
    ) -> "Turning":
        """Make it of angular velocities where the step begins, and of how they grow within it if nothing
        accelerates."""
        turning = start + gained
        spin = row_dot(turning, normal)[:, None] * normal
        return cls(normal, spinning, rolling, spin, beside(turning, normal))

    def holds(self, u: Vectors) -> Held:
        return self._both(Friction.holds, u)

    def may_hold(self, u: Vectors) -> Held:
        return self._both(Friction.may_hold, u)

    def shares(self, u: Vectors) -> Shares:
        return self._both(Friction.true_share, u)

    def turns(self, u: Vectors, du: Vectors, held: Held) -> Held:
        return self._both(Friction.turns, u, self._split(du), held)

    def tends(self, u: Vectors, du: Vectors, held: Held, shares: Shares) -> Shares:
        return self._both(Friction.tends, u, self._split(du), held, shares)

    def missed(self, u: Vectors, shares: Shares) -> tuple[Numbers, Numbers]:
        return self._both(Friction.missed, u, shares)

    def impulse(self, u: Vectors, held: Held) -> Vectors:
        return jnp.sum(self._both(Friction.impulse, u, held), axis=0)

    def slope(self, u: Vectors, held: Held, shares: Shares) -> Matrices:
        spin, roll = self._turning(u)
        # What turns about the normal has no direction beside its own.
        bent = jnp.where(held[0], 1, 1 - row_dot(within(shares[0]), self.spinning.share(spin, held[0])))
        spinning = self.spinning.steepness(spin, held[0]) * jnp.maximum(bent, 0)
        rolling = rise(self.rolling, self.normal, roll, held[1], shares[1])
        return spinning[:, None, None] * squares(self.normal) + rolling

    def along(self, u: Vectors, w: Vectors) -> Line:
        (spin, roll), (w_along, w_beside) = self._turning(u), self._split(w)
        held = self.spinning.holds(spin)
        slope = jnp.sum(self.spinning.bound * row_dot(self.spinning.share(spin, held), w_along))
        rise = jnp.where(held, self.spinning.steepness(spin, held), 0)
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
        return speed[:, None] * self.normal, beside
