"""Turns within a step, of which rotation vectors tell those up to half a revolution.

Beyond, a shorter vector the other way round is the same rotation, and after a whole revolution the rate of the vector
is infinite: a step may come out behind that pole with an error that looks small.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.model import Ball, Free, Model

# The longest rotation vector in a step [rad], and how far one may turn that is planned: spins may become faster.
LONGEST, PLANNED = math.pi, 0.8 * math.pi


def angular_speed(model: Model, v: Float[Array, " nv"]) -> Scalar:
    """Angular speed of the fastest ball or free joint [rad/s], 0 without one; it has no derivative."""
    v = model.expand_velocity(jax.lax.stop_gradient(v))
    groups = zip(model.joints, model.by_group("v", v), strict=True)
    speeds = [jnp.linalg.norm(x[:, :3], axis=1) for joints, x in groups if isinstance(joints, Ball | Free)]
    return jnp.max(jnp.concatenate([*speeds, jnp.zeros(1, v.dtype)]))
