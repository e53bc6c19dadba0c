"""The comparison with other libraries: its arithmetic, and one run of it."""

import argparse
import fractions
import functools
import json
import pathlib
import re
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from benchmarks import (
    contact_scenes,
    figures,
    files,
    frax_peer,
    gpu,
    main_job,
    operation_counts,
    peer_models,
    table,
    verdict,
    work,
)
from jdyn.contact import colliders, contact_points
from jdyn.execution.threads.kernel import on_threads
from jdyn.interop import MujocoMap

ROOT = pathlib.Path(__file__).parents[1]


def _row(library, seconds, **more):
    case = {"robot": "arm", "dtype": "float64", "quantity": "forward dynamics", "batch": 10, "device": "cpu"}
    return case | {"library": library, "cpu_s": seconds, "wall_s": [9.0] * len(seconds), "repeats": 3} | more


def test_ratios_are_to_the_best_of_the_jax_peers_and_to_each_compiled_one():
    rows = [
        _row("jdyn", [20.0, 10.0, 30.0]),
        _row("frax", [60.0, 60.0, 61.0]),
        _row("jaxsim", [40.0, 39.0, 99.0]),
        _row("pinocchio", [5.0, 5.0, 5.0]),
        _row("mujoco", [], error="no reason"),
    ]
    assert table.seconds(rows[0]) == 2.0
    assert table.ratios(rows) == {"best JAX peer": ("jaxsim", 2.0), "pinocchio": ("pinocchio", 0.25)}
    assert table.ratios(rows[1:]) == {}
    assert "no reason" in table.line(rows[-1], 2.0, None)
    assert "2.00 x jaxsim" in table.summary(rows)[1]


def test_the_roofline_is_the_slower_of_arithmetic_and_memory():
    peaks = {"flops_per_s": 100.0, "bytes_per_s": 10.0}
    assert table.fraction_of_roofline(_row("jdyn", [20.0] * 3, flops=200, bytes=100), peaks) == 0.5
    assert table.fraction_of_roofline(_row("jdyn", [20.0] * 3, flops=400, bytes=10), peaks) == 0.2
    assert table.fraction_of_roofline(_row("jdyn", [20.0] * 3, flops=None, bytes=10), peaks) is None


def test_operations_of_a_loop_are_those_of_all_its_turns():
    def turns(x):
        return jax.lax.scan(lambda x, _: (x @ x + 1, None), x, None, length=5)[0]

    x = jnp.ones((3, 3))
    counted = work.counted(turns, [x], jax.jit(turns).lower(x).compile())
    assert counted["flops"] == 5 * (2 * 27 + 9)
    assert counted["bytes"] == 2 * x.nbytes
    forever = jax.jit(lambda x: jax.lax.while_loop(lambda x: x[0, 0] < 9, lambda x: x + 1, x))
    assert work.counted(forever, [x], forever.lower(x).compile())["flops"] is None


def test_operations_of_a_kernel_are_those_of_all_its_lanes():
    def lane(x):
        return [jax.lax.fori_loop(0, 5, lambda _, x: 2 * x + 1, x)]

    def call(x):
        return on_threads(lane, jax.vmap(lane), 4, [True], [x])

    x = jnp.ones((4, 3))
    counted = work.counted(call, [x], jax.jit(call).lower(x).compile())
    assert counted["flops"] == 4 * 5 * (3 + 3)
    assert counted["bytes"] == 2 * x.nbytes


def test_the_polynomials_of_the_thesis_cross_where_it_says():
    """Section 3.4: the ABM takes less for n > 9, which holds for multiplications."""
    abm, crbm = operation_counts.THESIS.values()

    def of(kind):
        return [functools.partial(operation_counts.value, getattr(cost, kind)) for cost in (abm, crbm)]

    assert operation_counts.crossover(*of("multiplications"), 40) == 10
    # 300 n - 267 < n³/6 + 11.5 n² + 160 1/3 n - 109, with both sides at n = 9 and 10.
    assert [x(9) for x in of("multiplications")] == [2433, 2387]
    assert [x(10) for x in of("multiplications")] == [2733, 2811]
    assert operation_counts.crossover(*reversed(of("total")), 40) is None
    assert operation_counts.text(crbm.multiplications) == "1/6 n³ + 23/2 n² + 481/3 n - 109"


