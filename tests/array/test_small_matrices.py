"""Factorisations of small matrices, against LAPACK's, and products."""

import pathlib

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest

import jdyn
from benchmarks.inside import factorizations
from jdyn.array import (
    LeastNorm,
    cholesky,
    cholesky_solution,
    definite_inverse,
    solution,
    swept_inverse,
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
        for inverse in (definite_inverse(A), swept_inverse(A)):
            np.testing.assert_allclose(inverse, np.linalg.inv(A), rtol=0, atol=100 * EPS * condition)
        L = cholesky(A, semidefinite=True)
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
        L = np.asarray(cholesky(jnp.asarray(A), semidefinite=True))
        # A pivot that is zero up to rounding leaves the root of that behind.
        np.testing.assert_allclose(L @ L.T, A, atol=100 * EPS * max(np.max(A), 1))
        np.testing.assert_array_equal(L, np.tril(L))


@pytest.mark.parametrize("n", [1, 3, 12])
def test_elimination_with_pivots(n):
    """Zeros on the diagonal are no obstacle, and errors grow with the condition number."""
    for condition in (1.0, 1e6):
        A = jnp.roll(definite(n, condition), 1, axis=0)
        A = A if n == 1 else A - jnp.diag(jnp.diagonal(A))
        B = np.random.default_rng(n).normal(size=(n, 2))
        expected, scale = np.linalg.solve(A, B), np.linalg.cond(A)
        for full in (False, True):
            X = jax.jit(lambda A, B, full=full: solution(A, B, full))(A, B)
            np.testing.assert_allclose(X, expected, rtol=0, atol=100 * EPS * scale * np.max(np.abs(expected)))


def test_matrices_that_are_not_definite_have_no_swept_inverse():
    for A in (np.diag([1.0, 0.0]), np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])):
        assert np.isnan(swept_inverse(jnp.asarray(A))).any()


@pytest.mark.parametrize("rank, most", [(0, None), (2, None), (7, None), (2, 2), (2, 4), (7, 20)])
def test_least_norm_solutions(rank, most):
    """The pseudoinverse, as long as rows do not nearly depend on each other."""
    J = np.random.default_rng(rank).normal(size=(7, rank)) * np.geomspace(1, 1e-3, 7)[:, None]
    A = J @ J.T
    least = LeastNorm.of(jnp.asarray(A), most)
    assert least.rank == rank
    np.testing.assert_allclose(least.L @ least.L.T, A, rtol=0, atol=100 * EPS * np.max(np.diag(A), initial=0))
    exact = np.linalg.pinv(J.T) @ np.linalg.pinv(J)
    error = jax.vmap(least.solve)(jnp.eye(7)) - exact
    condition = np.linalg.cond(J) ** 2 if rank else 1
    np.testing.assert_allclose(error, 0, atol=100 * EPS * condition * np.max(np.abs(exact), initial=0))


def test_factorizations_are_written_once():
    """All that factor small dense matrices are in `jdyn.array`, one of each kind; the others say why they are not."""
    assert factorizations(pathlib.Path(jdyn.__file__).parent) == {
        "array/small_matrices.py column_left",  # Cholesky's
        "array/small_matrices.py _eliminated",  # elimination
        "array/small_matrices.py triangle",  # Householder's
        "dynamics/methods/branch_sparse.py factor",  # sparse
        "dynamics/recursion/floating_base.py _swept",  # 21 numbers that are arrays of lanes
        "geometry/outside.py _least_squares",  # two rows, of any rank
    }


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
