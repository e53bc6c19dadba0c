"""The README does what it says."""

import contextlib
import io
import pathlib
import re

import jax
import numpy as np
import pytest

import jdyn

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_quick_start_runs():
    (code,) = _blocks("python")
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 15
    names, printed = {}, io.StringIO()
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"), contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), names)
        error, h = names["error"], 1e-3
        difference = (error(100.0 + h, 1.0) - error(100.0 - h, 1.0)) / (2 * h)
    # Holding gravity at rest accelerates nothing, and the gradient printed is that of the error.
    np.testing.assert_allclose(names["a"], 0, atol=1e-9)
    gradients = np.array(re.sub(r"[\[\]]", "", printed.getvalue()).split(), float)
    assert gradients[1] == pytest.approx(float(difference), rel=1e-2)


def test_continuous_integration_runs_the_commands_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (commands,) = _blocks("")
    for command in commands.strip().splitlines():
        assert command in script


def test_the_citation_names_this_version():
    assert f"version: {jdyn.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_what_the_readme_points_to_exists():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target).exists(), target
    assert f"{len(jdyn.ROBOTS)} bundled" in README.replace("eleven", "11")
