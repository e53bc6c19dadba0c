"""Identification from positions and torques alone: against closed forms, and arms whose numbers are known."""

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from numpy.testing import assert_allclose

import jdyn
from jdyn.cli import main
from jdyn.identification import identify_log, recording, save_report
from jdyn.identification import rows as rows_of_logs
from jdyn.identification.channels import fit_channels
from jdyn.identification.filters import ParallelFilter
from jdyn.identification.rows import filtered_rows
from tests.identification.arms import nominal_arm, planar_arm

pytestmark = [pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]

TIMES, DELAY, OFFSET = np.linspace(0, 20, 2001), 0.0032, 0.05
ARM, NOMINAL = planar_arm(), nominal_arm()


def _log(times, q, **efforts):
    rows = {"q": (("time", "q_coordinate"), q)}
    rows |= {name: (("time", "v_coordinate"), values) for name, values in efforts.items()}
    return xarray.Dataset(rows, {"time": times})


def _pendulum(noise=0.0, seed=0, delay=DELAY):
    """A swing of two sines of the bundled pendulum, its torque by hand: I a + m g l sin q."""
    rng = np.random.default_rng(seed)

    def motion(t):
        return np.sin(2 * t) + 0.5 * np.cos(3 * t), -4 * np.sin(2 * t) - 4.5 * np.cos(3 * t)

    (q, _), (before, a) = motion(TIMES), motion(TIMES - delay)
    tau = a / 3 + 9.81 / 2 * np.sin(before) + OFFSET + noise * rng.normal(size=TIMES.shape)
    return _log(TIMES, (q + 5e-4 * noise * rng.normal(size=TIMES.shape))[:, None], tau=tau[:, None])


def _fitted(dataset, channels=("delay", "offset")):
    model = jdyn.load("pendulum")
    rows = filtered_rows(model, recording(model, dataset, cutoff=5.0), 10.0)
    return fit_channels(model, [rows], ["inertias"], channels, currents=False)


@pytest.mark.parametrize("delay", [DELAY, -0.06])
def test_the_delay_is_found_beside_offset_and_parameters(delay):
    base, channels = _fitted(_pendulum(delay=delay))
    # The filter of positions changes the faster line, of 0.48 Hz, by 1e-8.
    assert_allclose(base.values, [0, -0.5, 1 / 3], atol=1e-6)
    assert_allclose([channels["delay"], channels["offset:joint1"]], [delay, OFFSET], atol=1e-5)
    assert channels.units == ("N m", "s")


def test_without_a_delay_late_torques_look_like_noise():
    base, _ = _fitted(_pendulum())
    late, _ = _fitted(_pendulum(), channels=("offset",))
    assert late.noise[0] > 100 * base.noise[0]


@pytest.mark.slow
def test_intervals_of_channels_and_parameters_are_as_wide_as_they_say():
    scores = []
    for seed in range(40):
        base, channels = _fitted(_pendulum(0.02, seed))
        values, deviations = (
            [*base.values, *channels.values],
            [*np.sqrt(np.diag(base.covariance)), *channels.deviations],
        )
        scores.append((np.array(values) - [0, -0.5, 1 / 3, OFFSET, DELAY]) / deviations)
    # Of 40 normal numbers, mean and deviation are so far off once in 10000.
    assert np.all(np.abs(np.mean(scores, axis=0)) < 3.9 / np.sqrt(40))
    assert np.all(np.abs(np.std(scores, axis=0) - 1) < 3.9 / np.sqrt(80))


@functools.cache
def _of_arm(arm, phase):
    """Positions of three sines for each joint, and torques."""
    rates = 2 * np.pi * np.array([[0.3, 0.7, 1.1], [0.4, 0.6, 1.3]])

    def motion(t):
        return jnp.sum(jnp.array([0.8, 0.5, 0.3]) * jnp.sin(rates * t + phase), axis=1)

    @jax.jit
    @jax.vmap
    def states(t):
        v = jax.jacfwd(motion)
        q, v, a = motion(t), v(t), jax.jacfwd(v)(t)
        return q, jdyn.inverse_dynamics(arm, q, v, a)

    return [np.asarray(x) for x in states(jnp.asarray(TIMES))]


def _noisy(arm, phase, gains=1.0, noise=0.02):
    q, tau = _of_arm(arm, phase)
    rng = np.random.default_rng(int(10 * phase))
    efforts = (tau + noise * rng.normal(size=tau.shape)) / gains
    return q + 1e-6 * rng.normal(size=q.shape), efforts


