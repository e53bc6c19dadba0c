"""Errors of what is found, and how large rounding may make them."""

import jax.numpy as jnp
import numpy as np

# Of some dozens of operations that err by one rounding each, in any direction.
ROUNDINGS = 20


def relative_error(found, expected):
    """The largest error of an entry, as a share of the largest entry."""
    expected = np.asarray(expected)
    return float(np.max(np.abs(np.asarray(found) - expected)) / np.max(np.abs(expected)))


def tol(dtype, condition=1.0):
    """A bound for relative errors of results in a type, whose problem magnifies errors by a condition number. A test
    that allows more says why."""
    return ROUNDINGS * float(jnp.finfo(dtype).eps) * condition
