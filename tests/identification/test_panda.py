"""The Panda, identified from simulated measurements with noise of one per cent of its joints' range of effort."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jdyn
from jdyn.identification import standard_values
from jdyn.spatial.log_cholesky import pseudo_inertia

pytestmark = [pytest.mark.slow, pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]

# Its inertias contain the rotors.
PARTS = ("inertias", "damping", "friction")
SEEDS, SAMPLES = 24, 600


def _motion(model, seed):
    """Sums of five sines within the limits, at 20 ms, and forces without noise."""
    rng = np.random.default_rng(seed)
    t, rates = np.arange(SAMPLES) * 0.02, 2 * np.pi * np.arange(1, 6) / 12
    amplitudes, phases = rng.uniform(0.5, 1, (7, 5, 1)), rng.uniform(0, 2 * np.pi, (7, 5, 1))
    waves = amplitudes * np.sin(rates[:, None] * t + phases)
    speeds = amplitudes * rates[:, None] * np.cos(rates[:, None] * t + phases)
    lower, upper = np.asarray(model.limits.lower), np.asarray(model.limits.upper)
    reach = (upper - lower) / 2 / np.abs(waves.sum(axis=1)).max(axis=1)
    reach = np.minimum(reach, np.asarray(model.limits.velocity) / np.abs(speeds.sum(axis=1)).max(axis=1))
    rates = rates[:, None]
    q = (upper + lower) / 2 + (reach[:, None] * waves.sum(axis=1)).T
    v = (reach[:, None] * speeds.sum(axis=1)).T
    a = (reach[:, None] * (-(rates**2) * waves).sum(axis=1)).T
    tau = jax.jit(jax.vmap(lambda *x: jdyn.inverse_dynamics(model, *x)))(*map(jnp.asarray, (q, v, a)))
    return q, v, a, np.asarray(tau)


@pytest.fixture(scope="module")
def truth():
    return _with_dampers(jdyn.load("panda"), 0.1)


@pytest.fixture(scope="module")
def nominal(truth):
    """Links that are too heavy by 20 to 60 %, and wrong friction and dampers."""
    rng, model = np.random.default_rng(7), _with_dampers(truth, 0.05)
    for name, mass in zip(truth.body_names, truth.inertias.mass, strict=True):
        model = model.with_body(name, mass=float(mass) * rng.uniform(1.2, 1.6))
    for name in truth.joint_names:
        model = model.with_joint(name, friction=rng.uniform(0.2, 0.5))
    return model


def _with_dampers(model, damping):
    return dataclasses.replace(model, damping=jnp.full(model.nv, damping))


def _noise(truth):
    return 0.01 * np.asarray(truth.limits.effort)


def _noisy(truth, tau, seed):
    return tau + _noise(truth) * np.random.default_rng(seed).normal(size=tau.shape)


@pytest.mark.exhaustive
def test_intervals_contain_the_true_base_parameters_as_often_as_they_say(truth, nominal):
    q, v, a, tau = _motion(truth, 0)
    inside = []
    for seed in range(SEEDS):
        fit = jdyn.identification.fit_base_parameters(nominal, q, v, a, _noisy(truth, tau, seed), parts=PARTS)
        low, high = fit.intervals().T
        true = fit.base.combinations @ np.asarray(standard_values(truth))
        inside.append((low < true) & (true < high))
        # Five standard deviations of an estimate of noise.
        assert_allclose(fit.noise, _noise(truth), rtol=5 / np.sqrt(2 * SAMPLES))
    # 43 of its bodies, as is well known, and a damper and friction of each joint.
    assert fit.base.rank == 43 + 7 + 7
    coverage = np.mean(inside)
    print(f"intervals of {fit.base.rank} base parameters contain {coverage:.1%} in {SEEDS} seeds")
    assert 0.90 <= coverage <= 0.98


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_forces_of_another_motion_are_predicted_to_within_noise(seed, truth, nominal):
    q, v, a, tau = _motion(truth, 0)
    *others, expected = _motion(truth, 1)
    predict = jax.jit(jax.vmap(jdyn.inverse_dynamics, (None, 0, 0, 0)))

    def errors(model):
        """Against measurements of other noise, of each joint and relative to its noise."""
        missing = np.asarray(predict(model, *map(jnp.asarray, others))) - _noisy(truth, expected, 1000 + seed)
        return np.sqrt(np.mean(missing**2, axis=0)) / _noise(truth)

    result = jdyn.identify(nominal, q, v, a, _noisy(truth, tau, seed), parts=PARTS)
    assert result.message.startswith("converged")
    assert np.all(np.linalg.eigvalsh(jax.vmap(pseudo_inertia)(result.model.inertias)) > 0)
    assert np.all(np.asarray(result.model.friction) > 0) and np.all(np.asarray(result.model.damping) > 0)
    found, wrong = errors(result.model), errors(nominal)
    print(f"errors over noise {np.round(found, 3)}, of the nominal model {np.round(wrong, 1)}")
    assert np.max(found) <= 1.1 and np.max(wrong) > 5


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_designed_motion_tells_more_than_sums_of_sines(truth):
    """Of the same length and within the same limits: standard errors are smaller by a third and more."""
    designed = jdyn.identification.exciting_motion(truth, 12.0, parts=PARTS, starts=2, steps=60, progress=False)
    q, v, a = jax.jit(jax.vmap(designed.reference))(jnp.arange(SAMPLES) * 0.02)
    tau = np.asarray(jax.jit(jax.vmap(jdyn.inverse_dynamics, (None, 0, 0, 0)))(truth, q, v, a))

    def errors(q, v, a, tau):
        fit = jdyn.identification.fit_base_parameters(truth, q, v, a, _noisy(truth, tau, 0), parts=PARTS)
        return dict(zip(fit.base.names, np.sqrt(np.diag(fit.covariance)), strict=True))

    found, ratios = errors(q, v, a, tau), []
    for seed in range(3):
        other = errors(*_motion(truth, seed))
        # Bases may differ; those that both have are most of all.
        common = found.keys() & other.keys()
        assert len(common) > 30
        ratios.append(np.exp(np.mean([np.log(other[name] / found[name]) for name in common])))
    print(f"condition {designed.condition:.3g}, errors of sines over those of the design {np.round(ratios, 2)}")
    assert np.min(ratios) > 1.5 and designed.condition < 20
