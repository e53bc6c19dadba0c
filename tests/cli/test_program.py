"""The command line, as a person meets it."""

import re
import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from PIL import Image

import jdyn
from jdyn.cli import main
from jdyn.sweep import ControlledMove

pytestmark = pytest.mark.fast_compile

SIMPLE = """<robot name="two">
  <link name="base"/>
  <link name="arm"><inertial><mass value="2"/><origin xyz="0 0 -0.5"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="2" velocity="3" effort="40"/></joint>
</robot>"""
BROKEN = SIMPLE.replace('value="2"', 'value="-2"')
FLAT = SIMPLE.replace('izz="0.1"', 'izz="0.5"')


@pytest.fixture(autouse=True)
def as_a_person_has_it(tmp_path, monkeypatch):
    """A folder of one's own, and JAX as it comes."""
    monkeypatch.chdir(tmp_path)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.slow
def test_info_says_what_a_robot_is_made_of(capsys):
    assert main(["info", "panda"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^panda: \d bodies, \d degrees of freedom", out)
    assert all(name in out for name in jdyn.load("panda").joint_names)
    condition = float(re.search(r"mass matrix: (\S+) in the neutral", out).group(1))
    model = jdyn.load("panda")
    assert condition == pytest.approx(np.linalg.cond(jdyn.mass_matrix(model, model.neutral())), rel=1e-3)
    assert "warnings: none" in out


def test_info_lists_warnings_and_limits_of_a_file(tmp_path, capsys):
    (tmp_path / "two.urdf").write_text(FLAT)
    assert main(["info", "two.urdf"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"arm +world +hinge +revolute +2 +-1 +2 +3 +40$", out, re.MULTILINE)
    assert "exceeds the sum of the other two" in out.partition("warnings:")[2]


def test_info_says_what_is_loaded_besides_the_model(tmp_path, capsys):
    (tmp_path / "arm.xml").write_text("""<mujoco><worldbody>
      <body><joint name="hinge" axis="0 1 0" range="-90 90"/><geom type="capsule" size=".05" fromto="0 0 0 0 0 -.5"/>
        <site name="tip"/></body></worldbody>
      <actuator><position name="servo" joint="hinge"/><general name="odd" joint="hinge" gaintype="user"/></actuator>
      <sensor><gyro name="spin" site="tip"/></sensor><keyframe><key name="home" qpos="1"/></keyframe></mujoco>""")
    assert main(["info", "arm.xml"]) == 0
    parts, _, warned = capsys.readouterr().out.partition("jdyn.load_system has besides:")[2].partition("warnings:")
    lines = ["actuators: servo", "sensors: spin", "configurations: qpos0, home", "ends of joints' ranges"]
    assert parts.strip().splitlines() == [lines[0], *("  " + line for line in lines[1:])]
    # What is loaded is none of what is not simulated.
    assert "actuators odd (user)" in warned and not any(name in warned for name in ("servo", "spin"))


@pytest.mark.slow
def test_simulate_keeps_energy_and_draws(tmp_path, capsys):
    words = ["simulate", "pendulum", "--t1", "1", "--q0", "1.5", "--plot", "motion.png", "--movie", "motion.gif"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("compiling ...\n")
    compiling, running = re.search(r"pendulum: compiled in (\S+) s, 1 s of motion in (\S+) s; ", out).groups()
    assert float(compiling) > float(running) > 0
    start, end = map(float, re.search(r"energy: (\S+) J at the start, (\S+) J at the end", out).groups())
    assert start == pytest.approx(end, abs=1e-4)
    assert (tmp_path / "motion.png").read_bytes().startswith(b"\x89PNG")
    with Image.open(tmp_path / "motion.gif") as movie:
        assert movie.n_frames == 31 and "motion.gif, 1.03 s" in out


@pytest.mark.slow
def test_joints_stop_at_the_ends_of_their_ranges(tmp_path, capsys):
    builder = jdyn.Builder("lift")
    builder.add_link("cage", jdyn.Prismatic((0, 0, 1)), mass=2.0, inertia=0.1, lower=-0.1, upper=0.3)
    jdyn.save_urdf(builder.build(), tmp_path / "lift.urdf")
    ends = []
    for more in ([], ["--no-limits"]):
        assert main(["simulate", "lift.urdf", "--t1", "1", "--q0", "0.2", *more]) == 0
        ends.append(float(re.search(r"q\(t1\) = (\S+)", capsys.readouterr().out).group(1)))
    # A spring of 100 rad/s gives way by g / 100² under the weight, and by some more where it begins.
    assert -0.105 < ends[0] < -0.09 and ends[1] == pytest.approx(0.2 - 9.81 / 2, abs=1e-3)


LIFT = """<robot name="lift">
  <link name="base"/>
  <link name="ball">
    <inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
  <joint name="rail" type="prismatic"><parent link="base"/><child link="ball"/><axis xyz="0 0 1"/>
    <limit lower="-9" upper="9" velocity="3" effort="40"/></joint>
</robot>"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "height"),
    [(["--ground"], 0.2), (["--ground", "-0.1"], 0.0), (["--ground", "-0.1", "--contact", "convex"], 0.0)],
)
def test_robots_rest_on_the_ground(words, height, tmp_path, capsys):
    """Under the start, or at a height. Two surfaces of 2e5 N/m give way by 2e-4 m under 2 kg."""
    (tmp_path / "lift.urdf").write_text(LIFT)
    assert main(["simulate", "lift.urdf", "--t1", "2", "--q0", "0.2", *words]) == 0
    end = float(re.search(r"q\(t1\) = (\S+)", capsys.readouterr().out).group(1))
    assert end == pytest.approx(height - 2 * 9.81 / 1e5, abs=6e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_floor_of_a_file_is_touched_unless_words_say_so(tmp_path, capsys):
    """A ball of 1 kg that falls from its own height; 2 s later it is at rest at r, less the depth of m g."""
    (tmp_path / "scene.xml").write_text("""<mujoco><worldbody><geom name="floor" type="plane" size="9 9 1"/>
      <body pos="0 0 0.2"><freejoint/><geom size="0.1" mass="1"/></body>
      <body pos="5 0 1"><joint name="hinge" range="-1 1"/><geom size="0.1" contype="0" conaffinity="0"/></body>
    </worldbody></mujoco>""")
    ends, said = [], []
    for words in (["--contact", "none"], []):
        assert main(["simulate", "scene.xml", "--t1", "2", *words]) == 0
        captured = capsys.readouterr()
        ends.append(float(re.search(r"q\(t1\) = \S+ \S+ (\S+)", captured.out).group(1)))
        said.append(captured.err)
    np.testing.assert_allclose(ends, [0.2 - 9.81 * 2, 0.1], atol=1e-2)
    assert all("stops" not in each for each in said)


@pytest.mark.slow
def test_servos_of_a_file_get_commands(tmp_path, capsys):
    (tmp_path / "arm.xml").write_text("""<mujoco><option gravity="0 0 0"/><worldbody><body>
      <joint name="hinge" axis="0 1 0" damping="1"/><geom type="capsule" size=".05" fromto="0 0 0 0 0 -.5"/></body>
      </worldbody><actuator><position joint="hinge" kp="50" kv="5"/></actuator></mujoco>""")
    ends, said = [], []
    for words in ([], ["--ctrl", "0.7"]):
        assert main(["simulate", "arm.xml", "--t1", "3", *words]) == 0
        out = capsys.readouterr().out
        ends.append(float(re.search(r"q\(t1\) = (\S+)", out).group(1)))
        said.append("no controller, so the commands of actuator0 are zero; --ctrl gives others\n" in out)
    np.testing.assert_allclose(ends, [0, 0.7], atol=1e-3)
    assert said == [True, False]
    assert main(["simulate", "pendulum", "--ctrl", "1"]) == 1
    assert "--ctrl: 'pendulum' has no actuators" in capsys.readouterr().err


@pytest.mark.slow
def test_sweep_writes_a_labelled_dataset_and_a_picture(tmp_path, capsys):
    words = ["sweep", "double_pendulum", "--lanes", "9", "--t1", "0.2", "--payload", "0", "1", "--output", "out"]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert captured.err == "", "progress is for terminals"
    assert "best lanes:" in captured.out and "lanes/s" in captured.out and str(tmp_path / "out.nc") in captured.out
    with xarray.open_dataset(tmp_path / "out.nc", engine="scipy") as dataset:
        assert dict(dataset.sizes) == {"payload": 3, "kp": 3}
        assert dataset["payload"].attrs["units"] == "kg"
        assert np.all(dataset["result"] == 0) and np.all(np.isfinite(dataset["residual"]))
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_sweep_without_a_lane_that_succeeds_says_so(monkeypatch, capsys):
    def one_step(self, system, kp, kd, t1, **options):
        return jdyn.simulate(system.model, self.q0, self.v0, t1, max_steps=1, throw=False)

    monkeypatch.setattr(ControlledMove, "run", one_step)
    assert main(["sweep", "double_pendulum", "--lanes", "4"]) == 1
    assert "0 lanes succeeded, 4 failed (4 max_steps)" in capsys.readouterr().out


SPEC = """
robot = "two.urdf"
horizon = 0.1
outputs = ["final_error", "q"]
rows = 3

[design.parameters]
"q0:hinge" = { values = [0.0, 0.5, 1.0] }
damping = { of = "joint:hinge.damping", low = 1.0, high = 100.0, count = 2, scale = "log" }
"""


@pytest.mark.slow
def test_a_spec_is_swept_in_parts_and_its_lanes_come_again(tmp_path, capsys):
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "two.urdf").write_text(SIMPLE)
    (tmp_path / "robots" / "spec.toml").write_text(SPEC)
    words = ["sweep", "robots/spec.toml", "--store", "kept", "--chunk", "2"]
    assert main([*words, "--shard", "2/2"]) == 0
    assert "2 lanes succeeded, 0 failed, 4 have not run" in capsys.readouterr().out
    assert main([*words, "--shard", "1/2"]) == 0
    assert "6 lanes succeeded, 0 failed\n" in capsys.readouterr().out
    assert main(words) == 0
    assert "6 lanes were done before\n" in capsys.readouterr().out
    dataset = jdyn.open_sweep("kept")
    assert dict(dataset.sizes) == {"q0:hinge": 3, "damping": 2, "q_0": 3, "q_1": 1}
    np.testing.assert_allclose(dataset["damping"], [1, 100])
    assert dataset["damping"].attrs == {"units": "N m s/rad or N s/m", "long_name": "joint:hinge.damping"}
    np.testing.assert_allclose(dataset["q"][:, :, 0, 0], [[0.0] * 2, [0.5] * 2, [1.0] * 2], atol=1e-12)
    assert main(["replay", "kept", "--lane", "3", "--plot", "lane.png", "--movie", "strip.png"]) == 0
    stored, again = re.search(r"^final_error +(\S+) +(\S+)$", capsys.readouterr().out, re.MULTILINE).groups()
    assert stored == again == f"{float(dataset['final_error'][1, 1]):.4g}"
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in ("lane.png", "strip.png"))
    assert main(["view", "kept", "--lane", "3", "--export", "lane.html"]) == 0
    assert (tmp_path / "lane.html").read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_view_ends_at_ctrl_c():
    words = [sys.executable, "-m", "jdyn", "view", "pendulum", "--port", "0", "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = r"http://127.0.0.1:\d+/[\w-]{43}/ shows pendulum; Ctrl-C ends it\n"
            assert re.fullmatch(address, process.stdout.readline())
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.slow
@pytest.mark.exhaustive
def test_tune_lowers_the_loss_and_draws(tmp_path, capsys):
    assert main(["tune", "pendulum", "--steps", "8", "--t1", "1"]) == 0
    before, after = map(float, re.search(r"loss (\S+) before, (\S+) after", capsys.readouterr().out).groups())
    assert after < 0.7 * before
    assert (tmp_path / "tune-pendulum.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["info", "pnda"], "did you mean 'panda'?"),
        (["info", "nowhere.urdf"], "nowhere.urdf"),
        (["info", "broken.urdf"], "mass"),
        (["simulate", "pendulum", "--q0", "-1", "2"], "q: expected shape (1,)"),
        (["simulate", "pendulum", "--ground"], "--ground: 'pendulum' has no shapes that could touch it"),
        (["view", "pendulum", "--ground", "0"], "--ground: 'pendulum' has no shapes that could touch it"),
        (["simulate", "pendulum", "--contact", "convex"], "'pendulum' has no collision shapes"),
        (["sweep", "quadruped"], "--fixed-base"),
        (["sweep", "pendulum", "--payload", "-1", "1"], "at least 0 kg"),
        (["sweep", "panda", "--body", "link9"], "no body is called 'link9'"),
        (["sweep", "spec.toml", "--lanes", "9"], "a spec says what --lanes would; write it there"),
        (["sweep", "nowhere.toml"], "nowhere.toml"),
        (["replay", "nowhere", "--lane", "0"], "nowhere"),
        (["view", "panda", "--lane", "3"], "--lane: expected the folder of a sweep's store, got 'panda'"),
        (["view", ".", "--t1", "3"], "--t1: lanes of . are as long as their sweep says"),
    ],
)
def test_errors_are_one_sentence_on_standard_error(words, message, tmp_path, capsys):
    (tmp_path / "broken.urdf").write_text(BROKEN)
    (tmp_path / "spec.toml").write_text(SPEC)
    assert main(words) == 1
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1].startswith("jdyn: ") or "broken.urdf" in captured.err
    assert message in captured.err and "Traceback" not in captured.err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["dance"],
        ["sweep", "--lanes", "0"],
        ["simulate", "pendulum", "--t1", "-1"],
        ["tune", "--plot", "no/such/folder.png"],
        ["tune", "--plot", "picture"],
        ["simulate", "panda", "--movie", "movie.avi"],
        ["sweep", "--output", "no/such/name"],
        ["sweep", "--seed", "99999999999"],
        ["sweep", "--shard", "3/2"],
        ["sweep", "--shard", "2"],
        ["replay", "kept", "--lane", "-1"],
        ["view", "panda", "--port", "70000"],
        ["view", "panda", "--look", "nice"],
        ["simulate", "quadruped", "--ground", "deep"],
        ["simulate", "quadruped", "--contact", "soft"],
    ],
)
def test_wrong_words_get_the_usage(words, capsys):
    with pytest.raises(SystemExit) as exit:
        main(words)
    assert exit.value.code == 2 and "usage: jdyn" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["info", "simulate", "sweep", "tune"])
def test_help_teaches(command, capsys):
    with pytest.raises(SystemExit) as exit:
        main([command, "--help"])
    out = capsys.readouterr().out
    assert exit.value.code == 0 and "panda" in out and "--dtype" in out


def test_the_module_is_the_program():
    run = subprocess.run([sys.executable, "-m", "jdyn", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"jdyn {jdyn.__version__}"


TUNE = """
robot = "pendulum"
horizon = 0.5
rows = 21

[motion]
target = [0.5]

[controller]
kp = 30.0
kd = 0.5

[tune]
steps = 6
risk = 0.5
[tune.loss]
tracking_error = 1.0
peak_torque = 1e-3

[design.parameters]
gravity = { by = "times", values = [0.5, 1.0] }
"""


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_spec_is_tuned_over_its_scenarios(tmp_path, capsys):
    (tmp_path / "tune.toml").write_text(TUNE)
    assert main(["tune", "tune.toml", "--checkpoint", "state"]) == 0
    out = capsys.readouterr().out
    before, after = map(float, re.search(r"loss (\S+) before, (\S+) after", out).groups())
    # The mean of the worst half of two is the worst, which is that with less gravity.
    spec = jdyn.Spec.read("tune.toml")
    with spec.precision():
        lanes = [spec.lane({"gravity": g}, {"kp": jnp.array([30.0]), "kd": jnp.array([0.5])}) for g in (0.5, 1.0)]
    errors = [jdyn.losses.tracking_error(lane.motion, [0.5]) for lane in lanes]
    assert before == pytest.approx(float(max(errors)), rel=1e-3) and after < 0.9 * before
    assert (tmp_path / "tune-pendulum.png").exists()
    # The same command goes on from there, which is the end.
    assert main(["tune", "tune.toml", "--checkpoint", "state"]) == 0
    assert f"{after:.4g} after" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "risk = 0.5",
            'risk = "best"',
            "tune.toml:15: tune.risk: expected 'mean', 'worst' or a share of the scenarios",
        ),
        ("risk = 0.5", "risk = 2.0", "tune.toml:15: tune.risk: CVaR: expected a share"),
        (
            "tracking_error = 1.0\npeak_torque = 1e-3",
            "effort = 0",
            "tune.toml:16: tune.loss: expected a weight that is not",
        ),
        ("peak_torque", "peak_torqe", "tune.toml:18: tune.loss.peak_torqe: there is no such entry here"),
        (
            "gravity = ",
            'more = { of = "controller.kp", values = [1.0] }\ngravity = ',
            "more: a gain that is tuned cannot",
        ),
    ],
)
def test_problems_of_a_tuning_are_named(old, new, message, tmp_path, capsys):
    assert old in TUNE
    (tmp_path / "tune.toml").write_text(TUNE.replace(old, new))
    assert main(["tune", "tune.toml"]) == 1
    assert message in capsys.readouterr().err
