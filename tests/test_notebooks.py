"""Notebooks run from top to bottom, and what they say holds."""

import json
import pathlib
import re

import jax
import numpy as np
import pytest

import jdyn
from jdyn.cli import main

FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run(path):
    """Names that the code cells leave behind, and the values of the last expressions."""
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    names: dict = {}
    for cell in cells:
        exec(compile("".join(cell["source"]), str(path), "exec"), names)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path):
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        names = run(path)
    if path.stem == "formulation-stiffness":
        assert names["rough"][str(names["bad"])] > 100 * names["rough"]["ABA()"]
        assert names["diagnosis"].method == jdyn.ABA()
        assert np.all(np.isfinite(names["lines"]["ABA() float32"][1]))
        assert np.isnan(names["lines"]["CRBA() float32"][1][-1])
    if path.stem == "tune-a-policy":
        # From letting go to holding: most of the first loss is the fall.
        assert names["history"][-1] < 1e-2 * names["history"][0]
        assert np.max(np.abs(names["final"] - np.pi)) < 0.05


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*URDF cannot represent armature")
def test_a_measured_motion_tells_what_the_model_does_not_know(tmp_path, monkeypatch, capsys):
    """As the program says: 0.2 kg of 1.2 kg, half a metre away from the joint."""
    monkeypatch.chdir(tmp_path)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        exec(compile((FOLDER / "measured_motion.py").read_text(), "measured_motion.py", "exec"), {})
        assert main(["identify", "measured.nc", "double_pendulum"]) == 0
    out = capsys.readouterr().out
    estimate, low, high = map(float, re.search(r"link2.mz +-0.5 +(\S+) +(\S+) to (\S+) +alone", out).groups())
    assert low <= -0.6 <= high and abs(estimate + 0.6) < 1e-3
    assert (tmp_path / "identified-double_pendulum.urdf").exists()


def test_there_are_notebooks():
    assert NOTEBOOKS
