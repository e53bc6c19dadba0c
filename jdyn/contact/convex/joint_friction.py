"""Dry friction in joints as the gradient of a convex function of the velocity."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.contact.convex.law import LawByRow

# By this power of rounding, as a share of the bound, the law may depart from its derivative in the last iteration.
MISSED = 0.45

Coordinates = Float[Array, " nv_full"]
Held = Bool[Array, " nv_full"]


class JointFriction(LawByRow):
    """γ = −bound tanh(v / speed), the law of `jdyn.Model`, with the velocity v = start + u at the end of the step.

    Newton's method finds its way along this function from the side of v = 0, and is thrown across by the other side. So
    what turns its way is taken for what sticks, γ = −bound v / speed, for one iteration, which ends on that side.

    Attributes:
        start: Velocity at the start of the step [rad/s or m/s].
        bound: Largest impulse [N m s or N s].
        speed: At which friction reaches 76 % of it [rad/s or m/s].
        stopped: Speed that friction can about take away.
    """

    start: Coordinates
    bound: Coordinates
    speed: Coordinates
    stopped: Coordinates

    def holds(self, u: Coordinates) -> Held:
        """Nothing does for good."""
        return jnp.zeros(u.shape, bool)

    def may_hold(self, u: Coordinates) -> Held:
        speed = jnp.abs(self.start + u)
        return (speed <= self.stopped) & (speed > self.speed)

    def still_holds(self, u: Coordinates, before: Coordinates, held: Held) -> Held:
        v, before = self.start + u, self.start + before
        return (v * before < 0) & (jnp.abs(before) > self.speed) & ~held

    def followed(self, u: Coordinates, before: Coordinates, held: Held) -> Bool[Array, ""]:
        """Iterations begin to slide by small steps, the next of which are larger."""
        gamma, rise = self.at(before, held)
        missed = self.at(u, self.holds(u))[0] - (gamma - rise * (u - before))
        return jnp.all(jnp.abs(missed) <= float(jnp.finfo(u.dtype).eps) ** MISSED * self.bound)

    def at(self, u: Coordinates, held: Held) -> tuple[Coordinates, Coordinates]:
        share = (self.start + u) / self.speed
        share = jnp.where(held, share, jnp.tanh(share))
        return -self.bound * share, self.bound / self.speed * jnp.where(held, 1, 1 - share**2)
