"""The forward dynamics test of the thesis, as a person meets it."""

import jax
import numpy as np
import pytest

import jdyn
from jdyn.cli import main
from jdyn.studies.cloutier1995 import Link, Session, static_sweep


@pytest.fixture(autouse=True)
def as_a_person_has_it(tmp_path, monkeypatch):
    """A folder of one's own with a robot in it, and JAX as it comes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.dat").write_text("1.0 2.0 0.1  # the upper arm\n0.5 1.0 0.1\n")
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def table(folder, name="T01"):
    path = folder / f"{name}-sweep.txt"
    return path.read_text().splitlines()[0].removeprefix("# ").split(), np.loadtxt(path)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_figure_5_3(tmp_path, capsys):
    """Condition numbers of the order of 1e4, the largest where the links are in line; differences of 1e-12."""
    assert main(["prrrfdt"]) == 0
    heads, rows = table(tmp_path)
    assert heads == [
        "q2", "condition", "abm1[rad/s2]", "abm2[rad/s2]", "crbm1[rad/s2]", "crbm2[rad/s2]",
        "difference1[1]", "difference2[1]",
    ]  # fmt: skip
    assert rows.shape == (181, 8) and 1e4 < max(rows[:, 1]) < 1e5 and 1e-13 < max(rows[:, 6]) < 1e-11
    in_line = np.isclose(np.sin(rows[:, 0]), 0, atol=1e-9)
    assert in_line[np.argmax(rows[:, 1])]
    np.testing.assert_array_equal(rows[:, 6], np.abs((rows[:, 2] - rows[:, 4]) / rows[:, 2]))
    assert f"{max(rows[:, 1]):.4g}" in capsys.readouterr().out


@pytest.mark.slow
def test_words_do_what_the_library_does(tmp_path, capsys):
    words = (
        "prrrfdt robot.dat --id T07 --vary length2 mass2 --from 0.1 --to 10 --samples 5 --log --method crbm "
        "--linear svd --q0 0.3 -0.7 --v0 0.5 1.5 --torques 2 -1 --gravity 9.7 --friction 0.1 --plot sweep.png"
    ).split()
    assert main(words) == 0
    start = Session(
        links=(Link(1.0, 2.0, 0.1), Link(0.5, 1.0, 0.1)), q0=(0.3, -0.7), v0=(0.5, 1.5), torques=(2.0, -1.0),
        gravity=9.7, friction=0.1,
    )  # fmt: skip
    method = jdyn.CRBA("svd")
    found = static_sweep(start, ("length2", "mass2"), np.geomspace(0.1, 10, 5), (method,))
    heads, rows = table(tmp_path, "T07")
    assert heads == ["length2,mass2", "condition", "crbm1[rad/s2]", "crbm2[rad/s2]"]
    np.testing.assert_array_equal(rows, np.column_stack([found.values, found.condition, found.accelerations[method]]))
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert "picture" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vary", "q3"], "1 to 2, or gravity or friction; got 'q3'"),
        (["--log"], "--log: expected positive values, got 0 to 6.28319"),
        (["--vary", "mass1", "--from", "-1"], "masses: expected"),
        (["--q0", "1"], "q0: expected 2 numbers, one a link, got 1"),
        (["robot.dat", "--links", "2"], "got both"),
    ],
)
def test_errors_are_one_sentence_on_standard_error(words, message, capsys):
    assert main(["prrrfdt", *words]) == 1
    err = capsys.readouterr().err
    assert err.startswith("jdyn: ") and message in err and "Traceback" not in err
