"""Dry friction in joints, smoothed: its law and slopes."""

import jax.numpy as jnp
from jaxtyping import Array, Float

Coordinates = Float[Array, " nv_full"]


def friction_share(v: Coordinates, speed: Coordinates) -> Coordinates:
    """Share of the largest friction that resists the velocity `v`, tanh(v / speed)."""
    return jnp.tanh(v / speed)


def friction_slopes(friction: Coordinates, v: Coordinates, speed: Coordinates) -> Coordinates:
    """Derivatives of `friction * friction_share(v, speed)` by the velocity [N m s/rad or N s/m]."""
    return friction / speed * (1 - friction_share(v, speed) ** 2)