@pytest.mark.slow
def test_torque_constants_need_a_known_payload():
    constants, loaded, model = np.array([0.8, 1.7]), ARM.with_body("fore", mass=2.0), NOMINAL
    # The payload of 1 kg is in the centre of mass of the forearm, and known, whatever the forearm is.
    assert_allclose(loaded.inertias.first_moment[1] - ARM.inertias.first_moment[1], [0.2, 0, 0.05], atol=1e-12)
    with_payload = _with_payload(model, loaded)
    q, currents = _noisy(ARM, 0.3, constants)
    log = _log(TIMES, q, i=currents)
    with pytest.raises(
        ValueError, match=r"does not tell gain:shoulder, gain:elbow .* gains need a force that is known"
    ):
        identify_log(model, log)
    q, currents = _noisy(loaded, 0.7, constants)
    found = identify_log(model, log, loaded=[(with_payload, _log(TIMES, q, i=currents))])
    assert found.currents and found.channels.units[2] == "N m/A"
    gains = [found.channels[f"gain:{name}"] for name in ("shoulder", "elbow")]
    places = [found.channels.names.index(f"gain:{name}") for name in ("shoulder", "elbow")]
    deviations = found.channels.deviations[places]
    assert np.all(np.abs(gains - constants) < 4 * deviations) and np.all(deviations < 0.01 * constants)
    base = found.identification.fit
    true = base.base.combinations @ np.asarray(jdyn.identification.standard_values(ARM))
    assert np.all(np.abs(base.values - true) < 4.5 * np.sqrt(np.diag(base.covariance)))
    # Friction that is known would do, too.
    alone = identify_log(ARM, log, parts=["inertias"])
    assert_allclose([alone.channels[f"gain:{name}"] for name in ("shoulder", "elbow")], constants, rtol=0.05)


def _with_payload(model, loaded):
    """The nominal model with the payload that the true one has there."""
    more = jax.tree.map(lambda a, b: a - b, loaded.inertias, ARM.inertias)
    return dataclasses.replace(model, inertias=jax.tree.map(lambda a, b: a + b, model.inertias, more))


@pytest.mark.slow
def test_a_log_with_velocities_is_taken_as_it_is(tmp_path):
    """The same as `identify` finds; and held-out forces of another log, and a page."""
    q, tau = _noisy(ARM, 0.3)
    v = np.gradient(q, TIMES, axis=0)
    log = _log(TIMES, q, v=v, a=np.gradient(v, TIMES, axis=0), tau=tau)
    every = log.isel(time=slice(None, None, 20))
    found = identify_log(NOMINAL, every, held_out=every)
    same = jdyn.identify(NOMINAL, *jdyn.identification.measurement(NOMINAL, every))
    assert_allclose(found.identification.values, same.values, rtol=1e-6, atol=1e-9)
    assert_allclose(found.held_out.errors, found.training.errors)
    assert found.channels.names == () and found.band is None
    assert "nothing was filtered" in str(found)
    save_report(found, tmp_path / "fit.html")
    assert "Friction over speed" in (tmp_path / "fit.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": ["delay"], "cutoff": None}, "channels: expected a cutoff, as a delay is looked for"),
        ({"channels": ["lag"]}, "channels: expected some of delay, offset, gain, got"),
        ({"channels": "gain"}, "channels: expected some of delay, offset, gain, got 'gain'"),
        ({"cutoff": 60.0}, "cutoff: expected a frequency between 0 and 50 Hz, got 60"),
        ({"cutoff": 0.2}, "expected more than 3000 samples for a filter of 0.2 Hz, got 2001"),
        ({"held_out": 1.0}, "held_out: expected a share of the log from 0 to less than 1, got 1"),
        ({"spread": 0.0}, "spread: expected a positive number"),
    ],
)
def test_what_cannot_be_is_refused(options, message):
    log = _pendulum()
    log = log.assign(v=log["tau"])
    with pytest.raises(ValueError, match=message):
        identify_log(jdyn.load("pendulum"), log, **({"cutoff": 5.0} | options))


def test_logs_that_say_too_little_are_refused():
    model, log = jdyn.load("pendulum"), _pendulum()
    with pytest.raises(ValueError, match="dataset: expected time, q, and tau or i; it lacks tau or i"):
        recording(model, log.drop_vars("tau"))
    still = log.assign(q=log["q"] * 0 + 1e-5 * np.random.default_rng(0).normal(size=log["q"].shape))
    with pytest.raises(ValueError, match="expected positions that move, got none that stands out of its noise"):
        recording(model, still)
    with pytest.raises(ValueError, match=r"expected joints whose coordinates are single numbers, .* give v and a"):
        recording(jdyn.load("box"), log)


def test_regressors_are_filtered_as_efforts_are(monkeypatch):
    """Sums over pieces of a log, against a convolution of all of it."""
    model = jdyn.load("pendulum")
    log = recording(model, _pendulum(), cutoff=5.0)
    monkeypatch.setattr(rows_of_logs, "ENTRIES", 0)
    rows, parallel = filtered_rows(model, log, 8.0), ParallelFilter(log.step, 8.0)
    assert len(parallel.kernel) > 64
    Y = jax.vmap(functools.partial(jdyn.identification.standard_regressor, model))(log.q, log.v, log.a)
    middles = np.round((rows.times - log.times[0]) / log.step).astype(int) - parallel.half
    whole = parallel.everywhere(np.asarray(Y).reshape(len(Y), -1))[middles]
    assert_allclose(rows.regressor.reshape(len(rows.times), -1), whole, atol=1e-12)


