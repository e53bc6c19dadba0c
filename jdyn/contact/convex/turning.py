"""Friction against turning and rolling at points of contact, as the gradient of a convex function."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.contact.convex.friction import Friction, dot
from jdyn.contact.convex.in_planes import beside, rubbing, rubbing_along, split, squares
from jdyn.contact.convex.law import Law, Line

Vectors = Float[Array, "points 3"]


class Turning(Law):
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
        """By angular velocities where the step begins, and by how they grow within it if nothing accelerates."""
        turning = start + gained
        spin = dot(turning, normal)[:, None] * normal
        return cls(normal, spinning, rolling, spin, beside(turning, normal))

    def holds(self, u: Vectors) -> Bool[Array, "2 points"]:
        along, beside = self._turning(u)
        return jnp.stack([self.spinning.holds(along), self.rolling.holds(beside)])

    def may_hold(self, u: Vectors) -> Bool[Array, "2 points"]:
        along, beside = self._turning(u)
        return jnp.stack([self.spinning.may_hold(along), self.rolling.may_hold(beside)])

    def still_holds(self, u: Vectors, before: Vectors, held: Bool[Array, "2 points"]) -> Bool[Array, "2 points"]:
        (along, beside), (along_before, beside_before) = self._turning(u), self._turning(before)
        spins = self.spinning.still_holds(along, along_before, held[0])
        return jnp.stack([spins, self.rolling.still_holds(beside, beside_before, held[1])])

    def at(self, u: Vectors, held: Bool[Array, "2 points"]) -> tuple[Vectors, Float[Array, "points 3 3"]]:
        along, beside = self._turning(u)
        way, rise = self.spinning.rubbed(along, held[0])
        rubbed, rises = rubbing(self.rolling, self.normal, beside, held[1])
        # What turns about the normal has no direction beside its own.
        rise = jnp.where(held[0], rise, 0)
        gamma = -self.spinning.bound[:, None] * way - rubbed
        return gamma, rise[:, None, None] * squares(self.normal) + rises

    def along(self, u: Vectors, w: Vectors) -> Line:
        (along, beside), (w_along, w_beside) = self._turning(u), self._split(w)
        held = self.spinning.holds(along)
        way, rise = self.spinning.rubbed(along, held)
        slope = jnp.sum(self.spinning.bound * dot(way, w_along))
        spinning = Line(slope, jnp.sum(jnp.where(held, rise, 0) * dot(w_along, w_along)))
        return spinning + rubbing_along(self.rolling, self.normal, beside, w_beside)

    def _turning(self, u: Vectors) -> tuple[Vectors, Vectors]:
        along, beside = self._split(u)
        return self.spin + along, self.roll + beside

    def _split(self, u: Vectors) -> tuple[Vectors, Vectors]:
        speed, beside = split(u, self.normal)
        return speed[:, None] * self.normal, beside