def test_polynomials_go_through_all_counts_or_there_is_none():
    sizes = (2, 3, 4, 5, 6, 9, 20)
    exact = tuple(fractions.Fraction(x) for x in ("-109", "481/3", "23/2", "1/6"))
    counts = [operation_counts.value(exact, n) for n in sizes]
    assert operation_counts.polynomial(sizes, counts) == exact
    with pytest.raises(operation_counts.NotPolynomialError):
        operation_counts.polynomial(sizes, [*counts[:-1], counts[-1] + 1])
    with pytest.raises(operation_counts.NotPolynomialError):
        operation_counts.polynomial(sizes, [n**4 for n in sizes])


def test_a_line_of_counts_has_the_polynomials():
    count, lanes = operation_counts.COUNTED["MatrixABA textbook"]
    program = operation_counts.Program(count, lanes, operation_counts.chain)
    words = operation_counts.line("textbook", program, operation_counts.THESIS["ABM"])
    single = program.counted(6)
    assert f"{single.multiplications // 6} n " in words and f"{single.additions // 6} n " in words
    assert f"{single.total / (300 * 6 - 267 + 279 * 6 - 259) - 1:+.0%}" in words


def test_the_main_job_says_what_its_lanes_found():
    found = main_job.measured(jax.vmap(lambda p: {"product": p["kp"] * p["payload"]}), main_job.lanes_of(4))
    # Gains of 5 and 500, each with payloads of 0 and 5.
    assert found["means"]["product"] == pytest.approx((25 + 2500) / 4)
    assert found["lanes"] == 4 and len(found["run_s"]) == 3


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_run_prints_a_table_and_writes_its_numbers(tmp_path):
    pytest.importorskip("pinocchio")
    words = "--peers pinocchio,frax --robots double_pendulum,nosuch --batches 4 --dtypes float64 --repeats 3"
    command = [sys.executable, "-m", "benchmarks", *words.split(), "--json", str(tmp_path / "out.json")]
    command += ["--quantities", "forward dynamics"]
    # An interpreter that is none, and a robot that is none, are each a line of the table.
    done = subprocess.run([*command, "--peer-python", "nopython"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "out.json").read_text())
    rows = {(row["library"], row["quantity"]): row for row in results["rows"] if "library" in row}
    assert set(rows) == {(name, "forward dynamics") for name in ("pinocchio", "jdyn", "frax")}
    own = rows["jdyn", "forward dynamics"]
    assert own["relative_error"] < 1e-12 and own["compile_s"] > 0 and len(own["cpu_s"]) == 3
    assert own["versions"]["method"] == "ByBatch()"
    assert "nopython" in rows["frax", "forward dynamics"]["error"]
    assert any("no robot is called 'nosuch'" in row.get("error", "") for row in results["rows"])
    assert "nosuch: not measured" in done.stdout and "How many times faster jdyn is" in done.stdout


def test_peers_run_without_jdyn():
    """Their environment does not have it, nor what it needs."""
    script = (
        "import sys; sys.modules['jdyn'] = None; import jax, jax.numpy as jnp\n"
        "from benchmarks import child, compiled_peers, contact_child, frax_peer, jax_peers, jax_programs, work\n"
        "x = jnp.ones(3); double = jax.jit(lambda x: x + x)\n"
        "print(work.counted(double, (x,), double.lower(x).compile())['flops'])"
    )
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(found.stdout) == 3


@pytest.mark.slow
def test_a_mujoco_file_of_a_model_is_the_same_mechanism():
    """Accelerations in the air under its controller, and depths of its feet in the ground."""
    scene = contact_scenes.SCENES["quadruped"](2)
    assert len(scene.q0) == len(scene.v0) == 2
    m = mujoco.MjModel.from_xml_string(scene.xml)
    data, peer = mujoco.MjData(m), MujocoMap(scene.model, m)
    v0 = np.random.default_rng(0).normal(size=scene.model.nv)
    q0 = np.array(scene.model.integrate(scene.q0[1], 0.1 * v0))
    q0[2] = 1.0
    data.qpos[:], data.qvel[:] = peer.q_to_peer(q0), peer.v_to_peer(q0, v0)
    data.ctrl[:] = scene.peer()["ctrl"]
    mujoco.mj_forward(m, data)
    a = jax.jit(jdyn.forward_dynamics)(scene.model, q0, v0, scene.controller(0.0, q0, v0))
    assert data.ncon == 0
    np.testing.assert_allclose(peer.a_to_peer(q0, v0, a), data.qacc, rtol=1e-9, atol=1e-9)
    q0[2] = 0.2
    data.qpos[:] = peer.q_to_peer(q0)
    mujoco.mj_forward(m, data)
    distance = jax.jit(_distances)(scene.model, q0)
    assert data.ncon > 0
    np.testing.assert_allclose(np.sort(distance[distance < 0]), np.sort(data.contact.dist), atol=1e-12)