def test_the_cut_off_follows_from_the_motion():
    found = recording(jdyn.load("pendulum"), _pendulum(0.02))
    (note,) = (note for note in found.notes if note.startswith("cut-off"))
    # The faster line, of 0.48 Hz, is up to 6.5 bins of 0.05 Hz wide to each side.
    assert 4 * 0.48 < found.cutoff < 4 * (0.48 + 6.5 / 20)
    assert "4 times the" in note


def test_angles_of_continuous_joints_may_jump_by_whole_turns():
    builder = jdyn.Builder("wheel")
    builder.add_link("wheel", jdyn.Continuous((0, 0, 1)), mass=1.0, inertia=np.eye(3))
    q = (3 * TIMES + np.sin(TIMES))[:, None]
    wrapped = recording(builder.build(), _log(TIMES, np.mod(q + np.pi, 2 * np.pi) - np.pi, tau=q), cutoff=5.0)
    plain = recording(builder.build(), _log(TIMES, q, tau=q), cutoff=5.0)
    # The same but for the rounding of angles, which the second differences enlarge.
    assert_allclose(wrapped.q, plain.q, atol=1e-12)
    assert_allclose(wrapped.a, plain.a, atol=1e-7)


def _written(path, dataset, joint="joint1"):
    columns = {"time": dataset["time"].values} | {f"{name}_{joint}": x.values[:, 0] for name, x in dataset.items()}
    np.savetxt(path, np.column_stack([*columns.values()]), "%.9g", ",", header=",".join(columns), comments="")


@pytest.mark.slow
def test_the_command_takes_currents_and_a_log_with_a_payload(tmp_path, monkeypatch, capsys):
    """In degrees, of a pendulum whose bob is 0.2 kg heavier than is believed, and by 1 kg more in the second log."""
    monkeypatch.chdir(tmp_path)
    believed = jdyn.load("pendulum")
    loaded = dataclasses.replace(believed, inertias=jax.tree.map(lambda x: 2 * x, believed.inertias))
    jdyn.save_urdf(loaded, "loaded.urdf")
    rng = np.random.default_rng(0)
    q = np.sin(2 * TIMES) + 0.5 * np.cos(3 * TIMES)
    a = -4 * np.sin(2 * TIMES) - 4.5 * np.cos(3 * TIMES)
    for mass, name in ((1.2, "log.csv"), (2.2, "loaded.csv"), (1.2, "other.csv")):
        tau = mass * (a / 3 + 9.81 / 2 * np.sin(q)) + 0.02 * rng.normal(size=q.shape)
        _written(name, _log(TIMES, np.rad2deg(q)[:, None], i=tau[:, None] / 0.7))
    words = ["identify", "log.csv", "pendulum", "--loaded", "loaded.csv", "loaded.urdf", "--held-out", "other.csv"]
    assert main([*words, "--parts", "inertias", "--degrees", "--cutoff", "5", "--report", "fit.html"]) == 0
    out = capsys.readouterr().out
    (row,) = re.findall(r"gain:joint1 +(\S+) N m/A +(\S+) to (\S+)", out)
    gain, low, high = map(float, row)
    assert low < 0.7 < high and high - low < 0.02 and low < gain < high
    (row,) = re.findall(r"body:link1\.mz +-0\.5 +(\S+) ", out)
    assert float(row) == pytest.approx(-0.6, abs=0.01)
    assert "held-out log: 2001 samples" in out and "loaded log 1: 2001 samples" in out
    page = (tmp_path / "fit.html").read_text()
    assert "gain:joint1" in page and "held-out log: 2001 samples" in page
    # Without the payload, the scale of currents and that of masses are one.
    assert main(["identify", "log.csv", "pendulum", "--parts", "inertias", "--degrees"]) == 1
    assert "gains need a force that is known" in capsys.readouterr().err


@pytest.mark.slow
def test_a_page_shows_names_of_files_as_they_are(tmp_path):
    """Neither as HTML nor as formulas."""
    builder = jdyn.Builder("<i>rod</i>")
    builder.add_link(
        "link&",
        jdyn.Revolute((0, 1, 0)),
        joint_name="<script>$x_1$",
        mass=1.0,
        com=(0, 0, -0.5),
        inertia=np.eye(3) / 12,
    )
    log = _pendulum(0.02)
    found = identify_log(builder.build(), log, parts=["inertias"], cutoff=5.0)
    path = tmp_path / "fit.html"
    save_report(found, path)
    text = path.read_text()
    assert "<script" not in text and "&lt;script&gt;$x_1$" in text and "&lt;i&gt;rod&lt;/i&gt;" in text
    assert "link&amp;.Iyy" in text
    # It opens alone.
    assert (
        "http" not in text.replace("http-equiv", "")
        and text.count("<img") == text.count('src="data:image/png;base64,') == 3
    )
    for said in ("condition number", "delay", "4 times" if found.band is None else "Butterworth", "not at all"):
        assert said in text
