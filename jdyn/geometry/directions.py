"""Unit vectors without NaN, also in derivatives."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array.dot import dot


def length_and_unit(vector: Float[Array, " n"]) -> tuple[Float[Array, ""], Float[Array, " n"]]:
    """Length of a vector, and the vector over it; zero, with zero derivatives, for the vector zero."""
    # A square may underflow where the vector does not. The scale drops out, and derivatives of `jnp.max` are not safe:
    # they look for numbers that equal it, which XLA may compute twice, and round differently.
    size = jax.lax.stop_gradient(jnp.max(jnp.abs(vector)))
    scale = jnp.where(size > 0, size, 1)
    scaled = vector / scale
    square = jnp.sum(scaled**2)
    root = jnp.sqrt(jnp.where(size > 0, square, 1))
    return jnp.where(size > 0, scale * root, 0), jnp.where(size > 0, scaled / root, 0)


def unit(vector: Float[Array, " n"]) -> Float[Array, " n"]:
    """A vector over its length, or zero."""
    return length_and_unit(vector)[1]


def perpendicular(direction: Float[Array, "3"]) -> Float[Array, "3"]:
    """A unit vector at right angles to a unit vector: away from the axis that is nearest to it."""
    axis = (jnp.arange(3) == jnp.argmin(jnp.abs(direction))).astype(direction.dtype)
    return unit(axis - direction * dot(direction, axis))
