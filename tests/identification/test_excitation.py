"""Motions for identification: against differences, limits at instants that the design does not see, and chance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jdyn
from jdyn.identification.base import stacked_regressor
from jdyn.identification.excitation import _within_limits
from tests.identification.arms import planar_arm

pytestmark = pytest.mark.fast_compile

PERIOD = 4.0
ARM = planar_arm().with_joint("shoulder", velocity=2.0).with_joint("elbow", lower=-1.0, upper=2.0, velocity=50.0)
FINE = jnp.linspace(0, PERIOD, 4001)


@pytest.fixture(scope="module")
def drawn():
    keys = jax.random.split(jax.random.key(3), 2)
    coefficients = dict(zip(("sines", "cosines"), (jax.random.normal(key, (2, 5)) for key in keys), strict=True))
    return jax.jit(lambda x: _within_limits(ARM, PERIOD, x))(coefficients)


def test_a_series_has_the_velocity_and_acceleration_of_its_motion(drawn):
    q, v, a = jax.jit(jax.vmap(drawn))(FINE)
    h = PERIOD / 4000
    # Second-order differences: the error is h²/6 times a derivative two orders higher, 5 ω times each.
    rate = (2 * np.pi * 5 / PERIOD) ** 2 * h**2 / 6
    assert_allclose((q[2:] - q[:-2]) / (2 * h), v[1:-1], atol=rate * np.abs(v).max())
    assert_allclose((v[2:] - v[:-2]) / (2 * h), a[1:-1], atol=rate * np.abs(a).max())
    assert_allclose([q[-1], v[-1], a[-1]], [q[0], v[0], a[0]], atol=1e-9)
    assert_allclose([v[0], a[0]], np.zeros((2, 2)), atol=1e-9)


def test_each_coordinate_comes_up_to_its_limits_and_not_beyond(drawn):
    q, v, _ = jax.jit(jax.vmap(drawn))(FINE)
    speeds, turn = np.abs(v).max(axis=0), np.abs(q[:, 1] - 0.5).max()
    # Up to the part that the design keeps for what happens between its instants: 1 - cos(π / 20).
    assert 2.0 * 0.987 < speeds[0] <= 2.0
    assert 1.5 * 0.987 < turn <= 1.5 and speeds[1] < 50.0
    assert_allclose(np.mean(np.asarray(q)[:-1], axis=0), [0, 0.5], atol=1e-9)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="which these lack: shoulder; give limits"):
        jdyn.identification.exciting_motion(ARM.with_joint("shoulder", velocity=np.inf), PERIOD)
    with pytest.raises(ValueError, match="period: expected a positive number of seconds, got 0"):
        jdyn.identification.exciting_motion(ARM, 0)
    with pytest.raises(ValueError, match="harmonics: expected at least 2, as a start at rest takes one, got 1"):
        jdyn.identification.exciting_motion(ARM, PERIOD, harmonics=1)
    with pytest.raises(ValueError, match="starts: expected a positive number, got 0"):
        jdyn.identification.exciting_motion(ARM, PERIOD, starts=0)
    ball = jdyn.Builder("ball")
    ball.add_link("ball", jdyn.Ball(), mass=1.0, inertia=(1, 1, 1))
    with pytest.raises(ValueError, match="got rotations in 'ball'"):
        jdyn.identification.exciting_motion(ball.build(), PERIOD)


@pytest.mark.slow
def test_a_designed_motion_tells_more_than_random_ones():
    """By the determinant of the information, in NumPy: of each base parameter, errors fall by a third on average."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        found = jdyn.identification.exciting_motion(ARM, PERIOD, harmonics=4, starts=4, steps=80, progress=False)
    times = jnp.linspace(0, PERIOD, 81)[:-1]

    def rows(reference):
        q, v, a = jax.jit(jax.vmap(reference))(times)
        # The limit of effort is 20 N m for both joints.
        return stacked_regressor(ARM, q, v, a)[..., found.base.columns].reshape(-1, found.base.rank) / 20

    information = np.linalg.slogdet(rows(found.reference).T @ rows(found.reference) / 80)[1] / found.base.rank
    losses = found.tuning.best.losses
    assert information == pytest.approx(-losses.min(), rel=1e-9)
    starts = [-result.losses[0] for result in found.tuning.results]
    # Errors are the root of one over the information: exp(-0.8 / 2) = 0.67.
    assert information > max(starts) + 0.8
    scaled = rows(found.reference) / np.linalg.norm(rows(found.reference), axis=0)
    assert found.condition == pytest.approx(np.linalg.cond(scaled), rel=1e-6)
    print(f"log information {information:.3f}, of random starts {np.round(starts, 3)}, condition {found.condition:.3g}")
