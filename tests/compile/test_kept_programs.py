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
