"""The Panda, identified from simulated measurements with noise of one per cent of its joints' range of effort."""

import dataclasses
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from numpy.testing import assert_allclose

import jdyn
from jdyn.cli import main
from jdyn.identification import recording, standard_values
from jdyn.identification.channels import fit_channels
from jdyn.identification.filters import ParallelFilter
from jdyn.identification.rows import filtered_rows
from jdyn.spatial.log_cholesky import pseudo_inertia

pytestmark = [pytest.mark.slow, pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]

# Its inertias contain the rotors.
PARTS = ("inertias", "damping", "friction")
SEEDS, SAMPLES = 24, 600
TIMES = np.arange(SAMPLES) * 0.02
# Of a log: encoders of 0.001 degrees, forces of 0.2 % of their range, which are late [rad], [s].
ENCODER, FORCE, DELAY, STEP = 2e-5, 0.002, 0.0034, 0.001


def _motion(model, seed, t=TIMES):
    """Sums of five sines within the limits, and forces without noise."""
    rng = np.random.default_rng(seed)
    rates = 2 * np.pi * np.arange(1, 6) / 12
    amplitudes, phases = rng.uniform(0.5, 1, (7, 5, 1)), rng.uniform(0, 2 * np.pi, (7, 5, 1))

    def sums(t):
        waves = amplitudes * np.sin(rates[:, None] * t + phases)
        speeds = amplitudes * rates[:, None] * np.cos(rates[:, None] * t + phases)
        return waves.sum(axis=1), speeds.sum(axis=1), (-(rates[:, None] ** 2) * waves).sum(axis=1)

    lower, upper = np.asarray(model.limits.lower), np.asarray(model.limits.upper)
    largest = [np.abs(x).max(axis=1) for x in sums(TIMES)]
    reach = np.minimum((upper - lower) / 2 / largest[0], np.asarray(model.limits.velocity) / largest[1])
    q, v, a = (reach * x.T for x in sums(t))
    q = (upper + lower) / 2 + q
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


def _log(truth, seed):
    """Positions and late forces of 24 s at 1 kHz, with noise."""
    t, rng = np.arange(24000) * STEP, np.random.default_rng(seed)
    q, (*_, tau) = _motion(truth, 0, t)[0], _motion(truth, 0, t - DELAY)
    tau = tau + FORCE * np.asarray(truth.limits.effort) * rng.normal(size=tau.shape)
    return t, q + ENCODER * rng.normal(size=q.shape), tau


def _as_dataset(model, t, q, tau):
    names = list(model.topology.v_names)
    quantities = {"q": (("time", "q_coordinate"), q), "tau": (("time", "v_coordinate"), tau)}
    return xarray.Dataset(quantities, {"time": t, "q_coordinate": names, "v_coordinate": names})


def test_it_is_identified_from_positions_and_late_torques_in_a_file(truth, tmp_path, monkeypatch, capsys):
    """By the command, from the bundled robot: parameters within intervals, other forces to within noise."""
    monkeypatch.chdir(tmp_path)
    t, q, tau = _log(truth, 0)
    names = [f"{what}_{joint}" for what in ("q", "tau") for joint in truth.topology.v_names]
    np.savetxt("log.csv", np.column_stack([t, q, tau]), "%.8g", ",", header=",".join(["time", *names]), comments="")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*URDF cannot represent friction_speed")
        words = ["identify", "log.csv", "panda", "--parts", *PARTS, "--report", "fit.html"]
        assert main(words) == 0
    out = capsys.readouterr().out
    assert "panda: 24000 samples, converged" in out
    (row,) = re.findall(r"delay +(\S+) s +(\S+) to (\S+)", out)
    delay, low, high = map(float, row)
    # Its interval is a tenth of a step wide.
    assert abs(delay - DELAY) < 0.1 * STEP and high - low < 0.2 * STEP
    for joint in range(7):
        (row,) = re.findall(rf"joint:joint{joint + 1}\.damping +0 +(\S+) ", out)
        assert float(row) == pytest.approx(0.1, abs=0.03)
    page = (tmp_path / "fit.html").read_text()
    assert "condition number of the regressor" in page and page.count("data:image/png") == 3
    assert (tmp_path / "identified-panda.urdf").exists()


def test_a_log_predicts_forces_that_were_held_out_to_within_their_noise(truth):
    nominal = jdyn.load("panda")
    dataset = _as_dataset(truth, *_log(truth, 1))
    found = jdyn.identification.identify_log(nominal, dataset, parts=PARTS)
    kernel = ParallelFilter(STEP, found.band).kernel
    noise = FORCE * np.asarray(truth.limits.effort) * np.sqrt(np.sum(kernel**2))
    ratios = found.held_out.errors / noise
    print(f"errors of held-out forces over filtered noise {np.round(ratios, 2)}, condition {found.condition:.1f}")
    # Five standard deviations of an estimate of noise; noise of positions adds some to the small forces of the hand.
    few = 5 / np.sqrt(2 * len(found.held_out.times))
    assert np.all(ratios < 1.25 + few) and np.all(ratios > 1 - few)
    fit = found.identification.fit
    true = fit.base.combinations @ np.asarray(standard_values(truth))
    low, high = fit.intervals().T
    # Of 57 intervals of 95 %, fewer than 49 contain the truth once in 1000 times, if they were independent.
    assert np.sum((low < true) & (true < high)) >= 49


@pytest.mark.exhaustive
def test_intervals_from_logs_contain_the_truth_as_often_as_they_say(truth):
    nominal, inside = jdyn.load("panda"), []
    for seed in range(SEEDS // 2):
        dataset = _as_dataset(truth, *_log(truth, seed))
        rows = filtered_rows(nominal, recording(nominal, dataset), 8.0)
        fit, channels = fit_channels(nominal, [rows], PARTS, ["delay", "offset"], currents=False)
        true = [*(fit.base.combinations @ np.asarray(standard_values(truth))), *np.zeros(7), DELAY]
        low, high = np.concatenate([fit.intervals(), channels.intervals()]).T
        inside.append((low < true) & (true < high))
    coverage = np.mean(inside)
    print(f"intervals of {inside[0].size} parameters and channels contain {coverage:.1%} in {len(inside)} logs")
    assert 0.90 <= coverage <= 0.98
