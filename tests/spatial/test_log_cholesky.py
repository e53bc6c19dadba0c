"""Log-Cholesky parameters: against Pinocchio, and the definition of the pseudo-inertia."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from jdyn import spatial
from jdyn.model.inertial import pseudo_inertia as host_pseudo_inertia

pytestmark = pytest.mark.fast_compile

THETAS = np.random.default_rng(0).normal(size=(5, 10))


all_inertias = jax.jit(jax.vmap(spatial.from_log_cholesky))
all_thetas = jax.jit(jax.vmap(spatial.log_cholesky))


def ten(inertia):
    return np.concatenate([np.asarray(inertia.mass)[None], inertia.first_moment, inertia.rotational])


def ten_of(mass, com, moments):
    I = np.diag(moments) + mass * (np.dot(com, com) * np.eye(3) - np.outer(com, com))
    return spatial.SpatialInertia(mass, mass * np.array(com), I[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]])


def test_inertias_are_those_of_pinocchio():
    inertias = all_inertias(jnp.asarray(THETAS))
    for i, theta in enumerate(THETAS):
        expected = pin.LogCholeskyParameters(theta).toDynamicParameters()
        found = ten(jax.tree.map(lambda x, i=i: x[i], inertias))
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max())


def test_derivatives_are_those_of_pinocchio():
    jacobians = jax.jit(jax.vmap(jax.jacfwd(spatial.from_log_cholesky)))(jnp.asarray(THETAS))
    for i, theta in enumerate(THETAS):
        expected = pin.LogCholeskyParameters(theta).calculateJacobian()
        found = np.vstack([jacobians.mass[i][None], jacobians.first_moment[i], jacobians.rotational[i]])
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_way_there_and_back(dtype):
    thetas = jnp.asarray(THETAS, dtype)
    back = all_thetas(all_inertias(thetas))
    # The factor loses as many digits as the condition of the pseudo-inertia of these has, four.
    np.testing.assert_allclose(back, thetas, atol=1e4 * jnp.finfo(dtype).eps)


def test_the_pseudo_inertia_is_that_of_the_builder_and_of_pinocchio():
    inertias = all_inertias(jnp.asarray(THETAS))
    found = jax.jit(jax.vmap(spatial.pseudo_inertia))(inertias)
    assert np.all(np.linalg.eigvalsh(found) > 0)
    for i, theta in enumerate(THETAS):
        body = pin.LogCholeskyParameters(theta).toInertia()
        scale = np.abs(found[i]).max()
        np.testing.assert_allclose(found[i], body.toPseudoInertia().toMatrix(), atol=1e-13 * scale)
        np.testing.assert_allclose(
            found[i], host_pseudo_inertia(body.mass, body.lever, body.inertia), atol=1e-13 * scale
        )


def test_float32_keeps_the_triangle_inequality():
    """Of a needle, a thousand times as long as thick, where rounding of differences would break it."""
    theta = np.array([[0.3, 0.0, -6.9, -6.9, 1e-3, 0, 0, 0, 0, 0]])
    (rotational,) = np.asarray(all_inertias(jnp.asarray(theta, "float32")).rotational, float)
    moments = np.linalg.eigvalsh(rotational[[[0, 1, 3], [1, 2, 4], [3, 4, 5]]])
    assert moments[0] > 0 and moments[2] <= moments[0] + moments[1]


def test_bodies_without_volume_have_no_finite_parameters():
    point = ten_of(mass=1.0, com=(0.1, 0.2, 0.3), moments=(0.0, 0.0, 0.0))
    impossible = ten_of(mass=1.0, com=(0.0, 0.0, 0.0), moments=(1.0, 1.0, 3.0))
    both = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), point, impossible)
    assert not np.any(np.all(np.isfinite(all_thetas(both)), axis=1))
