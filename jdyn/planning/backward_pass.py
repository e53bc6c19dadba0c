"""Feedback that is optimal for a linear motion with quadratic costs and limited inputs."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.planning.box_qp import box_qp, free_inverse


class Stage(NamedTuple):
    """A step of the linear motion x₁ = A x + B u with its cost, gᵀ z + ½ zᵀ H z of z = [x; u], u in a box.

    Attributes:
        A, B: The motion.
        g, H: The cost.
        lower, upper: The box, which contains zero.
    """

    A: Float[Array, "*nodes nx nx"]
    B: Float[Array, "*nodes nx nu"]
    g: Float[Array, "*nodes nx+nu"]
    H: Float[Array, "*nodes nx+nu nx+nu"]
    lower: Float[Array, "*nodes nu"]
    upper: Float[Array, "*nodes nu"]


class Policy(NamedTuple):
    """u = k + K x at each step; rows of K are zero where k rests on the box.

    Attributes:
        k: Shape (nodes, nu).
        K: Shape (nodes, nu, nx).
        slope, curvature: Moving by a share s of k changes the cost by s slope + s² curvature. NaN if some step has no
            minimum.
    """

    k: Float[Array, "nodes nu"]
    K: Float[Array, "nodes nu nx"]
    slope: Scalar
    curvature: Scalar


def backward_pass(stages: Stage, g: Float[Array, " nx"], H: Float[Array, "nx nx"], mu: Scalar) -> Policy:
    """The policy of least cost, whose end costs gᵀ x + ½ xᵀ H x.

    Args:
        stages: Steps, a row each.
        g, H: Cost of the end.
        mu: Added to the diagonal of each step's curvature by u, relative to its largest entry.

    Source: Tassa, Mansard, Todorov, Control-limited differential dynamic programming, ICRA 2014, section III.
    """
    nx = len(g)

    def step(after, stage: Stage):
        g, H, start = after
        motion = jnp.concatenate([stage.A, stage.B], axis=1)
        Q_z, Q_zz = stage.g + motion.T @ g, stage.H + motion.T @ H @ motion
        Q_x, Q_u, Q_xx, Q_ux, Q_uu = Q_z[:nx], Q_z[nx:], Q_zz[:nx, :nx], Q_zz[nx:, :nx], Q_zz[nx:, nx:]
        regular = Q_uu + mu * jnp.max(jnp.abs(jnp.diagonal(Q_uu))) * jnp.eye(len(Q_u), dtype=Q_u.dtype)
        # The step after it had a similar minimum.
        k, free = box_qp(regular, Q_u, stage.lower, stage.upper, start)
        K = -free_inverse(regular, free) @ Q_ux
        g = Q_x + K.T @ (Q_uu @ k + Q_u) + Q_ux.T @ k
        H = Q_xx + K.T @ Q_uu @ K + K.T @ Q_ux + Q_ux.T @ K
        return (g, (H + H.T) / 2, k), (k, K, k @ Q_u, 0.5 * k @ Q_uu @ k)

    start = jnp.zeros(stages.B.shape[-1], g.dtype)
    _, (k, K, slope, curvature) = jax.lax.scan(step, (g, H, start), stages, reverse=True)
    return Policy(k, K, jnp.sum(slope), jnp.sum(curvature))