def _distances(model, q):
    return contact_points(colliders(model), jdyn.forward_kinematics(model, q))[0].distance


def test_the_time_for_an_error_is_straight_in_logarithms_along_the_envelope():
    # The second point is worse than the third in both; the last has no finite error.
    points = [(1e-2, 1.0), (1e-3, 50.0), (1e-4, 10.0), (1e-6, 1000.0), (float("inf"), 0.1), (0.0, 5000.0)]
    assert verdict.envelope(points) == [(1e-6, 1000.0), (1e-4, 10.0), (1e-2, 1.0)]
    assert verdict.seconds_for(1e-3, points) == pytest.approx(10**0.5)
    assert verdict.seconds_for(1e-5, points) == pytest.approx(100)
    assert verdict.seconds_for(1e-4, points) == pytest.approx(10)
    # What is better than asked for serves; nothing is made up beyond the best point.
    assert verdict.seconds_for(1.0, points) == 1.0
    assert verdict.seconds_for(1e-7, points) is None
    assert verdict.seconds_for(1e-3, []) is None


def test_a_verdict_is_by_the_best_other_curve():
    def curve(name, *points):
        return [verdict.Point("arm", name, 1e-3, error, seconds, 2) for error, seconds in points]

    points = curve("default", (1e-2, 2.0), (1e-6, 200.0))
    points += curve("Dopri8", (1e-2, 4.0), (1e-6, 40.0)) + curve("peer", (1e-2, 1.0), (1e-3, 100.0))
    rows = verdict.verdict(points, "default", ("default", "Dopri8"), (1e-2, 1e-6, 1e-7))
    assert rows[0].own == ("Dopri8", 4.0) and rows[0].other == ("peer", 1.0) and rows[0].ratio == 2
    assert rows[1].other is None and rows[1].ratio == pytest.approx(5)
    assert rows[2] == verdict.Row(1e-7, None, None, None) and rows[2].ratio is None
    lines = verdict.table(rows)
    assert lines[1].endswith("2.00 !") and "1e+06 peer" in lines[1] and "!" not in lines[3]
    slower = verdict.verdict(points, "peer", (), (1e-2, 1e-6))
    assert slower[0].ratio == 0.5 and "!" not in verdict.table(slower)[1]
    # A default that does not get there is not the best, either.
    assert slower[1].ratio is None and verdict.table(slower)[2].endswith("- !")


