"""Kinks of contact forces within a step, where points begin or cease to touch.

A stage of a step has the slope of a spring or has none, by whether it touches. So the derivatives of a step have it for
a share of the step that is a sum of weights of such stages, where it counts for as long as the point touches: a ball
that bounced within a tolerance of 1e-8 had a derivative by its height that was wrong by a quarter.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from jdyn.contact.laws import parting

Numbers = Float[Array, " points"]
Vectors = Float[Array, "points 3"]
# Twists [ω; v] or wrenches [n; f], or the second parts of either alone.
Rows = Float[Array, "points k"]

# Steps of Newton's method for the instant of a kink; the first one begins next to it.
NEWTON_STEPS = 12


class Kinks(NamedTuple):
    """Which points begin or cease to touch within a step, and when.

    Attributes:
        exist: Whether they do.
        when: At which share of the step; 0 for others.
        touching: For which share of the step they touch; 0 for others.
        middle: The middle of that, as a share of the step.
        always, never: Whether they touch throughout, or not at all.
        twists: [ω; v], or v alone, at the kinks of second bodies relative to first ones.
    """

    exist: Bool[Array, " points"]
    when: Numbers
    touching: Numbers
    middle: Numbers
    always: Bool[Array, " points"]
    never: Bool[Array, " points"]
    twists: Rows

    @classmethod
    def between(
        cls,
        gaps: tuple[Numbers, Numbers],
        normals: tuple[Vectors, Vectors],
        twists: tuple[Rows, Rows],
        h: Scalar,
        known: Bool[Array, " points"],
    ) -> "Kinks":
        """Kinks of a step of length h [s], which is less than zero where time runs backwards, by distances [m], normals
        and twists where it begins and ends, of points that are known."""
        (g0, g1), (r0, r1) = gaps, (h * parting(*each) for each in zip(twists, normals, strict=True))
        begins, ceases = known & (g0 >= 0) & (g1 < 0), known & (g0 < 0) & (g1 >= 0)
        exist = begins | ceases
        # What ceases begins in reverse.
        forwards, back = (jnp.stack(x) for x in ((g0, r0, g1, r1), (g1, -r1, g0, -r0)))
        harmless = jnp.array([1.0, 0, -1, 0], g0.dtype)[:, None]
        apart = _share_apart(*jnp.where(exist, jnp.where(begins, forwards, back), harmless))
        touching = jnp.where(exist, 1 - apart, 0)
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
    """Slopes that give a step the derivatives of forces for as long as points touch, whatever its stages take for
    touching.

    At a share θ of the step, the force that begins or ends is F + (θ − c) G while the point touches, and none else. It
    is taken from the stages that touch, and all stages get a straight line in θ instead with the same impulse ∫ dθ and
    moment ∫ (θ − ½) dθ. All these are zero, and have the derivatives of the force.

    Attributes:
        kinks: Those of the step.
        start, end: When it begins and ends, as solvers count the time [s].
        F: Forces or wrenches on second bodies in the middle c of contact.
        G: How much they grow in a step.
        share: θ.
    """

    kinks: Kinks
    start: Scalar
    end: Scalar
    F: Rows
    G: Rows
    share: Scalar | float = 0.0

    @classmethod
    def of(
        cls, kinks: Kinks, t: tuple[Scalar, Scalar], distances: Numbers, changes: Numbers, stiffness: Rows
    ) -> "KinkSlopes":
        """From distances at the start, their changes in a step at the rates there, and forces for each depth."""
        growth = jnp.where(kinks.exist, -changes, 0)
        depth = jnp.where(kinks.exist, -distances, 0) + kinks.middle * growth
        # At the kink it is zero.
        depth = _zero(depth) + jax.lax.stop_gradient((kinks.middle - kinks.when) * growth)
        return cls(kinks, *t, _zero(depth[:, None] * stiffness), _zero(growth[:, None] * stiffness))

    def at_time(self, t: Any) -> "KinkSlopes":
        """At a time within the step, as solvers count it [s]."""
        return self._replace(share=jax.lax.stop_gradient(t - self.start) / self._length)

    def force(self, touches: Bool[Array, " points"]) -> Rows:
        """In a stage."""
        return self._due(self.share) - jnp.where(touches[:, None], self._met(self.share), 0)

    def impulses(self, h: Scalar) -> tuple[Rows, Rows]:
        """In a substep of length h that begins at the share: what all points get, and what those lose that touch at its
        end."""
        part = h / self._length
        return h * self._due(self.share + part / 2), h * self._met(self.share + part)

    @property
    def _length(self) -> Scalar:
        length = self.end - self.start
        return jnp.where(length == 0, 1, length)

    def _due(self, share: Scalar | float) -> Rows:
        touching, middle = self.kinks.touching[:, None], self.kinks.middle[:, None]
        moment = touching * (middle - 1 / 2) * self.F + touching**3 / 12 * self.G
        return touching * self.F + 12 * (share - 1 / 2) * moment

    def _met(self, share: Scalar | float) -> Rows:
        return self.F + (share - self.kinks.middle[:, None]) * self.G

    def felt(self, distance: Numbers, depth: Numbers) -> Numbers:
        """The depth of a stage with the derivatives of that which the step has."""
        through = jax.lax.stop_gradient(depth) + _zero(-distance)
        return jnp.where(self.kinks.always, through, jnp.where(self.kinks.never, 0, depth))


def _zero(x: Array) -> Array:
    """Nothing, with the derivatives of x."""
    return x - jax.lax.stop_gradient(x)
