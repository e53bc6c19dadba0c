"""Dry friction in joints as the gradient of a convex function of the velocity."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.dynamics.passive import friction_share
from jdyn.impulses.law import LawByRow

# Up to this multiple of its speed, D and its derivative are series of the velocity.
SLOW = 0.05

Coordinates = Float[Array, " nv_full"]
Held = Bool[Array, " nv_full"]


class JointFriction(LawByRow):
    """γ = −bound λ with λ = `friction_share`, tanh(v / speed), and v = start + u at the end of the step.

    As in `Friction`, iterations make λ D(v) = v linear in both, here with D = v / tanh(v / speed).

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

    def shares(self, u: Coordinates) -> Coordinates:
        return friction_share(self.start + u, self.speed)

    def turns(self, u: Coordinates, du: Coordinates, held: Held) -> Held:
        v = self.start + u
        return (v * (v + du) < 0) & (jnp.abs(v) > self.speed) & ~held & (self.bound > 0)

    def tends(self, u: Coordinates, du: Coordinates, held: Held, shares: Coordinates) -> Coordinates:
        D, bend = self._denominator(u, held)
        return (self.start + u + (1 - bend * jnp.clip(shares, -1, 1)) * du) / D

    def missed(self, u: Coordinates, shares: Coordinates) -> tuple[Coordinates, Coordinates]:
        missed = jnp.where(self.bound > 0, jnp.abs(shares - self.shares(u)), 0)
        return missed, jnp.sqrt(self.bound * self.stopped) * missed

    def impulse(self, u: Coordinates, held: Held) -> Coordinates:
        return -self.bound * jnp.where(held, self._speeds(u), self.shares(u))

    def slope(self, u: Coordinates, held: Held, shares: Coordinates) -> Coordinates:
        D, bend = self._denominator(u, held)
        return self.bound * jnp.maximum(1 - bend * jnp.clip(shares, -1, 1), 0) / D

    def _speeds(self, u: Coordinates) -> Coordinates:
        return (self.start + u) / self.speed

    def _denominator(self, u: Coordinates, held: Held) -> tuple[Coordinates, Coordinates]:
        """D, and its derivative."""
        x, share = self._speeds(u), self.shares(u)
        slow = jnp.abs(x) < SLOW
        safe = jnp.where(slow, 1, share)
        # The series of x / tanh(x).
        D = jnp.where(slow, 1 + x**2 / 3 - x**4 / 45 + 2 * x**6 / 945, x / safe)
        bend = jnp.where(slow, 2 * x / 3 - 4 * x**3 / 45 + 4 * x**5 / 315, (1 - D * (1 - share**2)) / safe)
        return self.speed * jnp.where(held, 1, D), jnp.where(held, 0, bend)
