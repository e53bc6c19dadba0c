"""Friction that becomes stiff within a step.

Methods that are implicit in the slopes of contact forces take those where a step begins. Where friction begins to hold,
it is far stiffer at the end. Error estimates see to it that a motion stands that, but not its derivatives: those of a
stage go with the slope there, and grow from stage to stage as in an explicit method. Those of a leg's landing at a
tolerance of 1e-2 were wrong by 5e13.

So derivatives feel as much of what the slope has gained since the start as a step stands, and else the slope there.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Scalar

from jdyn.array.dot import dot

# [ω; v], or v alone.
Twist = Float[Array, " k"]
Vector = Float[Array, "3"]

# What friction may gain within a step of length h, in units of what it has at the start and of m / h. Derivatives of
# landings at a tolerance of 1e-2 are wrong by 0.6 at most for a quadruped and by 1 for nine of ten legs; with 2, by 400
# and 3. With 0.5, those of the quadruped lose digits at 1e-4.
GAINED = 1.0


class Stiffening(NamedTuple):
    """A point where a step begins.

    Attributes:
        slopes: Of the wrench on the second body by its twist relative to the first one.
        inertia: m / h: the lighter mass of the pair over the length of the step [kg/s].
        pair: Number of the pair.
    """

    slopes: Float[Array, "k k"]
    inertia: Scalar
    pair: Int[Array, ""]

    def of(self, pair: Int[Array, ""]) -> "Stiffening":
        """For a point of a stage. One of another pair has its own slopes: with `nearest`, pairs change."""
        return self._replace(inertia=jnp.where(pair == self.pair, self.inertia, jnp.inf))

    def felt(self, twist: Twist, normal: Vector, b: Vector, across: Scalar) -> tuple[Twist, Twist]:
        """The twist of a stage, with the share of the derivatives of its slip that goes with the slopes there, and a
        wrench that is zero, with the derivatives that go with those at the start.

        Args:
            twist: Of the second body relative to the first one.
            normal: Of their surfaces.
            b: How friction points, with the length that it has as a share of its largest one.
            across: How friction falls with slip across b [N s/m]. Along b it falls by 1 − b² of that.
        """
        size = jnp.sqrt(dot(b, b))
        u = b / jnp.where(size > 0, size, 1)
        D = -self.slopes[-3:, -3:]
        along_at_start = u @ D @ u
        across_at_start = jnp.trace(D) - normal @ D @ normal - along_at_start
        change = twist[-3:] - jax.lax.stop_gradient(twist[-3:])
        along, slip = dot(change, u) * u, change - dot(change, normal) * normal
        too_stiff = self._too_stiff(along_at_start, across * (1 - size**2)) * along
        too_stiff = too_stiff + self._too_stiff(across_at_start, across) * (slip - along)
        return twist.at[-3:].add(-too_stiff), self.slopes[:, -3:] @ too_stiff

    def _too_stiff(self, start: Scalar, there: Scalar) -> Scalar:
        """Which share of what friction has gained is more than a step stands."""
        gained = (there - start) / (self.inertia + start)
        return jax.lax.stop_gradient(1 - GAINED / jnp.maximum(gained, GAINED))
