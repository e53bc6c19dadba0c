"""Files that are written beside their names: nobody can foresee where, and nothing is left."""

import os
import subprocess
import sys
import time

import pytest

import jdyn
from jdyn.io.whole_file import MACHINE, OLD, remove_unfinished, unfinished_name, whole_file


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(RuntimeError), whole_file(path, "w") as file:
        file.write("after")
        assert path.read_text() == "before"
        raise RuntimeError
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"] and path.read_text() == "before"
    with whole_file(path, "w") as file:
        file.write("after")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"] and path.read_text() == "after"


def test_names_cannot_be_foreseen(tmp_path):
    names = set()
    for _ in range(20):
        with unfinished_name(tmp_path / "a") as path:
            names.add(path.name)
    assert len(names) == 20 and all(len(name.rpartition(".")[2]) == 16 for name in names)


def test_nothing_is_written_through_links(tmp_path, monkeypatch):
    """Neither where someone has guessed the name, nor through one in the file's own place."""
    victim, out = tmp_path / "victim", tmp_path / "folder"
    out.mkdir()
    victim.write_text("mine")
    (out / f".out.npz.{os.getpid()}").symlink_to(victim)
    (out / "out.npz").symlink_to(victim)
    monkeypatch.setattr("secrets.token_hex", lambda n: "0" * 16)
    planted = out / f".out.npz.{MACHINE}-{os.getpid()}.{'0' * 16}"
    planted.symlink_to(victim)
    with pytest.raises(FileExistsError), whole_file(out / "out.npz", "w") as file:
        file.write("theirs")
    planted.unlink()
    with whole_file(out / "out.npz", "w") as file:
        file.write("theirs")
    assert victim.read_text() == "mine" and not (out / "out.npz").is_symlink()


def test_what_killed_processes_left_is_removed_and_nothing_else(tmp_path):
    code = "import sys, pathlib; from jdyn.io.whole_file import whole_file\n"
    code += "with whole_file(pathlib.Path(sys.argv[1]), 'w'):\n    print('begun', flush=True); input()"
    words = [sys.executable, "-c", code, str(tmp_path / "out")]
    environment = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(jdyn.__file__))}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout.readline() == b"begun\n"
        (left,) = tmp_path.iterdir()
        remove_unfinished(tmp_path)
        assert left.exists()  # it runs
        process.kill()
    others = [".out", ".out.txt", "out.1234.0123456789abcdef", ".other.0", f".out.{MACHINE[::-1]}-1.0123456789abcdef"]
    for name in others:
        (tmp_path / name).write_text("")
    remove_unfinished(tmp_path, "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(others)
    # Another machine's, after a day.
    os.utime(tmp_path / others[-1], (time.time() - 2 * OLD,) * 2)
    remove_unfinished(tmp_path, "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(others[:-1])


def test_what_this_process_writes_is_left(tmp_path):
    with whole_file(tmp_path / "out", "w") as first:
        first.write("1")
        with whole_file(tmp_path / "out", "w") as second:
            second.write("2")
    assert (tmp_path / "out").read_text() == "1"


def test_modes_are_those_of_new_files(tmp_path):
    (tmp_path / "plain").write_text("")
    with whole_file(tmp_path / "whole", "w"):
        pass
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode
