"""Expansion of xacro files by the package xacro, which is kept from everything but the folders that the user named.

By itself xacro opens every path, `$(eval ...)` calls every function of Python, and `${...}` reaches them all.
"""

import contextlib
import io
import os
import pathlib
import threading
import types
import warnings
import xml.dom.minidom
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jdyn.io.expressions import ExpressionError, evaluate
from jdyn.io.meshes import MeshFolders
from jdyn.io.xml import harmless, read
from jdyn.model import ModelError, ModelWarning
from jdyn.terminal.messages import bulleted, enumerated, short

SUFFIX = ".xacro"
_INSTALL = 'pip install "jdyn[xacro]"'
# Functions for expressions that lead out of them.
_CLOSED = ("type", "vars")
# Parts of xacro's warnings that say nothing about the robot.
_STYLE = ("redefining global symbol", "directly is deprecated")
# xacro has one state for all files.
_expanding = threading.Lock()


class _Refused(ValueError):
    """A file asks for what it may not have."""


class _Arguments(dict[str, str]):
    """The arguments of a file, which remember those that it declares or uses."""

    def __init__(self, given: Mapping[str, Any]):
        # Words of xacro for what is true or false.
        words = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}
        super().__init__(words)
        self.known: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.known.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.known.add(name)
        return super().__getitem__(name)


def is_xacro(source: str | os.PathLike) -> bool:
    """Tell whether a source is the path of a file to be expanded, by its name."""
    return not str(source).lstrip("\ufeff \t\r\n").startswith("<") and os.fspath(source).lower().endswith(SUFFIX)


def has_xacro(text: str) -> bool:
    """Tell whether there is something to expand in a file."""
    return any(mark in text for mark in ("xacro:", "${", "$("))


def expanded(
    source: str | os.PathLike, package_dirs: Iterable[str | os.PathLike], arguments: Mapping[str, Any] | None
) -> str:
    """The text that xacro makes of a file; its lines are those that the command `xacro` prints.

    Args:
        source: Path of the file.
        package_dirs: Folders, besides the file's own, that may contain included files: packages, or folders of
            packages, which `$(find ...)` finds.
        arguments: Values of `<xacro:arg>` by name.

    Raises:
        ModelError: if a file cannot be read, is outside these folders, or cannot be expanded.
        ValueError: if the file has no such argument, or there is no such folder.
        ImportError: if xacro is not installed.

    Warns:
        ModelWarning: once, with what xacro says.
    """
    xacro = _xacro()
    path = pathlib.Path(os.path.abspath(source))
    given = _Arguments(arguments or {})
    with _expanding, _guarded(xacro, MeshFolders(path.parent, package_dirs)):
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                text = xacro.process_file(str(path), mappings=given).toprettyxml(indent="  ")
        # Files are programs, which may raise anything.
        except Exception as error:
            within = xacro.filestack[-1] if xacro.filestack else str(path)
            place = "" if within == str(path) else f"in {within}: "
            raise ModelError(f"{source}: xacro cannot expand it: {place}{_in_words(error, xacro)}") from None
    if unknown := [short(name) for name in given if name not in given.known]:
        there = f"there are {enumerated(sorted(given.known))}" if given.known else "it has none"
        raise ValueError(f"arguments: {source} has no <xacro:arg> called {enumerated(unknown)}; {there}")
    lines = dict.fromkeys(line for line in said.getvalue().splitlines() if line.startswith(("warning: ", "error: ")))
    if lines := [line for line in lines if not any(part in line for part in _STYLE)]:
        warnings.warn(f"{source}: xacro says:{bulleted(lines)}", ModelWarning, stacklevel=2)
    return text


def _xacro() -> Any:
    try:
        import xacro
        import xacro.substitution_args
    except ModuleNotFoundError as error:
        if error.name not in ("xacro", "yaml"):
            raise
        raise ImportError(f"{SUFFIX} files are expanded by xacro, which is not installed: {_INSTALL}") from None
    return xacro


@contextlib.contextmanager
def _guarded(xacro: Any, folders: MeshFolders) -> Iterator[None]:
    """Keep xacro's expressions to numbers and words, and its files to the folders; its state is that of one file."""
    reached: set[str] = set()

    def find(name: str) -> str:
        """The folder of a package; a name that meshes may have, if there is none."""
        if found := folders.packages(name):
            reached.add(name)
            return str(found[0])
        return f"package://{name}"

    def located(name: str) -> str:
        if name.startswith("package://"):
            reached.add(name.removeprefix("package://").partition("/")[0])
            name = folders.find(name) or name
        if name.startswith("package:"):
            raise _Refused(f"{short(name)}: the package is in no folder of package_dirs; name its folder there")
        path = os.path.join(os.path.dirname(xacro.filestack[-1]), name.removeprefix("file://"))
        if not folders.allow(pathlib.Path(path), *reached):
            raise _Refused(
                f"{path} is outside the folder of the file, its package and package_dirs; name its folder there"
            )
        return path

    def parse(_, name: str) -> xml.dom.minidom.Document:
        # The first file is the one that the user named.
        if len(xacro.filestack) > 1:
            name = located(name)
        if not os.path.exists(name):
            xacro.filestack.pop()
            # xacro leaves out what is optional.
            raise xacro.XacroException(exc=FileNotFoundError(f"there is no file {name}"))
        text, label, _ = read(pathlib.Path(name), "xacro")
        return xml.dom.minidom.parseString(harmless(text, label))

    def evaluated(text: str, names: dict[str, Any], _=None) -> Any:
        return evaluate(text, names)

    def substituted(text: str, context: dict[str, Any]) -> str:
        given = context["arg"]
        names = {name: value for name, value in substitution._eval_dict.items() if not name.startswith("_")}
        names |= substitution._eval_dict["__builtins__"]
        names |= {name: substitution.convert_value(value, "auto") for name, value in given.items()}
        names |= {"find": find, "arg": lambda name: substitution.convert_value(given[name], "auto")}
        return str(evaluate(text, names))

    substitution, symbols = xacro.substitution_args, xacro.create_global_symbols()
    for name in _CLOSED:
        symbols["python"].pop(name, None)
    state = {"filestack": None, "macrostack": None, "all_includes": [], "substitution_args_context": {}}
    hooks = {"parse": parse, "safe_eval": evaluated, "abs_filename_spec": located, "_global_symbols": symbols}
    with (
        _replaced(substitution, {"_eval": substituted, "_eval_find": find}),
        _replaced(xacro, {"verbosity": 0} | state | hooks),
    ):
        yield


@contextlib.contextmanager
def _replaced(module: types.ModuleType, names: Mapping[str, Any]) -> Iterator[None]:
    """Give names of a module other values for a while."""
    before = {name: getattr(module, name) for name in names}
    try:
        vars(module).update(names)
        yield
    finally:
        vars(module).update(before)


def _in_words(error: BaseException, xacro: Any) -> str:
    """Message of an error in one line: of what is refused, without the words of xacro around it."""
    cause: Any = error
    while isinstance(cause, xacro.XacroException) and isinstance(cause.exc, Exception):
        cause = cause.exc
    ours = _Refused | ExpressionError | ModelError | FileNotFoundError
    if isinstance(cause, ours) or str(error).startswith("<class"):
        error = cause
    words = " ".join(str(error).split()) or type(error).__name__
    if "unbound prefix" in words:
        words += '; declare xmlns:xacro="http://www.ros.org/wiki/xacro" in <robot>'
    return words
