"""How the command line ends where others end it."""

import signal
import subprocess
import sys

import pytest

# Ctrl-C at the very import of a module.
INTERRUPTED = """
import os, signal, sys

def interrupt(event, arguments):
    if event == "import" and arguments[0] == {module!r}:
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupt)
from jdyn.cli import main
sys.exit(main(["info", "pendulum"]))
"""


@pytest.mark.parametrize(
    "module",
    [
        "jdyn.cli.parser",
        "jax",
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("jaxlib", "matplotlib")),
    ],
)
def test_an_interruption_ends_imports_without_a_word(module):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED.format(module=module)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.slow
def test_a_reader_that_ends_is_no_error():
    words = [sys.executable, "-m", "jdyn", "info", "panda"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (141, "")
