"""Arguments of controllers, as arrays of the right shape."""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jdyn.model import Model


def configuration(model: Model, name: str, value: ArrayLike) -> Float[Array, " nq"]:
    """A configuration in the model's type.

    Raises:
        ValueError: naming the argument, the expected shape and the one given.
    """
    value = jnp.asarray(value, model.dtype)
    if value.shape != (model.nq,):
        raise ValueError(f"{name}: expected shape {(model.nq,)} for {model.name!r}, got {value.shape}")
    return value


def scalar_or(model: Model, size: int, name: str, value: ArrayLike) -> Float[Array, "*size"]:
    """A number, or one a coordinate, in the model's type.

    Raises:
        ValueError: naming the argument, the expected shape and the one given.
    """
    value = jnp.asarray(value, model.dtype)
    if value.shape not in ((), (size,)):
        raise ValueError(f"{name}: expected a scalar or shape {(size,)} for {model.name!r}, got {value.shape}")
    return value
