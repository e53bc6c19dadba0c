"""Arguments as arrays of the right shape."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype
from jaxtyping import Array, ArrayLike, PyTree


def floating(dtype) -> np.dtype:
    """The floating type of this name; JAX's default for None.

    Raises:
        ValueError: if it is none, or JAX is not set to have it.
    """
    asked = np.dtype(jnp.result_type(float) if dtype is None else dtype)
    if not jnp.issubdtype(asked, jnp.floating):
        raise ValueError(f"dtype: expected a floating type such as jnp.float32, got {asked}")
    if canonicalize_dtype(asked) != asked:
        raise ValueError(
            f"dtype: JAX has no {asked} here and would give {canonicalize_dtype(asked)}; switch it on by "
            "jax.config.update('jax_enable_x64', True) before it computes anything"
        )
    return asked


def as_numbers(x: Any) -> Any:
    """Numbers of a field as floating-point ones; arrays of these keep their type."""
    return jnp.asarray(x) if eqx.is_inexact_array(x) else jnp.asarray(x, float)


def in_type(tree: PyTree, dtype) -> PyTree:
    """A PyTree whose floating arrays have a type; all else is as it is."""
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree)


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
