"""Sweeps that are written down: what they mean, and how their problems are named."""

import numpy as np
import pytest

import jdyn
from jdyn.io.toml import Table

pytestmark = pytest.mark.fast_compile

TEXT = """
robot = "double_pendulum"
horizon = 0.2  # [s]
outputs = ["residual", "final_error", "peak_effort", "peak_torque", "peak_speed", "q", "v", "steps"]

[motion]
q0 = [0.1, 0.2]
v0 = [0.5, 0.0]
target = [0.3, -0.1]

[controller]
kd = 10.0

[design]
kind = "sobol"
lanes = 2
seed = 3

[design.parameters]
"controller.kp" = { low = 50.0, high = 200.0, scale = "log" }
payload = { of = "body:lower.mass", by = "plus", low = 0.0, high = 2.0 }
gravity = { by = "times", low = 0.1, high = 1.0 }
"joint:elbow.damping" = { low = 0.0, high = 1.0 }
"v0:elbow" = { low = -1.0, high = 1.0 }
rtol = { low = 1e-9, high = 1e-8 }
"""


def names(text):
    """With the names that the robot has."""
    model = jdyn.load("double_pendulum")
    return text.replace("lower", model.body_names[1]).replace("elbow", model.joint_names[1])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("spec") / "spec.toml"
    path.write_text(names(TEXT))
    return path


@pytest.mark.slow
def test_a_lane_is_the_simulation_that_the_spec_describes(written, tmp_path):
    spec = jdyn.Spec.read(written)
    assert spec.design == jdyn.designs.Sobol(2, seed=3, **spec.design.intervals)
    dataset = spec.sweep(store=tmp_path / "s", progress=False).isel(lane=1).load()
    p = {name: float(dataset[name]) for name in spec.design.values}
    plain = jdyn.load("double_pendulum")
    body, joint = plain.body_names[1], plain.joint_names[1]
    model = plain.with_body(body, mass=plain.inertias.mass[1] + p["payload"]).with_gravity(plain.gravity * p["gravity"])
    model = model.with_joint(joint, damping=p[f"joint:{joint}.damping"])
    q0, v0, target = np.array([0.1, 0.2]), np.array([0.5, p[f"v0:{joint}"]]), np.array([0.3, -0.1])
    inertia = np.diag(jdyn.mass_matrix(plain, q0))
    gains = {"kp": p["controller.kp"] * inertia, "kd": 10 * inertia}
    controller = jdyn.PD(plain, target, **gains) + jdyn.GravityCompensation(plain)
    motion = jdyn.simulate(model, q0, v0, 0.2, controller=controller)
    motion_q, motion_v = np.asarray(motion.q), np.asarray(motion.v)
    # Both to their tolerances, 1e-6 and less.
    np.testing.assert_allclose(dataset["q"], motion_q, atol=1e-5)
    np.testing.assert_allclose(dataset["v"], motion_v, atol=1e-4)
    distance = np.linalg.norm(motion_q - target, axis=1)
    np.testing.assert_allclose(dataset["final_error"], distance[-1], rtol=1e-4)
    np.testing.assert_allclose(dataset["residual"], distance[75:].max(), rtol=1e-4)
    torques = np.stack([controller(t, q, v) for t, q, v in zip(motion.ts, motion.q, motion.v, strict=True)])
    np.testing.assert_allclose(dataset["peak_torque"], np.abs(torques).max(0), rtol=1e-3)
    np.testing.assert_allclose(dataset["peak_speed"], np.abs(motion_v).max(0), rtol=1e-3)
    assert dataset["payload"].attrs == {"units": "kg", "long_name": f"body:{body}.mass"}
    again = jdyn.replay(tmp_path / "s", 1)
    # A lane alone rounds another way, and may take other steps.
    np.testing.assert_allclose(again.motion.q, dataset["q"], atol=1e-6)
    assert jdyn.replay(tmp_path / "s", 1, lambda p: float(p["payload"])) == p["payload"]
    assert dataset[f"v0:{joint}"].attrs["units"] == "rad/s or m/s"


