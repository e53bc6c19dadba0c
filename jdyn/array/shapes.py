"""Arguments as arrays of the right shape."""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike


def shaped(name: str, value: ArrayLike, dtype, *shapes: tuple[int, ...], owner: str | None = None) -> Array:
    """`value` as an array of a type, with one of the shapes; `()` is a scalar.

    Args:
        name: What to call the argument in an error.
        value: The argument.
        dtype: Type of the result.
        *shapes: Those that it may have.
        owner: Name of the mechanism whose sizes the shapes are.

    Raises:
        ValueError: naming the argument, the expected shapes and the one given.
    """
    value = jnp.asarray(value, dtype)
    if value.shape not in shapes:
        expected = " or ".join("a scalar" if shape == () else f"shape {shape}" for shape in shapes)
        mechanism = "" if owner is None else f" for {owner!r}"
        raise ValueError(f"{name}: expected {expected}{mechanism}, got {value.shape}")
    return value
