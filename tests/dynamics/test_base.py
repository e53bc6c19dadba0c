"""What a tree stands on, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.dynamics.recursion.floating_base import inverted

LOWER = np.tril_indices(6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse_of_a_positive_definite_matrix(dtype):
    """To within rounding: an inverse by pivots is as good as the condition number, 100 here."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(50, 6, 6)))[0]
    A = (Q * np.geomspace(1, 100, 6)) @ Q.transpose(0, 2, 1)
    found = jax.jit(inverted)(tuple(jnp.asarray(A[:, *LOWER].T, dtype)))
    error = np.stack(found).T - np.linalg.inv(A)[:, *LOWER]
    assert np.max(np.abs(error)) <= 6 * 100 * np.finfo(dtype).eps