def test_a_sweep_of_a_function_is_replayed_by_it(tmp_path):
    design = jdyn.designs.Samples(x=[[1.0, 2.0], [3.0, 4.0]]) * jdyn.designs.Grid(y=[10.0, 20.0])
    jdyn.sweep(lambda p: {"z": p["x"] * p["y"]}, design, store=tmp_path / "s", progress=False)
    np.testing.assert_array_equal(jdyn.replay(tmp_path / "s", 3, lambda p: p["x"] * p["y"]), [60, 80])
    with pytest.raises(ValueError, match=r"sweep of the function .*lambda.* give the function as fn"):
        jdyn.replay(tmp_path / "s", 3)
    with pytest.raises(ValueError, match=r"of the function .* simulate a lane .* and give jdyn\.view its motion"):
        jdyn.view(store=tmp_path / "s")
    with pytest.raises(ValueError, match="expected a lane from 0 to 3, got 4"):
        jdyn.replay(tmp_path / "s", 4, lambda p: p)
    dataset = jdyn.open_sweep(tmp_path / "s")
    assert dataset["z"].dims == ("sample", "y", "z_0")
    np.testing.assert_array_equal(dataset["z"].sel(y=20.0), [[20, 40], [60, 80]])
    np.testing.assert_array_equal(dataset["x"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(dataset["y"], [10, 20])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("horizon = 0.2", "horizon = 0", r"spec.toml:3: horizon: expected a positive number, got 0"),
        ("horizon = 0.2", "horizon", r"spec.toml: not a TOML file: .* line 3"),
        ("horizon = 0.2", "horizn = 0.2", r"spec.toml:1: horizon: expected an entry, there is none"),
        (
            '"residual", ',
            '"residul", ',
            r"spec.toml:4: outputs: there is no output 'residul'; there are residual, final",
        ),
        (
            "kd = 10.0",
            "kdd = 10.0",
            r"spec.toml:12: controller.kdd: there is no such entry here; there are kind, kp, kd",
        ),
        ("q0 = [0.1, 0.2]", "q0 = [0.1]", r"spec.toml:6: motion: q0: expected 2 numbers for 'double_pendulum', got 1"),
        (
            '"sobol"',
            '"sobo"',
            r"spec.toml:15: design.kind: expected 'grid' or 'latin_hypercube' or 'sobol', got 'sobo'",
        ),
        ("lanes = 2", "lanes = 3", r"spec.toml:19: design.parameters: Sobol: expected a power of 2 lanes, got 3"),
        ("lanes = 2", "", r"spec.toml:14: design.lanes: expected an entry"),
        ("elbow.damping", "elbow.dampin", r"spec.toml:23: .*there is no number called .*; is it 'joint:.*damping'"),
        ('by = "plus"', 'by = "adding"', r"spec.toml:21: design.parameters.payload.by: expected 'is' or 'plus'"),
        ("low = -1.0, high", "low = 2.0, high", r"design.parameters: Sobol parameter 'v0:.*low < high"),
        ('"double_pendulum"', "7", r"spec.toml:2: robot: expected text, got 7"),
        ("{ low = 1e-9, high = 1e-8 }", "{ low = -1.0, high = 1.0 }", r"parameters: rtol: expected positive numbers"),
        ("rtol = {", 'mass = { of = "body:lower.mass", low = 1.0, high = 2.0 }\nrtol = {', r"'payload' changes 'body"),
        ("rtol = {", "n = {", r"spec.toml:25: design.parameters.n.of: there is no number called 'n'"),
        ("rtol = {", 'seed = { of = "rtol",', r"'seed' says something of the design, call the parameter otherwise"),
        (
            'by = "times", low',
            "low",
            r"spec.toml:22: design.parameters.gravity.by: .* has shape \(3,\), which a number can",
        ),
        (
            "horizon = 0.2",
            "rows = 1\nhorizon = 0.2",
            r"spec.toml:3: rows: expected at least 2, the start and the end, got 1",
        ),
        ("horizon = 0.2", "horizon = inf", r"spec.toml:3: horizon: expected a finite number, got inf"),
        ("{ low = 1e-9, high = 1e-8 }", "1e-8", r"spec.toml:25: design.parameters.rtol: expected a table, got 1e-08"),
    ],
)
def test_problems_are_named_by_line_and_reason(tmp_path, old, new, message):
    assert old in TEXT
    (tmp_path / "spec.toml").write_text(names(TEXT.replace(old, new)))
    with pytest.raises(ValueError, match=message):
        jdyn.Spec.read(tmp_path / "spec.toml")


def test_all_problems_are_named_at_once(tmp_path):
    """An unknown entry stands beside the one that it may have been meant to be."""
    text = TEXT.replace("horizon", "horizn").replace("kd = 10.0", "kdd = 10.0").replace("lanes = 2", "lanes = 0")
    (tmp_path / "spec.toml").write_text(names(text.replace("low = 0.0, high = 2.0", "low = 0.0, hi = 2.0")))
    with pytest.raises(ValueError, match="6 problems") as error:
        jdyn.Spec.read(tmp_path / "spec.toml")
    lines = str(error.value).splitlines()
    assert lines[0] == f"{tmp_path / 'spec.toml'}: 6 problems" and len(lines) == 7
    for words in (
        ":1: horizon: expected an entry", ":3: horizn: there is no such entry", ":12: controller.kdd: there is no",
        ":16: design.lanes: expected a whole number of at least 1, got 0",
        ":21: design.parameters.payload.high: expected an entry",
        ":21: design.parameters.payload.hi: there is no such entry here; there are of, by, units, long_name, low, high",
    ):  # fmt: skip
        assert words in str(error.value)


