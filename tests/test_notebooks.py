"""Notebooks run from top to bottom, what they say holds, and their two files are in step."""

import pathlib
import re
import runpy

import jax
import jupytext
import nbclient
import nbformat
import numpy as np
import pytest

import jdyn
from jdyn.cli import main

# Those that show rounding, or compute for long, are tests of another file.
pytestmark = pytest.mark.fast_compile

FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
# Of a notebook with its outputs [bytes].
LARGEST = 300_000


def run(name, folder, monkeypatch):
    """Names that the cells leave behind, run in a folder of their own."""
    monkeypatch.chdir(folder)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        return runpy.run_path(str(FOLDER / f"{name}.py"))


def cells(notebook):
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_and_its_program_are_in_step(name):
    """`jupytext --sync notebooks/*.py` brings them there."""
    assert cells(jupytext.read(FOLDER / f"{name}.py")) == cells(jupytext.read(FOLDER / f"{name}.ipynb"))


def test_every_program_is_a_notebook():
    assert NOTEBOOKS and NOTEBOOKS == sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_small_and_has_no_errors(name):
    path = FOLDER / f"{name}.ipynb"
    code = (cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code")
    outputs = [output for cell in code for output in cell.outputs]
    assert path.stat().st_size < LARGEST
    assert any("image/png" in output.get("data", {}) for output in outputs)
    # Warnings, tracebacks and progress bars are no part of what a notebook shows.
    assert {output.output_type for output in outputs} <= {"execute_result", "stream"}
    assert not [output for output in outputs if output.get("name") == "stderr"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_a_notebook_says_exists(name):
    """Names in its text, such as the contact models beside those of other engines."""
    text = "\n".join(source for kind, source in cells(jupytext.read(FOLDER / f"{name}.py")) if kind == "markdown")
    for path in re.findall(r"`(jdyn(?:\.\w+)+)", text):
        found = jdyn
        for part in path.split(".")[1:]:
            assert hasattr(found, part), path
            found = getattr(found, part)
    if name == "coming-from":
        assert "contact=jdyn.CompliantContact()" in text and "none yet" not in text


def test_every_notebook_has_a_test_and_a_line_in_the_readme():
    files = pathlib.Path(__file__).parent.glob("test_notebooks*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    tests = {name.replace("_", "-") for name in re.findall(r"^def test_(\w+)\(", text, re.MULTILINE)}
    assert set(NOTEBOOKS) <= tests
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert [name for name in NOTEBOOKS if f"(notebooks/{name}.ipynb)" not in readme] == []


@pytest.mark.slow
@pytest.mark.exhaustive
def test_batched_sweep(tmp_path, monkeypatch):
    names = run("batched-sweep", tmp_path, monkeypatch)
    error = names["sweep"].error.transpose("kp", "payload").values
    assert error.shape == (32, 32) and np.all(names["sweep"].result == jdyn.Result.success)
    # Soft gains sag with the payload, stiff ones less; without a payload, gravity is compensated.
    soft, stiff = error[8], error[-1]
    assert np.all(np.diff(soft) > 0) and soft[-1] > 5 * stiff[-1]
    # The lane that is run again ends where the store says.
    for name, lane in (("worst", names["worst"]), ("best", names["best"])):
        away = np.max(np.abs(names["runs"][name].q[-1] - names["target"]))
        np.testing.assert_allclose(away, names["flat"][lane], atol=1e-4)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_contact(tmp_path, monkeypatch):
    names = run("contact", tmp_path, monkeypatch)
    # What stands is borne, alike on the right and on the left.
    feet, weight = {name: force[-1] for name, force in names["feet"].items()}, names["weight"]
    assert sum(feet.values()) == pytest.approx(weight, rel=1e-3)
    assert feet["fr"] == pytest.approx(feet["fl"], rel=1e-6) and feet["rr"] == pytest.approx(feet["rl"], rel=1e-6)
    # What sticks creeps by less than 1e-6 m/s, for a second.
    assert np.all(names["lanes"].success)
    np.testing.assert_allclose(names["slid"], names["textbook"], atol=1e-6)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*URDF cannot represent armature")
def test_identification(tmp_path, monkeypatch, capsys):
    """As the notebook says: 0.2 kg of 1.2 kg, half a metre away from the joint; and from the file that it leaves."""
    names = run("identification", tmp_path, monkeypatch)
    assert names["noise"]["nominal"] > 0.5 and names["noise"]["identified"] < 0.03
    # Torques of 0.02 N m noise, filtered to a fifth of their band.
    assert abs(names["log"].channels["delay"] - 0.003) < 3e-4 and np.all(names["log"].held_out.errors < 0.02)
    assert "Friction over speed" in (tmp_path / "fit.html").read_text()
    assert main(["identify", "measured.nc", "double_pendulum"]) == 0
    for out in (str(names["found"]), capsys.readouterr().out):
        estimate, low, high = map(float, re.search(r"link2.mz +-0.5 +(\S+) +(\S+) to (\S+) +alone", out).groups())
        assert low <= -0.6 <= high and abs(estimate + 0.6) < 1e-3
    assert (tmp_path / "identified-double_pendulum.urdf").exists()


@pytest.mark.slow
def test_quick_start(tmp_path, monkeypatch):
    names = run("quick-start", tmp_path, monkeypatch)
    model, motion = names["model"], names["motion"]
    assert [shape.color for shape in model.shapes.entries] == [(0.2, 0.4, 0.7, 1.0), (0.9, 0.6, 0.2, 1.0)]
    np.testing.assert_allclose(motion.q[-1], names["target"], atol=5e-3)
    # Differences of 2e-3 of values that are known to a millionth.
    np.testing.assert_allclose(names["slope"], names["difference"], atol=1e-6)
    assert np.all(np.diff(names["misses"]) > 0)
    clear, *viscous = names["energies"]
    assert np.ptp(clear) < 1e-5 and np.diff(viscous).max() < 1e-5 and np.all(np.ptp(viscous, axis=1) > 0.1)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_gradients_through_events(tmp_path, monkeypatch):
    """The closed form, to the tolerance of the simulation, 1e-6."""
    names = run("gradients-through-events", tmp_path, monkeypatch)
    for ours, closed in zip(jax.tree.leaves(names["computed"]), jax.tree.leaves(names["expected"]), strict=True):
        np.testing.assert_allclose(ours, closed, rtol=1e-6)
    assert np.all(np.isfinite(names["slopes"]))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_gpu_and_cluster(tmp_path, monkeypatch):
    names = run("gpu-and-cluster", tmp_path, monkeypatch)
    assert np.sum(names["half"].result == jdyn.Result.not_run) == names["half"].result.size // 2
    np.testing.assert_allclose(names["whole"].end, names["alone"].end, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_coming_from(tmp_path, monkeypatch):
    """It asserts by itself."""
    names = run("coming-from", tmp_path, monkeypatch)
    assert len(names["errors"]) == 4 and max(names["errors"].values()) < 1e-11


@pytest.mark.slow
@pytest.mark.exhaustive
def test_tune_a_policy(tmp_path, monkeypatch):
    names = run("tune-a-policy", tmp_path, monkeypatch)
    # From letting go to holding: most of the first loss is the fall.
    judged = names["result"].judged
    assert judged[names["result"].best_step] < 1e-2 * judged[0]
    assert np.max(np.abs(names["final"] - np.pi)) < 0.05


@pytest.mark.slow
@pytest.mark.exhaustive
def test_hopper_by_gradient(tmp_path, monkeypatch):
    names = run("hopper-by-gradient", tmp_path, monkeypatch)
    result, after = names["result"], names["runs"]["after"]
    assert result.losses[result.best_step] < 0.25 * result.losses[0]
    assert abs(np.max(after.q[:, 1]) - names["HEIGHT"]) < 0.1


@pytest.mark.slow
@pytest.mark.exhaustive
def test_tuning_by_gradient(tmp_path, monkeypatch):
    names = run("tuning-by-gradient", tmp_path, monkeypatch)
    assert names["health"].healthy and not names["health"].growth.exponential
    result, sweep = names["result"], names["sweep"]
    assert result.losses[result.best_step] < float(sweep.loss.min()) < 0.5 * result.losses[0]


@pytest.mark.slow
def test_a_notebook_shows_its_pictures_in_a_kernel(tmp_path):
    """With what Jupyter runs; the outputs are those that the notebook is kept with, in kind."""
    kept = nbformat.read(FOLDER / "batched-sweep.ipynb", 4)
    fresh = nbformat.read(FOLDER / "batched-sweep.ipynb", 4)
    nbclient.NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()

    def kinds(notebook):
        code = (cell for cell in notebook.cells if cell.cell_type == "code")
        return [[sorted(output.get("data", {})) for output in cell.outputs] for cell in code]

    assert kinds(fresh) == kinds(kept)
    assert any("text/html" in kind for cell in kinds(fresh) for kind in cell)
