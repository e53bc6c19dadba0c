"""The words of the command line, which come without JAX."""

import importlib
import inspect
import os
import pathlib
import subprocess
import sys
import time

import pytest

import jdyn
from jdyn.cli.common import CONTACTS as CONTACTS_OF_COMMANDS
from jdyn.cli.common import load_scene, start_of
from jdyn.cli.parser import CHANNELS, CONTACTS, LOOKS, PARTS, ROBOTS, parser
from jdyn.identification.channels import CHANNELS as CHANNELS_OF_LOGS
from jdyn.identification.standard import PARTS as PARTS_OF_MODELS
from jdyn.studies.cloutier1995 import INTEGRATIONS, Session
from jdyn.studies.prrr.files import QUANTITIES
from jdyn.studies.prrr.options import session_of
from jdyn.studies.prrr.words import INTEGRATIONS as WORDS_OF_INTEGRATIONS
from jdyn.studies.prrr.words import QUANTITIES as WORDS_OF_QUANTITIES
from jdyn.view.look import LOOKS as LOOKS_OF_VIEWERS

SCRIPT = """
import sys
from jdyn.cli import main
try:
    status = main({words!r})
except SystemExit as stop:
    status = stop.code
print("jax" in sys.modules, status)
"""


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--help"], 0), (["--version"], 0), (["sweep", "--help"], 0), (["prrr", "--help"], 0),
        (["identify", "--help"], 0), (["view", "--help"], 0), (["prrrfdt", "--help"], 0), (["world", "--help"], 0),
        ([], 2), (["nonsense"], 2), (["sweep", "--kp", "x", "y"], 2),
        (["simulate", "panda", "--plot", "nowhere/motion.png"], 2), (["prrr", "--integration", "euler"], 2),
    ],
)  # fmt: skip
def test_help_and_errors_come_without_jax(words, status, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(jdyn.__file__).parents[1])}
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(words=words)],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    # 0.05 s alone on two cores, beside 3 s with JAX.
    assert time.perf_counter() - started < 1.5
    assert done.stdout.splitlines()[-1] == f"False {status}", done.stderr


def test_defaults_are_those_of_a_session():
    assert session_of(parser().parse_args(["prrr"])) == Session()
    assert WORDS_OF_INTEGRATIONS == tuple(INTEGRATIONS) and WORDS_OF_QUANTITIES == tuple(QUANTITIES)
    options = parser().parse_args(["prrrfdt"])
    assert (options.gravity, options.friction) == (Session.gravity, Session.friction)


def test_help_names_every_robot():
    assert ROBOTS == tuple(jdyn.ROBOTS)


def test_parts_are_those_that_can_be_identified():
    assert PARTS == PARTS_OF_MODELS and CHANNELS == CHANNELS_OF_LOGS


def test_contacts_are_those_of_the_commands():
    assert CONTACTS == tuple(CONTACTS_OF_COMMANDS)


def test_looks_are_those_of_the_viewer():
    assert LOOKS == LOOKS_OF_VIEWERS


def test_the_package_shows_its_names():
    """Also the functions `sweep` and `view`, whose folders have their names."""
    assert {"ABA", "load", "sweep", "view", "studies", "__version__"} <= set(dir(jdyn))
    assert set(dir(jdyn)).isdisjoint({"TYPE_CHECKING", "importlib", "sys", "types", "face", "xla_flags", "io", "array"})
    assert inspect.isfunction(jdyn.sweep) and inspect.isfunction(jdyn.view)
    script = "import inspect, jdyn.sweep, jdyn.view; assert all(map(inspect.isfunction, (jdyn.sweep, jdyn.view)))"
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(AttributeError, match="module 'jdyn' has no attribute 'nothing'"):
        jdyn.nothing  # noqa: B018


def test_modules_of_names_are_imported_as_they_are_called():
    """As attributes and by `from`, each with the names of the face alone in its tab completion."""
    for module in ("actuators", "constraints", "contact", "control", "designs", "elements", "identification",
                   "planning", "solvers", "studies", "transmissions", "tuning"):  # fmt: skip
        shown, imported = getattr(jdyn, module), importlib.import_module(f"jdyn.{module}")
        names = [name for name in dir(shown) if not name.startswith("_")]
        assert len(names) > 2 and all(getattr(imported, name) is getattr(shown, name) for name in names), module


SWING = """<mujoco><worldbody><body name="rod"><joint/><inertial pos="0 0 -1" mass="1" diaginertia="1 1 1"/></body>
</worldbody><keyframe><key name="level" qpos="1.5"/></keyframe></mujoco>"""


def test_a_start_is_numbers_or_the_name_of_a_configuration(tmp_path):
    (tmp_path / "swing.xml").write_text(SWING)

    def start(*words):
        options = parser().parse_args(["simulate", str(tmp_path / "swing.xml"), "--q0", *words])
        return start_of(options, load_scene(options)).tolist()

    assert start("level") == [1.5] and start("qpos0") == [0] and start("-0.25") == [-0.25]
    with pytest.raises(ValueError, match=r"--q0: .*swing\.xml names no configuration 'lovel'; there are qpos0, level"):
        start("lovel")
    with pytest.raises(ValueError, match=r"--q0: expected numbers or one name, got level 1\.0"):
        start("level", "1")
