"""Friction as the gradient of a convex function of the slip."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.array import Structure

Rows = Float[Array, " rows"]
Vectors = Float[Array, "rows k"]
Held = Bool[Array, " rows"]


class Friction(Structure):
    """−bound x / max(|x|, slip), of each row of vectors x.

    Attributes:
        bound: Largest impulse [N s or N m s].
        slip: Speed up to which friction holds, in proportion to the speed [m/s or rad/s].
        stopped: Speed that friction can about take away; where iterations begin depends on it, not where they end.
    """

    bound: Rows
    slip: Rows
    stopped: Rows

    def holds(self, x: Vectors) -> Held:
        """Where it sticks."""
        return dot(x, x) <= self.slip**2

    def may_hold(self, x: Vectors) -> Held:
        """Where it may stop what slides now."""
        return dot(x, x) <= jnp.maximum(self.slip, self.stopped) ** 2

    def still_holds(self, x: Vectors, before: Vectors, held: Held) -> Held:
        """Where it sticks, and where slip has turned back since `before`: it does not slide the other way until what
        holds it has given in."""
        return self.holds(x) | ((dot(x, before) < 0) & ~held)

    def rubbed(self, x: Vectors, held: Held) -> tuple[Vectors, Rows]:
        """Against what it acts, as a share of its bound, and how it rises across that."""
        square = dot(x, x)
        slides = ~held & (square > 0)
        speed = jnp.where(slides, jnp.sqrt(jnp.where(slides, square, 1)), self.slip)
        return x / speed[:, None], self.bound / speed


def dot(x: Vectors, y: Vectors) -> Rows:
    """Of each row."""
    return jnp.sum(x * y, axis=1)
