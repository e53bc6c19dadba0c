"""Full floating-point precision in matrix products."""

import functools
from collections.abc import Callable

import jax


def full_precision(function: Callable) -> Callable:
    """Trace `function` with matrix products in full precision.

    Accelerators otherwise multiply float32 matrices with ten-bit mantissas (TF32) or less, which costs forward
    dynamics four digits.
    """

    @functools.wraps(function)
    def traced(*args, **kwargs):
        with jax.default_matmul_precision("highest"):
            return function(*args, **kwargs)

    return traced
