"""Kinks of contact forces within a step, where points begin or cease to touch.

A stage of a step has the slope of a spring or has none, by whether it touches. So the derivatives of a step have it for
a share of the step that is a sum of weights of such stages, where it counts for as long as the point touches: a ball
that bounced within a tolerance of 1e-8 had a derivative by its height that was wrong by a quarter.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

Numbers = Float[Array, " points"]
Wrenches = Float[Array, "points 6"]

# Steps of Newton's method for the instant of a kink; the first one begins next to it.
NEWTON_STEPS = 6


class Kinks(NamedTuple):
    """Which points begin or cease to touch within a step, and when.

    Attributes:
        exist: Whether they do.
        when: At which share of the step; 0 for others.
        touching: For which share of the step they touch; 0 for others.
        middle: The middle of that, as a share of the step.
        always, never: Whether they touch throughout, or not at all.
        twists: [ω; v] at the kinks of second bodies relative to first ones.
    """

    exist: Bool[Array, " points"]
    when: Numbers
    touching: Numbers
    middle: Numbers
    always: Bool[Array, " points"]
    never: Bool[Array, " points"]
    twists: Wrenches

    @classmethod
    def between(
        cls,
        gaps: tuple[Numbers, Numbers],
        rates: tuple[Numbers, Numbers],
        twists: tuple[Wrenches, Wrenches],
        h: Scalar,
        known: Bool[Array, " points"],
    ) -> "Kinks":
        """Those of a step of length h [s], by distances [m], their rates [m/s] and twists where it begins and ends."""
        (g0, g1), (r0, r1) = gaps, (rate * h for rate in rates)
        begins, ceases = known & (g0 >= 0) & (g1 < 0), known & (g0 < 0) & (g1 >= 0)
        # What ceases begins in reverse.
        sides = ((g0, g1, 1), (r0, -r1, 0), (g1, g0, -1), (r1, -r0, 0))
        apart = _share_apart(*(jnp.where(begins, x, jnp.where(ceases, other, none)) for x, other, none in sides))
        exist, touching = begins | ceases, jnp.where(begins | ceases, 1 - apart, 0)
        when, middle = jnp.where(begins, apart, touching), jnp.where(begins, 1 - touching / 2, touching / 2)
        # What leaves and comes back in between is known to nobody.
        always = known & (g0 < 0) & (g1 < 0) & ~((r0 > 0) & (r1 < 0))
        never = known & (g0 >= 0) & (g1 >= 0) & ~((r0 < 0) & (r1 > 0))
        return cls(exist, when, touching, middle, always, never, twists[0] + when[:, None] * (twists[1] - twists[0]))


def _share_apart(g0: Numbers, r0: Numbers, g1: Numbers, r1: Numbers) -> Numbers:
    """The share x of a step after which a distance is zero that begins at g0 ≥ 0 and ends at g1 < 0, by its rates in
    units of the step: with a constant acceleration until then, g0 + r0 x + a x² / 2 = 0, and one that grows linearly
    afterwards. What both ends say is a cubic equation, whose value is −g0 / 3 at 0 and −g1 at 1."""

    def value(x: Numbers) -> Numbers:
        left = (1 - x) / 3
        return (g0 + r0 - g1 + (r1 - r0) * left) * x**2 - (g0 + r0 * x) * (1 - 2 * left)

    def improved(_, known):
        low, high, x = known
        there, slope = jax.jvp(value, (x,), (jnp.ones_like(x),))
        low, high = jnp.where(there < 0, x, low), jnp.where(there < 0, high, x)
        newton = x - there / jnp.where(slope == 0, 1, slope)
        return low, high, jnp.where((newton >= low) & (newton <= high), newton, (low + high) / 2)

    start = jnp.zeros_like(g0), jnp.ones_like(g0), g0 / (g0 - g1)
    return jax.lax.fori_loop(0, NEWTON_STEPS, improved, start)[2]


class KinkSlopes(NamedTuple):
    """What gives a step the derivatives of forces for as long as points touch, whatever its stages take for touching.

    Where a point begins or ceases to touch, stages that touch, at a share θ of the step, have a force F + (θ − c) G
    less, and all stages another that is linear in θ and has the impulse and the moment that F + (θ − c) G has while the
    point touches. All are zero, and have the derivatives of what begins or ends.

    Attributes:
        kinks: Those of the step.
        start, end: When it begins and ends [s].
        F: Wrenches on second bodies in the middle c of contact.
        G: How much they grow in a step.
        share: θ.
    """

    kinks: Kinks
    start: Scalar
    end: Scalar
    F: Wrenches
    G: Wrenches
    share: Scalar | float = 0.0

    def at(self, t: Scalar) -> "KinkSlopes":
        """At a time [s]. Single precision may not tell times within a step from each other."""
        length = self.end - self.start
        share = (t - self.start) / jnp.where(length == 0, 1, length)
        return self._replace(share=jnp.clip(jax.lax.stop_gradient(share), 0, 1))

    def wrench(self, touches: Bool[Array, " points"]) -> Wrenches:
        """In a stage."""
        tau, c, theta = self.kinks.touching[:, None], self.kinks.middle[:, None], self.share
        impulse, moment = tau * self.F, tau * (c - 1 / 2) * self.F + tau**3 / 12 * self.G
        line = impulse + 12 * (theta - 1 / 2) * moment
        return line - jnp.where(touches[:, None], self.F + (theta - c) * self.G, 0)

    def felt(self, distance: Numbers, depth: Numbers) -> Numbers:
        """The depth that derivatives of a stage feel, whose depth this is."""
        return jnp.where(self.kinks.always, -distance, jnp.where(self.kinks.never, 0, depth))