def test_curve_goes_on_after_settings_that_fail():
    """An exception and an error that is not finite, though slow, are those of too coarse a setting."""
    for module in ("mujoco", "pinocchio", "scipy"):
        pytest.importorskip(module)
    from benchmarks import work_precision

    def run(name, setting):
        if setting == 1:
            raise FloatingPointError("too coarse")
        slow = setting in (0.1, 1e-3)
        return work_precision.Run(np.array([np.inf if setting == 0.1 else setting]), {"cpu_s": [5.0 * slow]}, {})

    bench = types.SimpleNamespace(scene=types.SimpleNamespace(name="none"), seconds=1, _run=run, error=lambda q: q[0])
    points = work_precision.Bench.curve(bench, "any", (1, 0.1, 1e-2, 1e-3, 1e-4))
    assert [point.setting for point in points] == [0.1, 1e-2, 1e-3]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_work_and_precision_of_solvers(tmp_path):
    """A row for each curve and setting, all of one motion."""
    pytest.importorskip("pinocchio")
    out, drawn = tmp_path / "out.json", tmp_path / "out.png"
    command = [sys.executable, "-m", "benchmarks.work_precision", "--quick", "--json", str(out)]
    # An interpreter that is none is a line, and no curve.
    command += ["--peer-python", "nopython"]
    done = subprocess.run([*command, "--picture", str(drawn)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    points = [verdict.Point(**point) for point in found["points"]]
    by_curve = {(point.curve, point.setting): point for point in points}
    names = ("default", "Tsit5", "Dopri8", "SciPy DOP853")
    assert set(by_curve) == {(name, tolerance) for name in names for tolerance in (1e-4, 1e-8)} | {
        (f"MuJoCo {name}", step) for name in ("implicitfast", "RK4") for step in (1e-2, 1e-3)
    }
    for name in names:
        for tolerance in (1e-4, 1e-8):
            # Errors of steps add up.
            assert tolerance / 1e3 < by_curve[name, tolerance].error < 1e2 * tolerance
    # Of order 4 and 1.
    assert by_curve["MuJoCo RK4", 1e-3].error < 1e-3 * by_curve["MuJoCo RK4", 1e-2].error < 1e-8
    assert 5 < by_curve["MuJoCo implicitfast", 1e-2].error / by_curve["MuJoCo implicitfast", 1e-3].error < 15
    assert all(point.seconds > 0 for point in points)
    assert [row["error"] for row in found["verdict"]["double_pendulum"]] == pytest.approx(list(verdict.LEVELS))
    assert drawn.stat().st_size > 0 and "agrees to" in done.stdout
    assert "frax Tsit5: there is no interpreter nopython" in done.stdout


@pytest.mark.exhaustive
def test_what_constraints_cost(tmp_path):
    """Tried with few bodies, loops and lanes."""
    for module in ("pinocchio", "mujoco"):
        pytest.importorskip(module)
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "benchmarks.constraints", "--quick", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert [(row["bodies"], row["loops"]) for row in found["bodies"] + found["loops"]] == [
        (4, 1), (8, 1), (12, 1), (8, 1), (8, 2)
    ]  # fmt: skip
    for row in found["bodies"] + found["loops"]:
        assert row["pinocchio"]["difference"] < 1e-10
        # Soft, and not asked for what the motion of its parts adds.
        assert 1e-6 < row["mujoco"]["difference"] < 1
        assert all(row[library][name] > 0 for library in ("jdyn", "pinocchio", "mujoco") for name in row[library])
    lanes = found["lanes"]
    # Rockers above 5 m do not reach the coupler.
    assert lanes["codes"]["assembly"] == {"met": 13, "stuck": 3}
    assert lanes["codes"]["simulation"] == {"success": 13, "constraints": 3}
    assert [row["scene"] for row in found["steps"]] == ["four-bar", "chain4"]
    assert all(row["step, held"] > row["step, free"] > 0 for row in found["steps"])
    assert "slope" in done.stdout and "lanes a second" in done.stdout


@pytest.mark.slow
def test_forces_of_joints_around_frax_are_those_of_the_scene(monkeypatch):
    """frax itself is replaced by the mechanism without them, its joints in another order."""
    bare = jdyn.load("double_pendulum")

    class Robot:
        joint_names = ("joint2", "joint1")

        def forward_dynamics(self, q, v, tau, fext):
            return jdyn.forward_dynamics(bare, q[::-1], v[::-1], tau[::-1])[::-1]

        def gravity_vector(self, q):
            return jdyn.gravity_forces(bare, q[::-1])[::-1]

    monkeypatch.setattr(peer_models, "frax_robot", lambda urdf, floating: Robot())
    q0, v0 = jnp.array([[0.1, 0.2], [0.3, -0.4]]), jnp.array([[0.5, -0.6], [0.7, 1e-3]])
    kp, kd = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[0.1, 0.2], [0.3, 0.4]])
    damping, friction, friction_speed = jnp.array([0.5, 0.7]), jnp.array([0.0, 0.3]), jnp.array([0.0, 1e-2])
    target, t1 = jnp.array([1.0, -1.0]), 1e-4
    lanes = frax_peer.Lanes(
        {
            "urdf": "", "floating": False, "joints": ["joint1", "joint2"], "q0": q0, "v0": v0, "t1": t1,
            "first_step": t1, "damping": damping, "friction": friction, "friction_speed": friction_speed,
            "armature": [0.0, 0.0], "payload": None,
            "drive": {"target": target, "kp": kp, "kd": kd, "compensated": True},
        }
    )  # fmt: skip

    def acceleration(q, v, kp, kd):
        smooth = jnp.where(friction > 0, friction * jnp.tanh(v / jnp.where(friction > 0, friction_speed, 1)), 0)
        tau = kp * (target - q) - kd * v - damping * v - smooth + jdyn.gravity_forces(bare, q)
        return jdyn.forward_dynamics(bare, q, v, tau)

    a = np.asarray(jax.jit(jax.vmap(acceleration))(q0, v0, kp, kd))
    assert lanes.accelerations(q0[::-1], v0[::-1], [1, 0]) == pytest.approx(a[::-1], rel=1e-12)
    found = lanes.end("Tsit5", 1e-6, 1e-8, 1, 1.0)
    # Of a short motion, by its first terms.
    assert np.asarray(found["q"]) == pytest.approx(np.asarray(q0 + t1 * v0 + t1**2 * a / 2), abs=1e-8)
    assert found["steps"] >= 1 and found["times"]["cpu_s"]


