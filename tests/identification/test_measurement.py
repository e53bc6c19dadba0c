"""Measured motions: accelerations against closed forms, and files as they come."""

import re

import jax
import numpy as np
import pytest
import xarray
from numpy.testing import assert_allclose

import jdyn
from jdyn.cli import main
from jdyn.identification import accelerations, measurement
from jdyn.model.build import FRICTION_SPEED
from tests.identification.arms import nominal_arm, planar_arm

pytestmark = pytest.mark.fast_compile

TIMES = np.linspace(0, 6, 301)


def _as_a_file_has_it(arm):
    """Files have neither rotors nor the speed at which friction is smooth."""
    for joint in arm.joint_names:
        arm = arm.with_joint(joint, armature=0.0, friction_speed=FRICTION_SPEED)
    return arm


ARM = _as_a_file_has_it(planar_arm())


def _dataset():
    """Two sines for each joint, of the arm, with the forces that they take."""
    rates = np.array([[1.3, 2.9], [1.7, 3.7]])
    t = TIMES[:, None, None]
    q, v, a = (x.sum(axis=2) for x in (np.sin(rates * t), rates * np.cos(rates * t), -(rates**2) * np.sin(rates * t)))
    tau = np.asarray(jax.vmap(lambda *x: jdyn.inverse_dynamics(ARM, *x))(q, v, a))
    rows = {"q": ("q_coordinate", q), "v": ("v_coordinate", v), "a": ("v_coordinate", a), "tau": ("v_coordinate", tau)}
    names = ["shoulder", "elbow"]
    return xarray.Dataset(
        {name: (("time", along), values) for name, (along, values) in rows.items()},
        {"time": TIMES, "q_coordinate": names, "v_coordinate": names},
    )


@pytest.fixture(scope="module")
def dataset():
    return _dataset()


def test_accelerations_of_noisy_velocities_are_those_of_the_motion():
    noise = 0.01
    v = np.sin(2 * TIMES) + noise * np.random.default_rng(0).normal(size=TIMES.shape)
    errors = accelerations(TIMES, v[:, None])[:, 0] - 2 * np.cos(2 * TIMES)
    inner = slice(15, -15)
    # Differences of neighbours would be wrong by noise / sqrt(2) over a step of 0.02 s: 0.35.
    assert np.std(errors[inner]) < 0.05
    plain = np.gradient(v, TIMES) - 2 * np.cos(2 * TIMES)
    assert np.std(plain[inner]) > 0.3
    # Of the same motion in another unit of time, the same, as nearly as the best smoothness is found.
    assert_allclose(accelerations(TIMES / 1000, v[:, None]) / 1000, accelerations(TIMES, v[:, None]), atol=1e-4)


def test_rows_come_in_the_order_of_the_model(dataset):
    shuffled = dataset.isel(v_coordinate=[1, 0]).transpose("v_coordinate", "time", "q_coordinate")
    for name, found in zip(("q", "v", "a", "tau"), measurement(ARM, shuffled), strict=True):
        assert_allclose(found, dataset[name].values)
    found = measurement(ARM, dataset.drop_vars("a")).a
    # A spline's slope is wrong by the order of h³ times a fourth derivative, more at the ends.
    assert_allclose(found[10:-10], dataset["a"].values[10:-10], atol=0.02**3 * 3.7**5 * 2)


def test_what_is_wrong_with_a_dataset_is_said(dataset):
    with pytest.raises(ValueError, match="and a if it is known; it lacks v, tau"):
        measurement(ARM, dataset.drop_vars(["v", "tau"]))
    with pytest.raises(ValueError, match="along time and v_coordinate, got time, q_coordinate"):
        measurement(ARM, dataset.assign(tau=dataset["q"]))
    with pytest.raises(ValueError, match="coordinates shoulder, elbow of 'arm' along v_coordinate, got 2: a, b"):
        measurement(ARM, dataset.assign_coords(v_coordinate=["a", "b"]))
    with pytest.raises(ValueError, match="coordinates shoulder, elbow of 'arm' along q_coordinate, got 1: shoulder"):
        measurement(ARM, dataset.isel(q_coordinate=[0]).drop_vars("q_coordinate"))
    more = dataset.drop_vars(["q_coordinate", "v_coordinate"]).pad(v_coordinate=(0, 1))
    with pytest.raises(ValueError, match="coordinates shoulder, elbow of 'arm' along v_coordinate, got 3"):
        measurement(ARM, more)
    with pytest.raises(ValueError, match="times: expected increasing numbers"):
        accelerations(TIMES[::-1], np.zeros((301, 2)))
    with pytest.raises(ValueError, match="v: expected finite numbers, got others at sample 7"):
        accelerations(TIMES, np.where(np.arange(301) == 7, np.nan, 0.0)[:, None])
    with pytest.raises(ValueError, match="v: expected at least 5 rows, got 4"):
        accelerations(TIMES[:4], np.zeros((4, 2)))


@pytest.mark.slow
def test_the_command_writes_the_identified_robot(dataset, tmp_path, monkeypatch, capsys):
    """From a file without accelerations, with a little noise, of a robot with a wrong mass and friction."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    noisy = dataset.drop_vars("a").assign(tau=dataset["tau"] + 0.05 * rng.normal(size=dataset["tau"].shape))
    noisy.to_netcdf("data.nc", engine="scipy")
    jdyn.save_urdf(_as_a_file_has_it(nominal_arm()), "arm.urdf")
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        assert main(["identify", "data.nc", "arm.urdf", "--parts", "inertias", "damping", "friction"]) == 0
    out = capsys.readouterr().out
    assert "arm: 301 samples, converged" in out
    (row,) = re.findall(r"joint:elbow\.damping +0\.3 +(\S+) +(\S+) to (\S+) +alone", out)
    estimate, low, high = map(float, row)
    assert low < estimate < high and low - 0.05 < 0.3 < high + 0.05
    found = jdyn.load("identified-arm.urdf")
    assert float(found.inertias.first_moment[1, 0]) == pytest.approx(0.2, abs=0.01)
    assert float(found.friction[0]) == pytest.approx(0.2, abs=0.05)
