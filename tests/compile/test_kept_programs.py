"""Compiled programs outlive a command, where its user wants that."""

import contextlib
import json
import os
import subprocess
import sys

import jax
import pytest

from jdyn.cli import main
from jdyn.compile.kept_programs import kept_programs, programs_made_anew, user_folder

pytestmark = pytest.mark.fast_compile

COUNTED = """
import collections, json, sys, jax.monitoring
events = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: events.update([event.rpartition("/")[2]]))
from jdyn.cli import main
status = main(["info", "pendulum", *sys.argv[1:]])
print(json.dumps(events))
sys.exit(status)
"""
SETTINGS = ("jax_compilation_cache_dir", "jax_enable_compilation_cache", "jax_persistent_cache_min_compile_time_secs")


def _events(home, *words):
    """JAX's own count of what became of the programs of a command, in a process whose user has told JAX nothing."""
    of_others = {name: value for name, value in os.environ.items() if name.lower() not in SETTINGS}
    homes = dict.fromkeys(("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"), str(home))
    command = [sys.executable, "-c", COUNTED, *words]
    run = subprocess.run(command, env=of_others | homes, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.slow
def test_the_second_command_compiles_nothing(tmp_path):
    first, second = _events(tmp_path), _events(tmp_path)
    assert first["cache_misses"] > 0
    assert second["cache_hits"] == second["compile_requests_use_cache"] >= first["cache_misses"]
    assert any(tmp_path.rglob("jdyn/**/*-cache"))


@pytest.fixture
def as_jax_comes(tmp_path, monkeypatch):
    """A user who has told JAX nothing, and what the settings are then."""
    before = {name: jax.config.values[name] for name in SETTINGS}
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_enable_compilation_cache", True)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: tmp_path / "home" / "jdyn")
    yield lambda: [jax.config.values[name] for name in SETTINGS]
    for name, value in before.items():
        jax.config.update(name, value)


def test_a_command_leaves_the_settings_as_they_were(as_jax_comes):
    before = as_jax_comes()
    with kept_programs():
        assert as_jax_comes() == [str(user_folder()), True, 0.0]
    assert as_jax_comes() == before
    with contextlib.suppress(KeyError), programs_made_anew():
        assert not as_jax_comes()[1]
        raise KeyError
    assert as_jax_comes() == before


def test_commands_keep_programs_unless_told_not_to(as_jax_comes, monkeypatch):
    seen = []
    monkeypatch.setattr("jdyn.cli.program.info", lambda options: seen.append(as_jax_comes()))
    assert main(["info", "pendulum"]) == main(["info", "pendulum", "--no-cache"]) == 0
    assert seen[0] == [str(user_folder()), True, 0.0] and not seen[1][1]


@pytest.mark.parametrize(
    "told", [{"jax_compilation_cache_dir": "elsewhere"}, {"jax_enable_compilation_cache": False}], ids=str
)
def test_what_the_user_told_jax_stays(told, as_jax_comes):
    for name, value in told.items():
        jax.config.update(name, value)
    before = as_jax_comes()
    with kept_programs():
        assert as_jax_comes() == before
    assert not user_folder().exists()


def test_a_folder_that_cannot_be_written_is_no_error(as_jax_comes, capsys):
    user_folder().parent.parent.write_text("a file where a folder should be")
    before = as_jax_comes()
    with kept_programs():
        assert as_jax_comes() == before
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("jdyn: warning: compiled programs are not kept") and str(user_folder()) in line


def _refused(as_jax_comes, capsys):
    before = as_jax_comes()
    with kept_programs():
        assert as_jax_comes() == before
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("jdyn: warning: compiled programs are not kept")
    return line


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o1777])
@pytest.mark.parametrize("level", [0, 1])
def test_a_folder_that_others_may_write_to_is_not_used(as_jax_comes, capsys, mode, level):
    user_folder().mkdir(parents=True)
    folder = [user_folder(), user_folder().parent][level]
    folder.chmod(mode)
    assert f"{folder}: others may write to it" in _refused(as_jax_comes, capsys)


def test_a_folder_above_that_others_may_write_to_is_not_used(as_jax_comes, capsys):
    user_folder().mkdir(parents=True)
    above = user_folder().parents[1]
    above.chmod(0o777)
    assert f"chmod go-w {above}" in _refused(as_jax_comes, capsys)
    # As /tmp is.
    above.chmod(0o1777)
    with kept_programs():
        assert as_jax_comes()[0] == str(user_folder())


@pytest.mark.parametrize("level", [0, 1])
def test_a_folder_of_someone_else_is_not_used(as_jax_comes, capsys, monkeypatch, level):
    user_folder().mkdir(parents=True)
    folder, lstat = [user_folder(), user_folder().parent][level], type(user_folder()).lstat

    def of_another(path):
        found = list(lstat(path))
        found[4] = os.getuid() + 1
        return os.stat_result(found) if path == folder else lstat(path)

    monkeypatch.setattr(type(folder), "lstat", of_another)
    assert "not to you" in _refused(as_jax_comes, capsys)


def test_a_link_to_a_folder_is_not_used(as_jax_comes, capsys, tmp_path):
    (tmp_path / "theirs" / "programs").mkdir(parents=True)
    user_folder().parent.parent.mkdir()
    user_folder().parent.symlink_to(tmp_path / "theirs")
    assert "expected a folder, found a link" in _refused(as_jax_comes, capsys)


def test_folders_are_made_for_their_user_alone(as_jax_comes, monkeypatch):
    before = os.umask(0)
    try:
        for _ in range(2):
            with kept_programs():
                pass
            levels = [user_folder(), *user_folder().parents[:2]]
            assert [level.stat().st_mode & 0o777 for level in levels] == [0o700] * 3
            # One that an older version has made.
            user_folder().parent.chmod(0o755)
    finally:
        os.umask(before)
