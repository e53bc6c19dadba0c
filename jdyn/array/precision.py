"""Precision of floating types."""

from typing import Any

import jax.numpy as jnp


def is_single(dtype: Any) -> bool:
    """Tell whether a type rounds by more than double precision does."""
    return jnp.finfo(dtype).bits < 64
