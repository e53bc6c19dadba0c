"""How exact the methods are, against 60-digit arithmetic on the same rounded data.

The exact solution is of a formulation of its own: the mass matrix of a chain of revolute joints by composite bodies,
the bias forces by Newton and Euler, and Gaussian elimination, all in numbers of 60 digits.
"""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import jdyn
from jdyn.robots import prrr

mpmath.mp.dps = 60
exactly = np.vectorize(lambda x: mpmath.mpf(float(x)), otypes=[object])
POWERS = range(7)
TURNS = np.linspace(0, 2 * np.pi, 36, endpoint=False)


def _cross(a):
    x, y, z = a
    return np.array([[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]])


def _block(a, b, c, d):
    return np.concatenate([np.concatenate([a, b], axis=1), np.concatenate([c, d], axis=1)])


def exact_accelerations(model, q, v, tau):
    """Of a chain of revolute joints without rotors, dampers, friction or springs."""
    zero, one = exactly(np.zeros((3, 3))), exactly(np.eye(3))
    axes = exactly(np.concatenate([joints.axis for joints in model.joints]))
    gravity = np.concatenate([zero[0], -exactly(model.gravity)])
    V, A, bodies = exactly(np.zeros(6)), gravity, []
    for i in range(model.nb):
        K, s, c = _cross(axes[i]), mpmath.sin(float(q[i])), mpmath.cos(float(q[i]))
        R = exactly(model.placements.rotation[i]) @ (one + s * K + (1 - c) * K @ K)
        X = _block(R.T, zero, -R.T @ _cross(exactly(model.placements.translation[i])), R.T)
        S = np.concatenate([axes[i], zero[0]])
        a, b, d, e, f, g = exactly(model.inertias.rotational[i])
        H = _cross(exactly(model.inertias.first_moment[i]))
        m = exactly(model.inertias.mass[i])
        I = _block(np.array([[a, b, e], [b, d, f], [e, f, g]]), H, H.T, m * one)
        V = X @ V + S * mpmath.mpf(float(v[i]))
        motion = _block(_cross(V[:3]), zero, _cross(V[3:]), _cross(V[:3]))
        A = X @ A + motion @ S * mpmath.mpf(float(v[i]))
        bodies.append((X, S, I, I @ A - motion.T @ I @ V))
    n = model.nb
    M, h = mpmath.matrix(n), mpmath.matrix(n, 1)
    composite, force = exactly(np.zeros((6, 6))), exactly(np.zeros(6))
    for i in reversed(range(n)):
        X, S, I, p = bodies[i]
        composite, force = composite + I, force + p
        h[i] = mpmath.mpf(float(tau[i])) - S @ force
        carried = composite @ S
        for j in reversed(range(i + 1)):
            M[i, j] = M[j, i] = bodies[j][1] @ carried
            carried = bodies[j][0].T @ carried
        composite, force = X.T @ composite @ X, X.T @ force
    return np.array(mpmath.lu_solve(M, h).tolist())[:, 0]


def error(a, exact):
    difference = exactly(a) - exact
    return float(mpmath.norm(difference) / mpmath.norm(exact))


@functools.cache
def two_links(power, dtype, moving):
    """The thesis' second case (section 5.2.1) and its exact accelerations over all angles of the second joint."""
    ratio = 10.0**power
    model = prrr(2, lengths=(1, ratio), masses=(1, ratio), dtype=dtype).with_gravity((0, 0, -9.8))
    q = jnp.asarray(np.stack([np.zeros(36), TURNS], axis=1), dtype)
    v, tau = (jnp.full((36, 2), x, dtype) for x in ((0.8, 0.3) if moving else (0.0, 0.0)))
    return model, q, v, tau, [exact_accelerations(model, *x) for x in zip(q, v, tau, strict=True)]


@functools.partial(jax.jit, static_argnames="method")
def _accelerations(method, model, q, v, tau):
    return jax.vmap(lambda q, v, tau: jdyn.forward_dynamics(model, q, v, tau, method=method))(q, v, tau)


def worst_error(method, power, dtype, moving=False):
    model, q, v, tau, exact = two_links(power, dtype, moving)
    a = _accelerations(method, model, q, v, tau)
    return max(error(*pair) for pair in zip(np.asarray(a), exact, strict=True))


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("method", [jdyn.ABA(), jdyn.ArrayABA()], ids=str)
def test_two_links_in_double_precision(method, moving):
    assert max(worst_error(method, power, jnp.float64, moving) for power in POWERS) < 1e-13
