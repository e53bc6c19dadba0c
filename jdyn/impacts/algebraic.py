"""Laws of impact in one formula, by velocities before and after it alone."""

import jax.numpy as jnp

from jdyn.array import cholesky, cholesky_solution
from jdyn.geometry.directions import length_and_unit
from jdyn.impacts.impact import ImpactLaw, ImpactMode


class Frictionless(ImpactLaw):
    """v_n⁺ = −e v_n⁻, with an impulse along the normal alone. All laws agree on it where there is no friction.

    >>> hit = jdyn.impacts.Frictionless()(jnp.eye(3), jnp.array([1.0, 0.0, -2.0]), 0.5)
    >>> print(hit.velocity)
    [1. 0. 1.]
    """

    def impulse(self, W, v, restitution, friction, static):
        p_n = -(1 + restitution) * v[2] / W[2, 2]
        return p_n * jnp.array([0.0, 0.0, 1.0], W.dtype), ImpactMode.SLIDES, jnp.inf


class StickOrSlide(ImpactLaw):
    """v_n⁺ = −e v_n⁻ with an impulse that stops sliding, if the cone of friction has it, or else one on the edge of the
    cone, against the first direction of sliding.

    It knows no sliding that reverses, and may make energy. Where sliding jams, such as of the tip of a rod that leans
    into its motion, there is no impulse, and the mode is `ImpactMode.IMPOSSIBLE`.

    >>> hit = jdyn.impacts.StickOrSlide()(jnp.eye(3), jnp.array([1.0, 0.0, -2.0]), 0.5, friction=1.0)
    >>> print(hit.velocity)
    [0. 0. 1.]

    Source: Hahn, Realistic animation of rigid bodies, SIGGRAPH 1988; Moore, Wilhelms, Collision detection and response
    for computer animation, SIGGRAPH 1988; thesis 6.4.2.
    """

    def impulse(self, W, v, restitution, friction, static):
        L = cholesky(W)
        stopping = -cholesky_solution(L, v * jnp.array([1, 1, 1 + restitution], W.dtype))
        _, u = length_and_unit(v[:2])
        p_t, _ = length_and_unit(stopping[:2])
        sticks = (stopping[2] > 0) & (p_t <= jnp.maximum(static, friction) * stopping[2])
        edge = jnp.append(-friction * u, 1.0)
        moved = W[2] @ edge
        jams = ~sticks & (moved <= 0)
        p_n = -(1 + restitution) * v[2] / jnp.where(moved > 0, moved, 1)
        p = jnp.where(sticks, stopping, jnp.where(jams, jnp.nan, p_n * edge))
        mode = jnp.where(sticks, ImpactMode.STICKS_IN_COMPRESSION, ImpactMode.SLIDES)
        needed = p_t / jnp.where(stopping[2] > 0, stopping[2], 1)
        margin = jnp.where(
            stopping[2] > 0, jnp.abs(needed - static) / jnp.maximum(jnp.maximum(needed, static), 1e-30), 1
        )
        return p, jnp.where(jams, ImpactMode.IMPOSSIBLE, mode), margin


class Brach(ImpactLaw):
    """v_n⁺ = −e v_n⁻ with an impulse against the first direction of sliding, that is a share of the normal impulse.

    `friction` is that share, a number of the whole impact, not of an instant. It counts up to the share that stops the
    sliding, or that would make energy where sliding reverses by itself, so that no energy is made.

    >>> hit = jdyn.impacts.Brach()(jnp.eye(3), jnp.array([1.0, 0.0, -2.0]), 0.5, friction=0.1)
    >>> print(hit.impulse.round(3) + 0.0)
    [-0.3  0.   3. ]

    Source: Brach, Rigid body collisions, Journal of Applied Mechanics 56, 1989; thesis 6.4.2.
    """

    def impulse(self, W, v, restitution, friction, static):
        speed, u = length_and_unit(v[:2])
        W_tt, W_tn, W_nn = u @ W[:2, :2] @ u, u @ W[:2, 2], W[2, 2]
        approach, lost = -(1 + restitution) * v[2], -(1 - restitution) * v[2]
        # With the ratio r, p_n = approach / (W_nn − r W_tn), and the speed along u becomes p_n/approach · (kept − r
        # taken).
        kept, taken = speed * W_nn + approach * W_tn, speed * W_tn + approach * W_tt
        stopping = _where_positive(kept, taken)
        # Energy is lost where a r² + b r + c is not negative.
        a, b, c = -(2 * speed * W_tn + approach * W_tt), 2 * speed * W_nn + approach * W_tn - lost * W_tn, lost * W_nn
        root = jnp.sqrt(jnp.maximum(b**2 - 4 * a * c, jnp.finfo(W.dtype).tiny))
        limit = jnp.where(kept >= 0, stopping, _where_positive(2 * c, root - b))
        ratio = jnp.where(speed > 0, jnp.minimum(friction, limit), 0)
        p_n = approach / (W_nn - ratio * W_tn)
        sticks = (kept >= 0) & (stopping <= friction)
        mode = jnp.where(sticks, ImpactMode.STICKS_IN_COMPRESSION, ImpactMode.SLIDES)
        margin = jnp.where(jnp.isfinite(limit), jnp.abs(limit - friction) / jnp.maximum(limit, friction), jnp.inf)
        return p_n * jnp.append(-ratio * u, 1.0), mode, margin


def _where_positive(x, y):
    """x / y where y is positive, else infinity."""
    return jnp.where(y > 0, x / jnp.where(y > 0, y, 1), jnp.inf)
