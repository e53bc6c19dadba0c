"""References against closed forms, SciPy's splines, and finite differences of their own configurations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy.interpolate import CubicSpline

import jdyn
from jdyn.control import Quintic, Spline
from tests.drawn import unit

pytestmark = pytest.mark.fast_compile

ARM = jdyn.load("double_pendulum")
FLOATING = jdyn.random_tree(2, 2, kinds=(jdyn.Free, jdyn.Ball))
TIMES = np.array([0.0, 0.4, 1.0, 1.3, 2.0])
POINTS = np.random.default_rng(0).normal(size=(5, 2))
POSES = unit(np.random.default_rng(3).normal(size=(5, FLOATING.nq)), 3, 7)
RATES = jnp.asarray(np.random.default_rng(4).normal(size=(4, FLOATING.nv)))


@jax.jit
def _at(reference, times):
    return jax.vmap(reference)(times)


def test_minimum_jerk_and_rest_before_and_after():
    q0, q1, times = np.array([0.2, -1.0]), np.array([1.0, 0.5]), np.linspace(0.0, 2.0, 9)
    q, v, a = _at(Quintic(ARM, q0, q1, 0.5, 1.5), times)
    u = np.clip(times - 0.5, 0, 1)[:, None]
    np.testing.assert_allclose(q, q0 + (10 * u**3 - 15 * u**4 + 6 * u**5) * (q1 - q0), atol=1e-14)
    np.testing.assert_allclose(v, 30 * u**2 * (1 - u) ** 2 * (q1 - q0), atol=1e-13)
    np.testing.assert_allclose(a, 60 * u * (1 - u) * (1 - 2 * u) * (q1 - q0), atol=1e-13)


@pytest.mark.parametrize("ends", ["clamped", "natural"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_cubic_spline(count, ends):
    times = np.linspace(0.0, TIMES[count - 1], 23)
    expected = CubicSpline(TIMES[:count], POINTS[:count], bc_type=ends)
    for order, found in enumerate(_at(Spline(ARM, TIMES[:count], POINTS[:count], ends=ends), times)):
        np.testing.assert_allclose(found, expected(times, order), atol=1e-12)


def _agree_with_differences(reference, times, step=1e-5):
    """Velocities with differences of configurations on the manifold, accelerations with those of velocities."""
    times = jnp.concatenate([times - step, times, times + step])
    (before, _, after), (v_before, v, v_after), (_, a, _) = (jnp.split(x, 3) for x in _at(reference, times))
    moved = jax.vmap(FLOATING.difference)(before, after) / (2 * step)
    # The error of the differences is about step² times the third derivative, which is below 1e4.
    np.testing.assert_allclose(moved, v, atol=1e-6)
    np.testing.assert_allclose((v_after - v_before) / (2 * step), a, atol=1e-5)
    assert np.max(np.abs(v)) > 1 and np.max(np.abs(a)) > 1


@pytest.mark.slow
def test_quintic_on_the_manifold_has_the_velocities_that_were_given():
    given = dict(zip(("v0", "v1", "a0", "a1"), RATES, strict=True))
    quintic = Quintic(FLOATING, POSES[0], POSES[1], 0.5, 1.5, **given)
    _agree_with_differences(quintic, jnp.linspace(0.51, 1.49, 4))
    q, v, a = (x[jnp.array([0, 11])] for x in _at(quintic, jnp.linspace(0.5, 1.5, 12)))
    np.testing.assert_allclose(jax.vmap(FLOATING.difference)(q, POSES[:2]), 0, atol=1e-13)
    np.testing.assert_allclose(v, RATES[:2], atol=1e-12)
    np.testing.assert_allclose(a, RATES[2:], atol=1e-11)


@pytest.mark.slow
def test_spline_on_the_manifold():
    """It passes its waypoints smoothly, rests before and after, and its velocities are the bodies' own."""
    spline = Spline(FLOATING, TIMES, POSES)
    _agree_with_differences(spline, jnp.array([0.1, 0.5, 1.1, 1.6]))
    around = jnp.concatenate([TIMES, TIMES[1:-1] - 1e-9, TIMES[1:-1] + 1e-9, jnp.array([-1.0])])
    q, v, a = _at(spline, around)
    np.testing.assert_allclose(jax.vmap(FLOATING.difference)(q[:5], POSES), 0, atol=1e-13)
    np.testing.assert_allclose(v[jnp.array([0, 4])], 0, atol=1e-13)
    # Two nanoseconds of motion apart: configurations too, so that no quaternion changes its sign.
    for x in (q, v, a):
        np.testing.assert_allclose(x[5:8], x[8:11], atol=1e-5)
    np.testing.assert_allclose(FLOATING.difference(q[11], POSES[0]), 0, atol=1e-13)
    np.testing.assert_array_equal([v[11], a[11]], 0)
    assert np.max(np.abs(a[0])) > 1


