"""Names of JAX that are not public: where the library takes them from, and whether they are there."""

import ast
import importlib
import pathlib

import pytest

import jdyn

PACKAGE = pathlib.Path(jdyn.__file__).parent
PRIVATE = "jax._src", "jax.interpreters", "jax.extend", "jaxlib.mlir"
# Folders that may take them: what knows compilers, and what counts operations of programs.
ALLOWED = "execution", "studies"


def _taken():
    """File, module and name of each."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PRIVATE):
                for alias in node.names:
                    yield path.relative_to(PACKAGE), node.module, alias.name


@pytest.mark.parametrize(("path", "module", "name"), list(_taken()), ids=str)
def test_is_there_and_taken_where_it_may_be(path, module, name):
    assert path.parts[0] in ALLOWED
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError:
        pytest.fail(f"{path} needs {module}, which this version of JAX does not have")
    try:
        whole = hasattr(found, name) or importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        whole = False
    assert whole, f"{path} needs {name} of {module}, which this version of JAX does not have"


def test_the_backend_of_processors_is_asked_for_in_one_place():
    """`xla_flags.py` asks a private module that JAX has imported by then."""
    bridge = importlib.import_module("jax._src.xla_bridge")
    assert callable(bridge.backends_are_initialized) and callable(bridge.default_backend)
    users = [path for path in PACKAGE.rglob("*.py") if "xla_bridge" in path.read_text(encoding="utf-8")]
    assert [path.name for path in users] == ["xla_flags.py"]
