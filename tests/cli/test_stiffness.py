"""The command that counts what rounding costs, whose programs are compiled as users' are."""

import re

import numpy as np
import pytest

from jdyn.cli import main


@pytest.mark.slow
@pytest.mark.exhaustive
def test_stiffness_counts_what_rounding_costs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["stiffness", "panda", "--t1", "0.05"]) == 0
    out = capsys.readouterr().out
    assert "ABA() keeps" in out
    # A simulation that fails takes any number of evaluations.
    counts = [line.split()[2:] for line in out.splitlines() if re.match(r"\S+ kg ", line)]
    rows = [[float("inf") if count == "-" else float(count) for count in row] for row in counts]
    condition, aba, array_aba, crba, _, array_aba_single, crba_single = zip(*rows, strict=True)
    assert len(rows) == 7 and condition[-1] > 1000 * condition[0]
    assert aba == array_aba == crba
    # The smallest error that counts is not the same in float32, so the first steps from rest are not: by two attempts.
    np.testing.assert_allclose(array_aba_single, aba, rtol=0, atol=12)
    assert crba_single[0] < 3 * aba[0] and crba_single[-1] > 1000 * aba[-1]
    assert (tmp_path / "stiffness-panda.png").read_bytes().startswith(b"\x89PNG")
