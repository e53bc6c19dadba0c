"""Dry friction in joints as the gradient of a convex function of the velocity."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.dynamics.passive import friction_share
from jdyn.impulses.law import LawByRow

# Up to this multiple of its speed, D and its derivative are series of the velocity.
SLOW = 0.05

Coordinates = Float[Array, " nv_full"]
Sticking = Bool[Array, " nv_full"]


class JointFriction(LawByRow):
    """γ = −bound λ with λ = `friction_share`, tanh(v / speed), and v = start + u at the end of the step.

    As in `Friction`, iterations linearize λ D(v) = v in both, here with D = v / tanh(v / speed).

    Attributes:
        start: Velocity at the start of the step [rad/s or m/s].
        bound: Largest impulse [N m s or N s].
        speed: At which friction reaches 76 % of it [rad/s or m/s].
        stopped: Speed that friction can about stop.
    """

    start: Coordinates
    bound: Coordinates
    speed: Coordinates
    stopped: Coordinates

    def sticks(self, u: Coordinates) -> Sticking:
        """Tell that nothing sticks: tanh has no kink."""
        return jnp.zeros(u.shape, bool)

    def may_stick(self, u: Coordinates) -> Sticking:
        speed = jnp.abs(self.start + u)
        return (speed <= self.stopped) & (speed > self.speed)

    def shares(self, u: Coordinates) -> Coordinates:
        return friction_share(self.start + u, self.speed)

    def reverses(self, u: Coordinates, du: Coordinates, sticking: Sticking) -> Sticking:
        v = self.start + u
        return (v * (v + du) < 0) & (jnp.abs(v) > self.speed) & ~sticking & (self.bound > 0)

    def predicted_shares(self, u: Coordinates, du: Coordinates, sticking: Sticking, shares: Coordinates) -> Coordinates:
        D, bend = self._denominator(u, sticking)
        return (self.start + u + (1 - bend * jnp.clip(shares, -1, 1)) * du) / D

    def share_errors(self, u: Coordinates, shares: Coordinates) -> tuple[Coordinates, Coordinates]:
        error = jnp.where(self.bound > 0, jnp.abs(shares - self.shares(u)), 0)
        return error, jnp.sqrt(self.bound * self.stopped) * error

    def impulse(self, u: Coordinates, sticking: Sticking) -> Coordinates:
        return -self.bound * jnp.where(sticking, self._speeds(u), self.shares(u))

    def slope(self, u: Coordinates, sticking: Sticking, shares: Coordinates) -> Coordinates:
        D, bend = self._denominator(u, sticking)
        return self.bound * jnp.maximum(1 - bend * jnp.clip(shares, -1, 1), 0) / D

    def _speeds(self, u: Coordinates) -> Coordinates:
        return (self.start + u) / self.speed

    def _denominator(self, u: Coordinates, sticking: Sticking) -> tuple[Coordinates, Coordinates]:
        """D, and its derivative."""
        x, share = self._speeds(u), self.shares(u)
        slow = jnp.abs(x) < SLOW
        safe = jnp.where(slow, 1, share)
        # The series of x / tanh(x).
        D = jnp.where(slow, 1 + x**2 / 3 - x**4 / 45 + 2 * x**6 / 945, x / safe)
        bend = jnp.where(slow, 2 * x / 3 - 4 * x**3 / 45 + 4 * x**5 / 315, (1 - D * (1 - share**2)) / safe)
        return self.speed * jnp.where(sticking, 1, D), jnp.where(sticking, 0, bend)
