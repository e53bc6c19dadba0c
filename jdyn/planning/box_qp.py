"""Quadratic programs in a box."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jdyn.array import swept_inverse

# Shares of a Newton step that are tried at once; the best one is taken.
SHARES = 2.0 ** -np.arange(8)
# A handful is usual: each finds coordinates that rest on the box, or the minimum of the others.
MOST_STEPS = 30


class Minimum(NamedTuple):
    """Result of `box_qp`.

    Attributes:
        x: The minimum; NaN if the matrix is not positive definite on the coordinates that are free.
        free: Which coordinates do not rest on the box.
    """

    x: Float[Array, " n"]
    free: Bool[Array, " n"]


class _Search(NamedTuple):
    """A search under way.

    Attributes:
        x: The lowest point so far.
        free: Which coordinates the gradient there does not press against the box.
        steps: So far.
        running: Whether to go on.
    """

    x: Array
    free: Array
    steps: Array
    running: Array


def box_qp(
    H: Float[Array, "n n"],
    g: Float[Array, " n"],
    lower: Float[Array, " n"],
    upper: Float[Array, " n"],
    start: Float[Array, " n"],
    most_steps: int = MOST_STEPS,
) -> Minimum:
    """The minimum of gᵀ x + ½ xᵀ H x with lower ≤ x ≤ upper, by projected Newton steps.

    Args:
        H: Symmetric; positive definite on the coordinates that are free on the way.
        g: Linear term.
        lower, upper: The box, whose sides may be infinite.
        start: Where to start; the nearest point of the box is taken.
        most_steps: After so many it ends, at a point that is lower than the first.

    Source: Tassa, Mansard, Todorov, Control-limited differential dynamic programming, ICRA 2014, section III-B;
    Bertsekas, Projected Newton methods for optimization problems with simple constraints, SIAM Journal on Control and
    Optimization 1982.
    """
    shares = jnp.asarray(SHARES, H.dtype)

    def step(now: _Search) -> _Search:
        slope, free = _faced(H, g, lower, upper, now.x)
        move = -free_inverse(H, free) @ slope
        sure = _descent(H, slope, lower, upper, now.x, move)
        tried = jax.vmap(lambda share: jnp.clip(now.x + share * move, lower, upper))(shares)
        tried = jnp.concatenate([tried, sure[None]])
        gone = tried - now.x[None]
        change = gone @ slope + 0.5 * jnp.sum(gone * (gone @ H), axis=1)
        # Within the box the whole step leads to the minimum of the face.
        whole = jnp.all((now.x + move >= lower) & (now.x + move <= upper))
        best = jnp.where(whole, 0, jnp.argmin(change))
        # Without a fall only rounding is left. NaN goes on to the result.
        falls = ~(change[best] >= 0)
        x = jnp.where(falls, tried[best], now.x)
        _, after = _faced(H, g, lower, upper, x)
        found = whole & jnp.all(free == after)
        return _Search(x, after, now.steps + 1, falls & ~found & (now.steps + 1 < most_steps))

    x = jnp.clip(start, lower, upper)
    first = _Search(x, jnp.ones(len(g), bool), jnp.zeros((), jnp.int32), jnp.ones((), bool))
    end = jax.lax.while_loop(lambda now: now.running, step, first)
    return Minimum(end.x, end.free)


def _faced(H, g, lower, upper, x):
    """The gradient, and which coordinates it does not press against the box."""
    slope = g + H @ x
    return slope, ~(((x <= lower) & (slope > 0)) | ((x >= upper) & (slope < 0)))


def _descent(H, slope, lower, upper, x, move):
    """A point that is lower for sure: the lowest on the way of `move`, before another coordinate meets the box."""
    outwards = ((x <= lower) & (move < 0)) | ((x >= upper) & (move > 0))
    move = jnp.where(outwards, 0, move)
    still = move == 0
    room = jnp.where(move > 0, upper - x, lower - x) / jnp.where(still, 1, move)
    curvature = move @ H @ move
    lowest = -(move @ slope) / jnp.where(curvature > 0, curvature, 1)
    return jnp.clip(x + jnp.minimum(lowest, jnp.min(jnp.where(still, jnp.inf, room))) * move, lower, upper)


def free_inverse(H: Float[Array, "n n"], free: Bool[Array, " n"]) -> Float[Array, "n n"]:
    """The inverse of H on the coordinates that are free, zero elsewhere; NaN if that part is not positive definite."""
    both = free[:, None] & free[None]
    inverse = swept_inverse(jnp.where(both, H, jnp.eye(len(H), dtype=H.dtype)))
    return jnp.where(both, inverse, 0)
