"""Notebooks that show rounding, compiled as users compile them."""

import numpy as np
import pytest

import jdyn
from tests.test_notebooks import run


@pytest.mark.slow
@pytest.mark.exhaustive
def test_formulation_stiffness(tmp_path, monkeypatch):
    names = run("formulation-stiffness", tmp_path, monkeypatch)
    assert names["rough"][str(names["bad"])] > 100 * names["rough"]["ABA()"]
    assert names["diagnosis"].method == jdyn.ABA()
    assert np.all(np.isfinite(names["lines"]["ABA() float32"][1]))
    assert np.isnan(names["lines"]["CRBA() float32"][1][-1])


@pytest.mark.slow
@pytest.mark.exhaustive
def test_many_formulations(tmp_path, monkeypatch):
    rows = run("many-formulations", tmp_path, monkeypatch)["rows"]
    # The condition number of M, up to a thousand here, times rounding.
    assert all(double < 1e-12 and single < 1e-4 for double, single in rows.values())
    assert rows["CRBA"][1] > 5 * rows["ABA"][1]
