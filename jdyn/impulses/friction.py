"""Friction as the gradient of a convex function of the slip."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.array import Structure

Rows = Float[Array, " rows"]
Vectors = Float[Array, "rows k"]
Held = Bool[Array, " rows"]


class Friction(Structure):
    """−bound λ with the share λ = x / max(|x|, slip), of each row of vectors x.

    Iterations know λ beside x, and make λ max(|x|, slip) = x linear in both. So they do not lose their way where |x| is
    many times the slip, as Newton's method for x alone does, to which friction that slides is a constant.

    Attributes:
        bound: Largest impulse [N s or N m s].
        slip: Speed up to which friction holds, in proportion to the speed [m/s or rad/s].
        stopped: Speed that friction can about take away; where iterations begin depends on it, not where they end.

    Source: Chan, Golub, Mulet, A nonlinear primal-dual method for total variation-based image restoration, SIAM Journal
    on Scientific Computing 20, 1999, whose norms of gradients are the speeds here.
    """

    bound: Rows
    slip: Rows
    stopped: Rows

    def holds(self, x: Vectors) -> Held:
        """Tell where it sticks."""
        return row_dot(x, x) <= self.slip**2

    def may_hold(self, x: Vectors) -> Held:
        """Tell where it may stop what slides now."""
        return row_dot(x, x) <= jnp.maximum(self.slip, self.stopped) ** 2

    def share(self, x: Vectors, held: Held) -> Vectors:
        """λ; where it is taken to stick, x / slip at any speed."""
        return x / self._speed(x, held)[:, None]

    def true_share(self, x: Vectors) -> Vectors:
        """λ where it sticks up to the slip."""
        return self.share(x, self.holds(x))

    def impulse(self, x: Vectors, held: Held) -> Vectors:
        """−bound λ."""
        return -self.bound[:, None] * self.share(x, held)

    def steepness(self, x: Vectors, held: Held) -> Rows:
        """Slope of bound λ by x across its direction."""
        return self.bound / self._speed(x, held)

    def turns(self, x: Vectors, dx: Vectors, held: Held) -> Held:
        """Tell where slip turns back when x changes."""
        return (row_dot(x, x + dx) < 0) & ~held & (self.bound > 0)

    def tends(self, x: Vectors, dx: Vectors, held: Held, share: Vectors) -> Vectors:
        """Share that the linear law gives when x changes."""
        turned = jnp.where(held, 0, row_dot(self.share(x, held), dx))
        return (x + dx - turned[:, None] * within(share)) / self._speed(x, held)[:, None]

    def missed(self, x: Vectors, share: Vectors) -> tuple[Rows, Rows]:
        """Distance of a share from that at x, and about the change of the model's velocity which that would make, in
        the norm of its inertia."""
        left = share - self.true_share(x)
        pushes = self.bound > 0
        missed = jnp.where(pushes, jnp.sqrt(row_dot(left, left)), 0)
        return missed, jnp.sqrt(jnp.where(pushes, self.bound * self.stopped, 0)) * missed

    def _speed(self, x: Vectors, held: Held) -> Rows:
        square = row_dot(x, x)
        slides = ~held & (square > 0)
        return jnp.where(slides, jnp.sqrt(jnp.where(slides, square, 1)), self.slip)


def within(share: Vectors) -> Vectors:
    """The nearest share that friction can give."""
    return share / jnp.sqrt(jnp.maximum(row_dot(share, share), 1))[:, None]


def row_dot(x: Vectors, y: Vectors) -> Rows:
    """Scalar product of each row."""
    return jnp.sum(x * y, axis=1)
