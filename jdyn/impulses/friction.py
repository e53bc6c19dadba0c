"""Friction as the gradient of a convex function of the slip."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.array import Structure

PerRow = Float[Array, " rows"]
Vectors = Float[Array, "rows k"]
Sticking = Bool[Array, " rows"]


class Friction(Structure):
    """−bound λ with the share λ = x / max(|x|, slip), of each row of vectors x.

    Iterations know λ beside x, and linearize λ max(|x|, slip) = x in both. So they converge where |x| is many times the
    slip, as Newton's method for x alone does not: there, sliding friction is a constant.

    Attributes:
        bound: Largest impulse [N s or N m s].
        slip: Speed up to which friction holds, in proportion to the speed [m/s or rad/s].
        stopped: Speed that friction can about stop; iterations begin by it, their result does not depend on it.

    Source: Chan, Golub, Mulet, A nonlinear primal-dual method for total variation-based image restoration, SIAM Journal
    on Scientific Computing 20, 1999, whose norms of gradients are the speeds here.
    """

    bound: PerRow
    slip: PerRow
    stopped: PerRow

    def sticks(self, x: Vectors) -> Sticking:
        """Tell where x sticks."""
        return row_dot(x, x) <= self.slip**2

    def may_stick(self, x: Vectors) -> Sticking:
        """Tell where friction may stop x."""
        return row_dot(x, x) <= jnp.maximum(self.slip, self.stopped) ** 2

    def share(self, x: Vectors, sticking: Sticking) -> Vectors:
        """λ; x / slip at any speed where it is taken to stick."""
        return x / self._speed(x, sticking)[:, None]

    def true_share(self, x: Vectors) -> Vectors:
        """λ, where x sticks up to the slip."""
        return self.share(x, self.sticks(x))

    def impulse(self, x: Vectors, sticking: Sticking) -> Vectors:
        """−bound λ."""
        return -self.bound[:, None] * self.share(x, sticking)

    def steepness(self, x: Vectors, sticking: Sticking) -> PerRow:
        """Slope of bound λ by x across its direction."""
        return self.bound / self._speed(x, sticking)

    def reverses(self, x: Vectors, dx: Vectors, sticking: Sticking) -> Sticking:
        """Tell where slip reverses when x changes by dx."""
        return (row_dot(x, x + dx) < 0) & ~sticking & (self.bound > 0)

    def predicted_shares(self, x: Vectors, dx: Vectors, sticking: Sticking, share: Vectors) -> Vectors:
        """Share by the linear law when x changes by dx."""
        turned = jnp.where(sticking, 0, row_dot(self.share(x, sticking), dx))
        return (x + dx - turned[:, None] * clipped(share)) / self._speed(x, sticking)[:, None]

    def share_errors(self, x: Vectors, share: Vectors) -> tuple[PerRow, PerRow]:
        """Error of a share at x, and about the change of the model's velocity that it makes, in the norm of its
        inertia."""
        error = share - self.true_share(x)
        pushes = self.bound > 0
        size = jnp.where(pushes, jnp.sqrt(row_dot(error, error)), 0)
        return size, jnp.sqrt(jnp.where(pushes, self.bound * self.stopped, 0)) * size

    def _speed(self, x: Vectors, sticking: Sticking) -> PerRow:
        square = row_dot(x, x)
        slides = ~sticking & (square > 0)
        return jnp.where(slides, jnp.sqrt(jnp.where(slides, square, 1)), self.slip)


def clipped(share: Vectors) -> Vectors:
    """The nearest share of at most 1."""
    return share / jnp.sqrt(jnp.maximum(row_dot(share, share), 1))[:, None]


def row_dot(x: Vectors, y: Vectors) -> PerRow:
    """Scalar product of each row."""
    return jnp.sum(x * y, axis=1)