def test_what_the_robot_does_not_have_is_named_at_once(tmp_path):
    text = TEXT.replace("elbow.damping", "elbow.dampin").replace('by = "times", low', "low")
    (tmp_path / "spec.toml").write_text(names(text))
    with pytest.raises(ValueError, match=r"2 problems\n.*gravity.by: .*\n.*there is no number called"):
        jdyn.Spec.read(tmp_path / "spec.toml")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"rows": 10**9}, "rows: expected at most 100000, got 1000000000"),
        ({"robot": "/dev/zero"}, "/dev/zero: expected a file, found a device"),
        ({"robot": "x" * 100_000}, "robot: expected a path, got"),
        ({"design": {"parameters": {"rtol": {"low": 1.0, "high": 2.0, "count": 10**12}}}}, "count: expected at most"),
        ({"y" * 100_000: 1}, "there is no such entry"),
    ],
)
def test_what_no_memory_holds_is_refused_in_a_few_words(entries, message):
    with pytest.raises((ValueError, OSError), match=message) as error:
        jdyn.Spec.of({"robot": "pendulum", "horizon": 1.0} | entries, "a spec")
    assert len(str(error.value)) < 1000


def test_lines_are_found_in_tables_of_every_form(tmp_path):
    (tmp_path / "a.toml").write_text('x = 1\n# x = 2\n[a.b]\nc = 1\n\n[a."d.e"] # [f]\n"g h".i = 2\nj = { k = 3 }\n')
    table = Table.read(tmp_path / "a.toml")
    for keys, line in (
        (("x",), 1), (("a", "b"), 3), (("a", "b", "c"), 4), (("a", "d.e", "g h", "i"), 7), (("a", "d.e", "j", "k"), 8),
        (("a", "d.e", "z"), 6), (("z",), 1),
    ):  # fmt: skip
        assert table.where(keys).endswith(f"a.toml:{line}"), keys


def test_a_long_line_takes_no_longer(tmp_path):
    (tmp_path / "a.toml").write_text(f"x = [\n  {'1' * 60}\n]\n")
    assert Table.read(tmp_path / "a.toml").where(("x",)).endswith("a.toml:1")


LEG = """<robot name="leg"><link name="base"/>
  <link name="foot">
    <inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision name="sole"><geometry><sphere radius="0.1"/></geometry></collision></link>
  <joint name="rail" type="prismatic"><parent link="base"/><child link="foot"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1e4" velocity="1e4"/></joint></robot>"""


@pytest.mark.slow
def test_what_touches_and_stops_is_part_of_a_spec(tmp_path):
    """A foot that is driven into the ground, by how stiff that is, and against the end of its rail."""
    (tmp_path / "leg.urdf").write_text(LEG)
    text = """
robot = "leg.urdf"
horizon = 2.0
outputs = ["q"]
ground = -0.5
contact = "compliant"
limits = true
motion = { target = [TARGET] }
controller = { kp = 100.0, kd = 20.0 }
[design.parameters]
"WHAT" = { values = VALUES }
"""
    ends = {}
    for target, what, values in (
        ("-0.9", "contact.material.stiffness", "[900.0, 1e4]"), ("3.0", "joint_limits.frequency", "[30.0, 100.0]")
    ):  # fmt: skip
        (tmp_path / "spec.toml").write_text(
            text.replace("TARGET", target).replace("WHAT", what).replace("VALUES", values)
        )
        ends[what] = jdyn.Spec.read(tmp_path / "spec.toml").sweep(progress=False)["q"].values[:, -1, 0]
    # Gains are for an inertia of 1; foot and ground give way in series.
    for stiffness, down, up in zip((900.0, 1e4), *ends.values(), strict=True):
        np.testing.assert_allclose(down, (-0.9 * 100 - 0.4 * stiffness / 2) / (100 + stiffness / 2), atol=2e-3)
        np.testing.assert_allclose(up, (3.0 * 100 + 1.0 * stiffness) / (100 + stiffness), atol=2e-3)
    (tmp_path / "leg.urdf").write_text(LEG.replace("sphere radius", "sphere  radius").replace("collision", "visual"))
    with pytest.raises(ValueError, match=r"spec.toml:6: contact: no two collision shapes of 'leg' may touch"):
        jdyn.Spec.read(tmp_path / "spec.toml")


@pytest.mark.slow
def test_the_example_that_ships_runs():
    """As `jdyn sweep notebooks/sweep.toml` does."""
    import pathlib

    spec = jdyn.Spec.read(pathlib.Path(__file__).parents[2] / "notebooks" / "sweep.toml")
    dataset = spec.sweep(progress=False)
    assert np.all(dataset["result"] == jdyn.Result.success)
