"""Factorisations of small matrices, against LAPACK's, and products."""

import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest

from jdyn.array import (
    cholesky,
    cholesky_solution,
    definite_inverse,
    semidefinite_cholesky,
    triangle,
    triangular_inverse,
)
from jdyn.array.dot import dot, short_dot

EPS = np.finfo(float).eps


def definite(n, condition):
    rng = np.random.default_rng(n)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return jnp.asarray(Q @ np.diag(np.geomspace(1, condition, n)) @ Q.T)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_definite_matrices(n):
    """Errors of an inverse grow with the condition number."""
    for condition in (1.0, 1e6):
        A = definite(n, condition)
        np.testing.assert_allclose(definite_inverse(A), np.linalg.inv(A), rtol=0, atol=100 * EPS * condition)
        L = semidefinite_cholesky(A)
        np.testing.assert_allclose(L, np.linalg.cholesky(A), rtol=0, atol=100 * EPS * condition)
        np.testing.assert_allclose(triangular_inverse(L) @ L, np.eye(n), atol=100 * EPS * condition)


@pytest.mark.parametrize("n", [1, 3, 18])
def test_systems_by_factors(n):
    """The residual of a solution by Cholesky factors does not grow with the condition number."""
    for condition in (1.0, 1e12):
        A = definite(n, condition)
        L = cholesky(A)
        scale = np.linalg.norm(A, 2)
        np.testing.assert_array_equal(L, np.tril(L))
        np.testing.assert_allclose(L @ L.T, A, rtol=0, atol=4 * n * EPS * scale)
        x = cholesky_solution(L, jnp.arange(1.0, n + 1))
        np.testing.assert_allclose(A @ x, np.arange(1, n + 1), rtol=0, atol=4 * n**2 * EPS * scale * np.linalg.norm(x))
    assert np.isnan(cholesky(-jnp.eye(n))).any()


def test_semidefinite_matrices():
    """Of rank two, and none."""
    B = np.random.default_rng(0).normal(size=(6, 2))
    for A in (B @ B.T, np.zeros((6, 6)), np.diag([0.0, 2.0, 0.0])):
        L = np.asarray(semidefinite_cholesky(jnp.asarray(A)))
        # A pivot that is zero up to rounding leaves the root of that behind.
        np.testing.assert_allclose(L @ L.T, A, atol=100 * EPS * max(np.max(A), 1))
        np.testing.assert_array_equal(L, np.tril(L))


def test_reflections():
    A = np.random.default_rng(1).normal(size=(9, 5))
    A[:, 2] = A[:, 1]
    R = np.asarray(triangle(jnp.asarray(A), 5))
    np.testing.assert_allclose(R.T @ R, A.T @ A, atol=100 * EPS * np.sum(A**2))
    np.testing.assert_array_equal(np.tril(R, -1), 0)
    np.testing.assert_array_equal(triangle(jnp.zeros((4, 3)), 3), 0)


@pytest.mark.parametrize("a, b", [((3,), (3,)), ((3,), (3, 2)), ((5, 3), (3,)), ((5, 3), (3, 2)), ((2, 5, 3), (3, 4))])
@pytest.mark.parametrize("product", [dot, short_dot])
def test_dots_are_products_over_one_axis(product, a, b):
    a, b = (jnp.asarray(np.random.default_rng(0).normal(size=size)) for size in (a, b))
    np.testing.assert_allclose(product(a, b), np.tensordot(a, b, 1), rtol=1e-14, atol=1e-14)
    jax.test_util.check_grads(product, (a, b), order=1)