@pytest.mark.slow
def test_derivatives_with_respect_to_waypoints_and_times():
    def passed(waypoints, times):
        return Spline(ARM, times, waypoints)(0.7)

    check_grads(passed, (jnp.asarray(POINTS[:4]), jnp.asarray(TIMES[:4])), order=1, modes=("fwd", "rev"), rtol=1e-6)


@pytest.mark.slow
def test_derivatives_on_the_manifold_where_nothing_moves():
    """From the identity to the identity: derivatives are those of a straight line."""
    ball = jdyn.random_tree(0, 1, kinds=(jdyn.Ball,))
    neutral = ball.neutral()

    @jax.jit
    def shift(offset):
        q, v, a = Quintic(ball, neutral, ball.integrate(neutral, offset), 0.0, 2.0)(0.5)
        return ball.difference(neutral, q), v, a

    u = 0.25
    slopes = 10 * u**3 - 15 * u**4 + 6 * u**5, 15 * u**2 * (1 - u) ** 2, 15 * u * (1 - u) * (1 - 2 * u)
    for found, slope in zip(jax.jacrev(shift)(jnp.zeros(3)), slopes, strict=True):
        np.testing.assert_allclose(found, slope * np.eye(3), atol=1e-14)


@pytest.mark.slow
def test_float32():
    times = jnp.linspace(0.1, 1.9, 12)
    singles = _at(Spline(FLOATING.astype(jnp.float32), TIMES, POSES), times.astype(jnp.float32))
    for single, double in zip(singles, _at(Spline(FLOATING, TIMES, POSES), times), strict=True):
        assert single.dtype == jnp.float32
        np.testing.assert_allclose(single, double, atol=1e-4 * float(jnp.max(jnp.abs(double))))


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"t0, t1: expected increasing times, got \[1. 1.\]"):
        Quintic(ARM, POINTS[0], POINTS[1], 1.0, 1.0)
    with pytest.raises(ValueError, match=r"q1: expected shape \(2,\) for 'double_pendulum', got \(3,\)"):
        Quintic(ARM, POINTS[0], jnp.zeros(3), 0.0, 1.0)
    with pytest.raises(ValueError, match=r"a1: expected a scalar or shape \(2,\)"):
        Quintic(ARM, POINTS[0], POINTS[1], 0.0, 1.0, a1=jnp.zeros(3))
    with pytest.raises(ValueError, match=r"waypoints: expected shape \(waypoints, 2\) .* two or more, got \(1, 2\)"):
        Spline(ARM, TIMES[:1], POINTS[:1])
    with pytest.raises(ValueError, match=r"times: expected shape \(4,\), one a waypoint, got \(5,\)"):
        Spline(ARM, TIMES, POINTS[:4])
    with pytest.raises(ValueError, match=r"times: expected increasing times"):
        Spline(ARM, TIMES[::-1], POINTS)
    with pytest.raises(ValueError, match=r"ends: expected 'clamped' or 'natural', got 'free'"):
        Spline(ARM, TIMES, POINTS, ends="free")
