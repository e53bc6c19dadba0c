"""Measured motions: accelerations against closed forms, and files as they come."""

import re

import jax
import numpy as np
import pytest
import xarray
from numpy.testing import assert_allclose

import jdyn
from jdyn.cli import main
from jdyn.identification import accelerations, measurement, read_log
from jdyn.identification.measurement import in_radians
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


@pytest.mark.slow
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
    with pytest.raises(ValueError, match=r"increasing numbers, got 5\.98 after 6\.0 at sample 1"):
        measurement(ARM, dataset.isel(time=slice(None, None, -1)))
    with pytest.raises(ValueError, match="v: expected finite numbers, got others at sample 7"):
        accelerations(TIMES, np.where(np.arange(301) == 7, np.nan, 0.0)[:, None])
    with pytest.raises(ValueError, match="v: expected at least 5 rows, got 4"):
        accelerations(TIMES[:4], np.zeros((4, 2)))


def _written(path, dataset, separator, parts):
    """As people log: a column a joint, in any order, and others beside them."""
    columns = {"time": dataset["time"].values, "comment": ["well"] * dataset.sizes["time"]}
    for joint in ("elbow", "shoulder"):
        for name in parts:
            along = {dataset[name].dims[1]: joint}
            columns[f"{name}_{joint}"] = dataset[name].sel(along).values
    lines = [columns, *zip(*columns.values(), strict=True)]
    path.write_text("\n".join(separator.join(map(str, line)) for line in lines), encoding="utf-8-sig")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_files_of_comma_separated_values_are_read(dataset, tmp_path, separator):
    path = tmp_path / "log.csv"
    _written(path, dataset, separator, ("tau", "a", "v", "q"))
    for name, found in zip(("q", "v", "a", "tau"), measurement(ARM, read_log(path)), strict=True):
        assert_allclose(found, dataset[name].values, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a line of column names and lines of numbers, got 0 lines"),
        ("t,pos\n1,2", r"expected columns named time, q_JOINT, v_JOINT and tau_JOINT, and maybe a_JOINT, got t, pos"),
        ("time,q_elbow\n0,1\n1,one\n", r"line 3: expected a number as q_elbow, got 'one'"),
        ("time,q_elbow\n0,1\n1\n", r"line 3: expected 2 numbers, one a column, got 1"),
        ("time,q_elbow,q_elbow\n0,1,1\n", r"expected each column once, got q_elbow several times"),
        ("time,q_a,v_a,tau_b\n0,1,1,1\n", r"expected v, tau and a of the same joints, one lacks a, b"),
        (f"time,q_elbow,note\n0,1,{'x' * 200_000}\n", r"log.csv, line 2: field larger than field limit"),
        (f"time,q_elbow\n0,1\n\n1,{'1' * 200_000}\n", r"log.csv, line 4: field larger than field limit"),
        (b"\xff\xfe", r"expected a NetCDF file, or comma-separated values as text"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, text, message):
    path = tmp_path / "log.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        read_log(path)


def _lines(*lines):
    return "\n".join(lines)


def test_headings_may_have_units_and_fields_may_be_empty(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(_lines("time,q_a [deg],q[b] (deg),i_a [A],i_b,index", "0,90,45,1,2,x", "1,,30,3,4,y"))
    found = read_log(path)
    assert found["q"].attrs == {"units": "deg"} and found["i"].attrs == {"units": "A"}
    assert_allclose(found["q"].values, [[90, 45], [np.nan, 30]])
    assert list(found["q_coordinate"].values) == ["a", "b"] and set(found.data_vars) == {"q", "i"}


@pytest.mark.parametrize(
    ("heading", "message"),
    [
        ("time,q_a [deg],q_b [rad]", "expected columns of q in one unit, got deg, rad"),
        ("time,q_a [grad],q_b", r"expected one of the units rad, m, deg, .* of q_a, got 'grad'"),
        ("time,q_a,tau_a [mNm]", "expected one of the units Nm, N of tau_a, got 'mNm'"),
    ],
)
def test_units_that_are_not_known_are_refused(tmp_path, heading, message):
    path = tmp_path / "log.csv"
    path.write_text(_lines(heading, "0,1,2"))
    with pytest.raises(ValueError, match=message):
        read_log(path)


def test_degrees_are_converted_when_that_is_asked_for_alone():
    arm = ARM.with_joint("shoulder", lower=-2.0, upper=2.0).with_joint("elbow", lower=-2.0, upper=2.0)
    t = np.linspace(0, 1, 11)
    q = np.stack([np.sin(t), np.cos(t)], axis=1)
    dataset = xarray.Dataset({"q": (("time", "q_coordinate"), np.rad2deg(q))}, {"time": t})
    with pytest.raises(ValueError, match=r"q of shoulder is beyond the limits by 46\.2 rad, and within them as"):
        in_radians(arm, dataset)
    assert_allclose(in_radians(arm, dataset, degrees=True)["q"].values, q, rtol=1e-14)
    said = dataset.assign(q=dataset["q"].assign_attrs(units="deg"))
    with pytest.raises(ValueError, match="q is in deg; say that angles are in degrees"):
        in_radians(arm, said)
    assert_allclose(in_radians(arm, said, degrees=True)["q"].values, q, rtol=1e-14)
    with pytest.raises(ValueError, match="expected q in degrees, got rad"):
        in_radians(arm, dataset.assign(q=dataset["q"].assign_attrs(units="rad")), degrees=True)
    # Beyond limits as radians and as degrees, it is what it is.
    assert in_radians(arm, dataset * 10).equals(dataset * 10)


def test_a_model_may_be_a_part_of_what_was_measured(dataset):
    more = dataset.pad(v_coordinate=(0, 1), q_coordinate=(1, 0))
    more = more.assign_coords(
        v_coordinate=["shoulder", "elbow", "finger"], q_coordinate=["finger", "shoulder", "elbow"]
    )
    for name, found in zip(("q", "v", "a", "tau"), measurement(ARM, more), strict=True):
        assert_allclose(found, dataset[name].values)


@pytest.mark.slow
def test_a_robot_at_rest_without_forces_tells_nothing():
    still = np.zeros((40, 2))
    with pytest.raises(ValueError, match="tau: expected forces that tell something, got zeros"):
        jdyn.identify(jdyn.load("double_pendulum"), still, still, still, still)


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
