"""The public names and their docstrings: what the reference shows, and what has examples."""

import ast
import functools
import importlib
import inspect
import pathlib
import types
import typing
from collections.abc import Iterator
from typing import Any

import jdyn

FACE = pathlib.Path(jdyn.__file__).with_name("face") / "__init__.py"


@functools.cache
def names() -> dict[str, tuple[str, ...]]:
    """The names of `import jdyn` by the folder that they are from, in the order of `jdyn/face`."""
    found: dict[str, list[str]] = {}
    for folder, name in _imports(ast.parse(FACE.read_text(encoding="utf-8"))):
        found.setdefault(folder, []).append(name)
    return {folder: tuple(there) for folder, there in found.items()}


def modules() -> dict[str, types.ModuleType]:
    """Modules among these names, such as `jdyn.losses`."""
    values = {name: getattr(jdyn, name) for there in names().values() for name in there}
    return {name: value for name, value in values.items() if isinstance(value, types.ModuleType)}


def own_names(module: types.ModuleType) -> list[str]:
    """Public names of a module: what it imports for others, or else what it defines."""
    tree = ast.parse(inspect.getsource(module))
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names = [name for _, name in _imports(tree)] or [name for name in defined if not name.startswith("_")]
    return [name for name in names if not isinstance(getattr(module, name), types.ModuleType)]


@functools.cache
def public_name(value: Any) -> str | None:
    """Dotted name by which users call something public."""
    for name in (name for there in names().values() for name in there):
        if getattr(jdyn, name) is value:
            return f"jdyn.{name}"
    for name, module in modules().items():
        for own in own_names(module):
            if getattr(module, own) is value:
                return f"jdyn.{name}.{own}"
    return None


def is_alias(value: Any) -> bool:
    """Tell whether a value is another name of a type, such as `jdyn.Name`."""
    return typing.get_origin(value) is not None


def docstring(folder: str, name: str) -> str:
    """Docstring of a public name. For a value or a type alias it is the string below its assignment."""
    value = getattr(importlib.import_module(folder), name)
    if (callable(value) and not is_alias(value)) or isinstance(value, types.ModuleType):
        return inspect.getdoc(value) or ""
    tree = ast.parse(inspect.getsource(importlib.import_module(folder)))
    source = next((module for module, imported in _imports(tree) if imported == name), None)
    return docstring(source, name) if source else _below_assignment(tree, name)


def found(name: str) -> Any:
    """Object that a dotted name means: an attribute, or a module that nothing has imported yet.

    Raises:
        AttributeError: if there is nothing of this name.
    """
    path, _, rest = name.partition(".")
    value = importlib.import_module(path)
    for part in rest.split(".") if rest else ():
        path = f"{path}.{part}"
        value = getattr(value, part) if hasattr(value, part) else _module(path)
    return value


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that a file imports for others, `from folder import name as name`."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names if alias.asname == alias.name)


def _below_assignment(tree: ast.Module, name: str) -> str:
    for node, below in zip(tree.body, tree.body[1:], strict=False):
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id == name and isinstance(below, ast.Expr):
            return inspect.cleandoc(ast.literal_eval(below.value))
    return ""


def _module(path: str) -> types.ModuleType:
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        raise AttributeError(f"there is no {path}") from None
