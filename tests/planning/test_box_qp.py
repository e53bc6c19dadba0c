"""Quadratic programs in a box, against SciPy's bounded least squares."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from jdyn.planning.box_qp import box_qp, free_inverse

pytestmark = pytest.mark.fast_compile

N, LANES = 5, 40


def _programs(dtype=np.float64):
    """Half of the sides are far away or at infinity."""
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(LANES, N + 2, N)), 2 * rng.normal(size=(LANES, N + 2))
    H, g = np.einsum("lki,lkj->lij", A, A), -np.einsum("lki,lk->li", A, b)
    far = rng.choice([1.0, 1.0, 30.0, np.inf], size=(2, LANES, N))
    lower, upper = -rng.uniform(0, 0.5, (LANES, N)) * far[0], rng.uniform(0, 0.5, (LANES, N)) * far[1]
    return (A, b), [x.astype(dtype) for x in (H, g, lower, upper, rng.normal(size=(LANES, N)))]


_solve = jax.jit(jax.vmap(box_qp))


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-11), (np.float32, 2e-3)])
def test_minima_are_those_of_scipy(dtype, tolerance):
    """Errors grow with the condition number, at most 2e3 here."""
    (A, b), program = _programs(dtype)
    assert np.max(np.linalg.cond(program[0])) < 5e3
    found = _solve(*program)
    _, _, lower, upper, _ = program
    for i in range(LANES):
        expected = lsq_linear(A[i], b[i], (lower[i], upper[i]), method="bvls", tol=1e-14)
        np.testing.assert_allclose(found.x[i], expected.x, atol=tolerance)
        np.testing.assert_array_equal(found.free[i], expected.active_mask == 0)
    assert found.x.dtype == dtype
    assert np.all((found.x >= lower) & (found.x <= upper))
    assert 0.2 < np.mean(found.free) < 0.8


def test_what_is_not_definite_on_free_coordinates_is_nan_there():
    H, g, side = jnp.diag(jnp.array([1.0, -1.0, 2.0])), jnp.array([1.0, -2.0, -1.0]), jnp.full(3, 10.0)
    assert np.all(np.isnan(free_inverse(H, jnp.array([True, True, False]))[:2, :2]))
    np.testing.assert_array_equal(free_inverse(H, jnp.array([True, False, True])), np.diag([1, 0, 0.5]))
    # From zero it stands on a ridge; from its side the second coordinate rests there.
    starts = jnp.stack([jnp.zeros(3), jnp.array([0.0, 10.0, 0.0])])
    found = jax.jit(jax.vmap(box_qp, (None, None, None, None, 0)))(H, g, -side, side, starts).x
    assert np.any(np.isnan(found[0]))
    np.testing.assert_allclose(found[1], [-1, 10, 0.5], rtol=1e-14)
