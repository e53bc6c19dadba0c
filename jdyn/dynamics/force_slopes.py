"""Slopes and Jacobians of generalized forces that are functions of the state."""

import functools
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.model import Model


def summed(jacobians: Iterable[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    """Jacobians of a sum of forces."""
    return functools.reduce(lambda x, y: jax.tree.map(jnp.add, x, y), jacobians)


def differentiated_slopes(
    force: Callable, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
    """Slopes of `force(q, v)`: what it loses where all coordinates or all velocities grow alike, which is the diagonal
    if there is nothing else."""
    still, alike = jnp.zeros_like(v), jnp.ones_like(v)
    _, change = jax.linearize(lambda e, v: force(model.integrate(q, e), v), still, v)
    return -change(alike, still), -change(still, alike)


def differentiated_jacobians(
    force: Callable, model: Model, t: Scalar, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, " nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """∂τ/∂t, ∂τ/∂q along the tangent space, and ∂τ/∂v of `force(t, q, v)`, from one linearization."""
    now, still, unit = jnp.zeros_like(t), jnp.zeros_like(v), jnp.eye(len(v), dtype=v.dtype)

    def near(t, e, v):
        return force(t, model.integrate(q, e), v).astype(v.dtype)

    _, change = jax.linearize(near, t, still, v)
    by_q = jax.vmap(lambda e: change(now, e, still), out_axes=1)(unit)
    by_v = jax.vmap(lambda w: change(now, still, w), out_axes=1)(unit)
    return change(jnp.ones_like(t), still, still), by_q, by_v
