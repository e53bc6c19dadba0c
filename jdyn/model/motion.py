"""Velocities of configurations that move."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.model.model import Model


def motion_along(model: Model, place: Callable, x, dx, ddx) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """Velocity and acceleration of the configuration `place(x)`; dx and ddx are the rates of x and of dx."""

    return jax.jvp(lambda x, dx: velocity_along(model, place, x, dx), (x, dx), (dx, ddx))


def velocity_along(model: Model, place: Callable, x, dx) -> Float[Array, " nv"]:
    """Velocity of the configuration `place(x)`; dx is the rate of x."""
    return _velocity(model, *jax.jvp(place, (x,), (dx,)))


def _velocity(model, q, dq):
    """The velocity with model.rate(q, v) = dq: its columns are orthogonal, and of the same lengths for all q."""
    ones = jnp.ones(model.nv, q.dtype)
    anywhere = model.neutral().astype(q.dtype)

    def transposed(q, dq):
        return jax.linear_transpose(lambda v: model.rate(q, v), ones)(dq)[0]

    return transposed(q, dq) / transposed(anywhere, model.rate(anywhere, ones))
