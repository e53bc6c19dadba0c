"""Functions of the rows of a motion."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def in_rows(function: Callable, *rows: Any) -> Any:
    """`function` of arrays with one row for each step, padded to a power of two rows.

    Motions have any number of steps, and JAX compiles a function for each number. With padding, it compiles only for
    powers of two.
    """
    count = len(jax.tree.leaves(rows)[0])
    fill = (1 << max(count - 1, 0).bit_length()) - count

    def filled(x):
        return jnp.pad(jnp.asarray(x), [(0, fill)] + [(0, 0)] * (np.ndim(x) - 1), mode="edge")

    return jax.tree.map(lambda y: np.asarray(y)[:count], function(*jax.tree.map(filled, rows)))
