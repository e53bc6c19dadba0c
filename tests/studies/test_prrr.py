"""The simulator of the thesis, as a person meets it."""

import io
import re

import jax
import numpy as np
import pytest

from jdyn.cli import main
from jdyn.studies.cloutier1995 import FIGURE_5_2, Session, simulated

# Figure 5.2's answers but for the robot, which the thesis does not print, a method, and a shorter motion.
ANSWERS = """T02
robot.dat
2
1
1
0 0.5
n
0.02
0.0
0.001
0.05
9
n
1.2 0.1
-0.3 0
n
9.7
0.2
0.5
-0.5
"""
WORDS = (
    "prrr robot.dat --id T02 --method crbm --linear cd --integration rka --t0 0 --t1 0.5 --first-step 0.02 "
    "--smallest-step 0 --accuracy 0.001 --interval 0.05 --rows 9 --q0 1.2 -0.3 --v0 0.1 0 --gravity 9.7 "
    "--friction 0.2 --torques 0.5 -0.5"
).split()
FILES = ("positions", "velocities", "accelerations", "energy", "evaluations", "condition", "difference")


@pytest.fixture(autouse=True)
def as_a_person_has_it(tmp_path, monkeypatch):
    """A folder of one's own with a robot in it, and JAX as it comes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.dat").write_text("1.0 2.0 0.1  # the upper arm\n0.5 1.0 0.1\n")
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def answer(monkeypatch, text):
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def tables(folder, name):
    return {quantity: np.loadtxt(folder / f"{name}-{quantity}.txt") for quantity in FILES}


@pytest.mark.slow
def test_the_session_of_figure_5_2(tmp_path, capsys):
    assert main(["prrr"]) == 0
    out = capsys.readouterr().out
    outcome = simulated(Session())
    counts = "successful steps", "bad steps", "steps saved"
    printed = {line[:50].strip(): line[50:].split() for line in out.splitlines()}
    for name, number in FIGURE_5_2.items():
        assert printed[name][1] == f"{number:.10g}"
    # Most of the starts that differ by rounding take the thesis' steps.
    assert [printed[name][2] for name in counts] == [str(FIGURE_5_2[name]) for name in counts]
    assert "nearest to the printed one is 1313.93" in out
    assert printed["successful steps"][0] == str(outcome.steps.good_steps)
    assert printed["function evaluations"][0] == str(outcome.thesis_evaluations)
    assert printed["operations in all (n_total)"][0] == f"{outcome.total_operations:,}"
    found, read = outcome.statistics, tables(tmp_path, "T01")
    for name, columns in (
        ("positions", found.q), ("velocities", found.v), ("accelerations", found.a), ("difference", found.difference),
        ("condition", found.condition[:, None]), ("evaluations", found.evaluations[:, None]),
        ("energy", np.stack([outcome.energy, found.kinetic, outcome.potential], 1)),
    ):  # fmt: skip
        np.testing.assert_array_equal(read[name], np.column_stack([found.ts, columns]))
    assert (tmp_path / "T01-positions.txt").read_text().splitlines()[0] == "# t[s] q1[rad] q2[rad] q3[rad]"
    assert "average energy" in (tmp_path / "T01-summary.txt").read_text()


@pytest.mark.slow
def test_answers_do_what_words_do(tmp_path, monkeypatch, capsys):
    assert main(WORDS) == 0
    by_words = tables(tmp_path, "T02")
    for file in tmp_path.glob("T02-*"):
        file.unlink()
    answer(monkeypatch, ANSWERS)
    assert main(["prrr", "--interactive"]) == 0
    by_answers = tables(tmp_path, "T02")
    for name in FILES:
        np.testing.assert_array_equal(by_words[name], by_answers[name])
    positions, velocities = by_words["positions"], by_words["velocities"]
    np.testing.assert_array_equal(positions[0], [0, 1.2, -0.3])
    np.testing.assert_array_equal(velocities[0], [0, 0.1, 0])
    assert positions[-1, 0] == 0.5 and len(positions) <= 9
    assert "figure 5.2" not in capsys.readouterr().out


@pytest.mark.slow
def test_what_cannot_be_an_answer_is_asked_for_again(tmp_path, monkeypatch, capsys):
    lines = ANSWERS.splitlines()
    wrong = {0: "a/b", 1: "nowhere.dat", 2: "3", 5: "1 0", 6: "perhaps", 7: "-1", 9: "small", 11: "1", 13: "1"}
    asked = [line for i, right in enumerate(lines) for line in ([wrong[i]] if i in wrong else []) + [right]]
    answer(monkeypatch, "\n".join(asked))
    assert main(["prrr", "--interactive"]) == 0
    out = capsys.readouterr().out
    for complaint in (
        "expected letters", "nowhere.dat: cannot be read", "expected a number from 1 to 2, got '3'",
        "expected a stop after the start", "expected y or n, got 'perhaps'", "expected a positive number, got -1",
        "expected a number, got 'small'", "expected at least 2", "expected 2 numbers, got 1",
    ):  # fmt: skip
        assert complaint in out
    assert tables(tmp_path, "T02")["positions"].shape[1] == 3


@pytest.mark.slow
def test_empty_answers_mean_the_words(tmp_path, monkeypatch):
    answer(monkeypatch, "\n" * 9)
    assert main([*WORDS, "--interactive"]) == 0
    by_answers = tables(tmp_path, "T02")
    assert main(WORDS) == 0
    np.testing.assert_array_equal(by_answers["energy"], tables(tmp_path, "T02")["energy"])


def test_an_input_that_ends_is_an_error(monkeypatch, capsys):
    answer(monkeypatch, "T02\nrobot.dat\n")
    assert main(["prrr", "--interactive"]) == 1
    assert "jdyn: the input ended where an answer was expected: Forward dynamics" in capsys.readouterr().err


@pytest.mark.slow
def test_a_motion_that_fails_leaves_what_it_has(tmp_path, capsys):
    words = ["--method", "abm", "--integration", "rk", "--first-step", "0.1", "--max-steps", "3"]
    assert main(["prrr", "robot.dat", *words, "--statistics", "positions"]) == 1
    captured = capsys.readouterr()
    assert re.search(r"stopped at t = 0\.3 s: max_steps", captured.err) and "max_steps" in captured.out
    assert np.loadtxt(tmp_path / "T01-positions.txt").shape == (4, 3)
    assert not (tmp_path / "T01-energy.txt").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["adams", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("stiff", "stifbs"))]
)
def test_other_methods_are_there(method, tmp_path, capsys):
    words = ["--integration", method, "--t1", "0.2", "--statistics", "energy", "evaluations"]
    assert main(["prrr", "robot.dat", "--torques", "0", "0", *words]) == 0
    energy = np.loadtxt(tmp_path / "T01-energy.txt")[:, 1]
    assert np.ptp(energy) < 1e-3 * energy[0]
    evaluations = np.loadtxt(tmp_path / "T01-evaluations.txt")[:, 1]
    assert evaluations[0] == 0
    if method == "stiff":
        # Eight stages of each step, and of those that were tried in vain.
        assert np.all(evaluations[1:] >= 8) and not np.any(evaluations % 8)
    elif method == "adams":
        # Two of each step, or seven while it starts.
        assert np.all(evaluations[1:] >= 2)
    else:
        # One at the start, and two rows or more of 2 and 6 substeps.
        assert np.all(evaluations[1:] >= 9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["broken.dat"], "line 2: mass: expected a finite positive number, got '-1'"),
        (["robot.dat", "--links", "2"], "got both"),
        (["--links", "2", "--lengths", "1", "2", "3"], "lengths: expected one number or 2"),
        (["robot.dat", "--q0", "1"], "q0: expected 2 numbers, one a link, got 1"),
        (["robot.dat", "--t0", "11"], "expected a stop after the start"),
    ],
)
def test_errors_are_one_sentence_on_standard_error(words, message, tmp_path, capsys):
    (tmp_path / "broken.dat").write_text("1 1 1\n1 -1 1\n")
    assert main(["prrr", *words]) == 1
    err = capsys.readouterr().err
    assert err.startswith("jdyn: ") and message in err and "Traceback" not in err


@pytest.mark.parametrize(
    "words", [["--id", "a b"], ["--output", "nowhere"], ["--accuracy", "0"], ["--rows", "1"], ["--statistics", "speed"]]
)
def test_wrong_words_get_the_usage(words, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["prrr", *words])
    assert exit.value.code == 2 and "usage: jdyn prrr" in capsys.readouterr().err
