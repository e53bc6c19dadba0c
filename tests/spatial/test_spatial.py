"""Spatial algebra: against matrix exponentials, duality, and its own definitions."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.linalg import expm, logm

from jdyn import spatial
from jdyn.spatial.quaternions import stumpff

ANGLES = [0.0, 1e-12, 1e-6, 1e-3, 0.3, 0.499, 0.501, 1.0, 3.0, np.pi - 1e-9]
AXIS = np.array([2.0, -1.0, 2.0]) / 3


@pytest.mark.parametrize("angle", ANGLES)
def test_exponential_maps(angle):
    phi = jnp.asarray(angle * AXIS)
    R = expm(np.asarray(spatial.skew(phi)))
    np.testing.assert_allclose(spatial.quaternion_to_matrix(spatial.quaternion_exp(phi)), R, atol=1e-15)
    np.testing.assert_allclose(spatial.rotation_about(jnp.asarray(AXIS), jnp.asarray(angle)), R, atol=1e-15)
    np.testing.assert_allclose(spatial.quaternion_log(spatial.quaternion_exp(phi)), phi, rtol=1e-14, atol=1e-18)


def test_stumpffs_functions_and_their_derivatives():
    """Against fifty digits, on both sides of where series end, and up to several turns."""
    squares = np.array([0, 1e-30, 1e-8, 0.3, 3.9999, 4, 4.0001, 9, 39.4, 400])
    tangents = (jnp.asarray(squares), jnp.ones(len(squares)))

    def first(x):
        return jax.vmap(lambda x: jax.jvp(lambda x: stumpff(x, 4), (x,), (jnp.ones_like(x),))[1])(x)

    found = jax.vmap(lambda x: stumpff(x, 4))(tangents[0]), *jax.jvp(first, tangents[:1], tangents[1:])
    with mpmath.workdps(50):
        for i, x in enumerate(map(mpmath.mpf, squares)):
            # The n-th derivative, term by term.
            def exact(k, n, x=x):
                terms = range(n, 120)
                return float(
                    mpmath.fsum((-1) ** j * mpmath.ff(j, n) * x ** (j - n) / mpmath.factorial(k + 2 * j) for j in terms)
                )

            for n in range(3):
                np.testing.assert_allclose(found[n][i], [exact(k, n) for k in range(4)], rtol=4e-15, atol=4e-16)


@pytest.mark.parametrize("angle", ANGLES)
def test_left_jacobian(angle):
    """The translation of the exponential of a twist, and its inverse."""
    phi, rho = jnp.asarray(angle * AXIS), jnp.array([0.3, -0.2, 0.5])
    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = spatial.skew(phi), rho
    J, J_inverse = (
        jax.vmap(of, in_axes=(None, 1), out_axes=1)(phi, jnp.eye(3))
        for of in (spatial.left_jacobian, spatial.left_jacobian_inverse)
    )
    np.testing.assert_allclose(J @ rho, expm(twist)[:3, 3], atol=1e-14)
    np.testing.assert_allclose(J_inverse @ J, np.eye(3), atol=1e-13)


def test_logarithm_takes_the_short_way():
    q = spatial.quaternion_exp(jnp.asarray(0.4 * AXIS))
    np.testing.assert_allclose(spatial.quaternion_log(-q), 0.4 * AXIS, atol=1e-15)
    R = np.asarray(spatial.quaternion_to_matrix(q))
    np.testing.assert_allclose(spatial.skew(spatial.quaternion_log(q)), logm(R).real, atol=1e-14)


def test_scaled_quaternions_are_the_same_rotation():
    q = spatial.quaternion_exp(jnp.asarray(0.7 * AXIS))
    np.testing.assert_allclose(spatial.quaternion_to_matrix(3 * q), spatial.quaternion_to_matrix(q), atol=1e-15)
    np.testing.assert_allclose(spatial.quaternion_normalize(-2 * q), -q, atol=1e-15)


def test_quaternion_product_is_matrix_product():
    a, b = (jnp.asarray(x) for x in np.random.default_rng(0).normal(size=(2, 4)))
    matrix = spatial.quaternion_to_matrix
    np.testing.assert_allclose(matrix(spatial.quaternion_multiply(a, b)), matrix(a) @ matrix(b), atol=1e-14)


@jax.jit
def _derivatives(phi):
    maps = (
        spatial.quaternion_exp,
        lambda x: spatial.quaternion_log(spatial.quaternion_exp(x)),
        lambda phi: jax.vmap(spatial.left_jacobian, (None, 0))(phi, jnp.eye(3)),
        lambda phi: jax.vmap(spatial.left_jacobian_inverse, (None, 0))(phi, jnp.eye(3)),
    )
    return [d(f)(phi) for f in maps for d in (jax.jacfwd, jax.jacrev, lambda f: jax.jacfwd(jax.jacrev(f)))]


@pytest.mark.slow
def test_derivatives_are_finite_along_an_axis_and_under_vmap():
    phi = jnp.zeros((4, 3)).at[:, 0].set(jnp.array([0.0, 1e-9, 0.3, 2.0]))
    together = jax.vmap(_derivatives)(phi)
    for lane in range(len(phi)):
        for batched, alone in zip(together, _derivatives(phi[lane]), strict=True):
            assert np.all(np.isfinite(alone))
            np.testing.assert_allclose(batched[lane], alone, rtol=1e-12, atol=1e-15)


def _random():
    rng = np.random.default_rng(1)
    X = spatial.Transform(
        spatial.quaternion_to_matrix(jnp.asarray(rng.normal(size=4))), jnp.asarray(rng.normal(size=3))
    )
    B = rng.normal(size=(3, 3))
    inertia = spatial.SpatialInertia.from_com(jnp.asarray(1.7), jnp.asarray(rng.normal(size=3)), jnp.asarray(B @ B.T))
    return X, inertia, *(jnp.asarray(x) for x in rng.normal(size=(3, 6)))


def test_rate_of_an_inertia():
    _, inertia, m, _, v = _random()
    expected = spatial.cross_force(v, inertia.momentum(m)) - inertia.momentum(spatial.cross_motion(v, m))
    np.testing.assert_allclose(inertia.rate(v).momentum(m), expected, atol=1e-13 * np.max(np.abs(expected)))


def test_transforms():
    X, _, m, f, v = _random()
    identity = X @ X.inverse()
    np.testing.assert_allclose(identity.rotation, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(identity.translation, 0, atol=1e-15)
    np.testing.assert_allclose(X.motion_to_child(X.motion_to_parent(m)), m, atol=1e-14)
    np.testing.assert_allclose(X.force_to_child(X.force_to_parent(f)), f, atol=1e-14)
    np.testing.assert_allclose(X.motion_to_parent(m) @ X.force_to_parent(f), m @ f, atol=1e-13)
    np.testing.assert_allclose(X.motion_matrix() @ m, X.motion_to_child(m), atol=1e-14)
    np.testing.assert_allclose(X.motion_matrix().T @ f, X.force_to_parent(f), atol=1e-14)
    np.testing.assert_allclose(X.point_to_child(X.point_to_parent(m[:3])), m[:3], atol=1e-14)
    moved = spatial.cross_motion(X.motion_to_parent(v), X.motion_to_parent(m))
    np.testing.assert_allclose(X.motion_to_parent(spatial.cross_motion(v, m)), moved, atol=1e-13)


def test_cross_products_are_dual():
    _, _, m, f, v = _random()
    np.testing.assert_allclose(spatial.cross_motion(v, m) @ f, -(m @ spatial.cross_force(v, f)), atol=1e-13)


def test_inertia():
    X, inertia, _, _, v = _random()
    np.testing.assert_allclose(inertia.matrix() @ v, inertia.momentum(v), atol=1e-13)
    M = X.motion_matrix()
    np.testing.assert_allclose(inertia.to_parent(X).matrix(), M.T @ inertia.matrix() @ M, atol=1e-12)
    np.testing.assert_allclose((inertia + inertia).matrix(), 2 * inertia.matrix(), atol=1e-14)
    np.testing.assert_allclose(spatial.symmetric(spatial.unique(inertia.matrix()[:3, :3])), inertia.matrix()[:3, :3])