@pytest.mark.slow
def test_parts_for_a_gpu_are_kept_and_go_on_where_they_were_left(tmp_path):
    def run(*words):
        command = [sys.executable, "-m", "benchmarks.gpu", str(tmp_path), "--try", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    one = "forward dynamics, double_pendulum, float32, levels"
    everything = run("--list").splitlines()
    assert one in everything and "main job" in everything and "tests, tests/spatial" in everything
    assert "out of time" in run("--only", one, "--limit", "0.01")
    # What ran out of time is tried again only when that is asked for.
    assert "done" not in run("--only", one)
    run("--only", one, "--minutes", "0", "--again")
    assert "done" in run("--only", one, "--again")
    assert one not in run("--list").splitlines()
    kept = json.loads((tmp_path / "results.json").read_text())[one]
    (row,) = kept["report"]["rows"]
    assert kept["code"] == 0 and kept["tried"] and row["executor"] == "levels" and row["peaks"]["flops_per_s"] > 0
    assert row["device"] == "cpu" and row["flops"] > 0 and len(row["wall_s"]) == 1
    page = (tmp_path / "table.md").read_text()
    assert f"| {one} | done |" in page and "% of the roofline" in page and "jdyn" in page


def test_parts_for_a_gpu_are_of_all_sizes():
    chosen = argparse.Namespace(tried=False, peer_python="python", g1=None)
    named = {part.name: " ".join(part.words) for part in gpu.parts(chosen)}
    assert "--batches 1000,10000,100000,1000000" in named["derivatives, talos, float64, beside peers"]
    assert {x for x in named if x.startswith("tests, tests/dynamics")} >= {"tests, tests/dynamics/test_aba.py"}
    assert "--sizes 1024,4096 --batches 1,4,16,64" in named["long chains"]
    assert all("--device gpu" in words for words in named.values() if words.startswith("-m benchmarks "))
    assert len(named) == len(gpu.parts(chosen))


def test_robot_files_are_counted_by_who_reads_them(tmp_path):
    jdyn.save_urdf(jdyn.load("pendulum"), tmp_path / "arm.urdf")
    text = (tmp_path / "arm.urdf").read_text()
    (tmp_path / "stands.urdf").write_text(re.sub(r'type="\w+"', 'type="fixed"', text))
    (tmp_path / "twice.xml").write_text(re.sub(r"<axis[^>]*>", r"\g<0>\g<0>", text))
    (tmp_path / "late.urdf").write_text(f"<!-- made by hand -->\n{text}")
    (tmp_path / "cut.urdf").write_text(text[:200])
    (tmp_path / "scene.xml").write_text("<mujoco/>")
    (tmp_path / "other.xml").write_text("<launch/>")
    found = {path.name: files.compared(path, root, tmp_path) for path, root in files.robot_files(tmp_path)}
    assert {name: one.column for name, one in found.items()} == {
        "arm.urdf": "agree",
        "cut.urdf": "by both",
        "late.urdf": "by the other alone",
        "scene.xml": "agree",
        "stands.urdf": "agree",
        "twice.xml": "refused by jdyn alone",
    }
    assert [name for name, one in found.items() if one.still] == ["scene.xml", "stands.urdf"]


def test_figures_are_marked_by_the_ratio_of_their_medians():
    before = {"seconds": [1.0, 1.0, 9.0]}
    for kind, ratio, mark in (
        ("run", 1.04, ""), ("run", 1.06, "slower"), ("run", 0.94, "faster"), ("compile", 1.06, ""),
        ("compile", 1.11, "slower"),
    ):  # fmt: skip
        line = figures.row(f"{kind} arm", [{"seconds": [0.1, ratio, ratio]}, before])
        assert f"{1e3 * ratio:9.4g} (100 to {1e3 * ratio:.4g})" in line and f"{ratio:6.3f}" in line
        assert line.split()[-1] == (mark or f"{ratio:.3f}")
    assert figures.row("run arm", [{"seconds": [], "error": "no reason"}, before]).split()[2:4] == ["no", "reason"]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_figures_of_two_checkouts(tmp_path):
    """Tried with the smallest program, and with a second checkout that has another jdyn, none of which can do it."""
    other, out = tmp_path / "other", tmp_path / "out.json"
    (other / "jdyn").mkdir(parents=True)
    (other / "jdyn" / "__init__.py").write_text("")
    name = "panda, forward dynamics of 1024"
    command = [sys.executable, "-m", "benchmarks.figures", "--only", f"run {name};compile {name}", "--rounds", "2"]
    done = subprocess.run(
        [*command, "--against", str(other), "--json", str(out)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    assert report["checkouts"] == [str(ROOT), str(other)]
    assert set(report["figures"]) == {f"run {name}", f"compile {name}"}
    for mine, theirs in report["figures"].values():
        assert len(mine["seconds"]) == 2 and all(seconds > 0 for seconds in mine["seconds"])
        assert "has no attribute 'load'" in theirs["error"] and theirs["error"] in done.stdout
