"""Worlds and their motions in files: arrays, and a description of what they belong to.

Nothing in a file is run. A file names classes, which are looked up among those of jdyn and those that the caller gives,
and has one value for each of their fields.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jdyn.array import Structure, with_fields
from jdyn.io.archive import load_archive, save_archive
from jdyn.simulation.parts import Known
from jdyn.terminal.messages import short

VERSION = 1
T = TypeVar("T")

# What JSON represents.
PLAIN = (type(None), bool, int, float, str)


def save(path: str | os.PathLike, kind: str, thing: Any) -> None:
    """Write something made of modules, structures, tuples, arrays and numbers to one file.

    Args:
        path: The file; an existing one is replaced.
        kind: Kind of content, in words.
        thing: The content.

    Raises:
        ValueError: if a part of it, such as a function, cannot be written.
    """
    arrays: dict[str, np.ndarray] = {}
    described = _described(thing, kind, arrays)
    save_archive(path, kind, VERSION, arrays, {"content": described})


def load(path: str | os.PathLike, kind: str, expected: type[T], classes: Sequence[type] = ()) -> T:
    """Read what `save` wrote.

    Args:
        path: The file.
        kind: Expected kind of content.
        expected: Its class.
        classes: Classes that are not jdyn's.

    Raises:
        OSError: if there is no such file, or none that may be read.
        ValueError: if it is damaged, something else, or of a newer version, or has a class that is not known.
    """
    arrays, header = load_archive(path, kind, VERSION)
    known = {_name(each): each for each in classes}
    try:
        thing = _made(header["content"], arrays, known)
    except (KeyError, TypeError, AttributeError, IndexError, ImportError) as error:
        raise ValueError(f"{path}: expected a jdyn {kind}, found one that lacks {error}") from error
    except _UnknownClass as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(thing, expected):
        raise ValueError(f"{path}: expected a jdyn {kind}, found a {type(thing).__name__}")
    return thing


class _UnknownClass(Exception):
    pass


def _described(x: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    """Description of a value for JSON; arrays are put aside."""

    def inner(value: Any, name: Any) -> Any:
        return _described(value, f"{where}.{name}", arrays)

    if isinstance(x, Known):
        return {"known": inner(x.system, "system")}
    if isinstance(x, PLAIN):
        return x
    if isinstance(x, jax.Array | np.ndarray | np.generic):
        arrays[f"a{len(arrays)}"] = np.asarray(x)
        return {"array": f"a{len(arrays) - 1}", "numpy": not isinstance(x, jax.Array)}
    if isinstance(x, type):
        return {"class": _name(x)}
    if isinstance(x, dict) and all(isinstance(key, str) for key in x):
        return {"dict": [[key, inner(value, key)] for key, value in x.items()]}
    if isinstance(x, tuple) and (names := getattr(x, "_fields", ())):
        return {"of": _name(type(x)), "items": [inner(value, name) for name, value in zip(names, x, strict=True)]}
    if type(x) in (tuple, list):
        return {type(x).__name__: [inner(value, number) for number, value in enumerate(x)]}
    if dataclasses.is_dataclass(x):
        fields = {field.name: getattr(x, field.name) for field in dataclasses.fields(x)}
        return {"of": _name(type(x)), "fields": {name: inner(value, name) for name, value in fields.items()}}
    raise ValueError(f"save: {where} is {short(x)}, which no file can hold; use an equinox.Module with numbers")


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _made(x: Any, arrays: dict[str, np.ndarray], known: dict[str, type]) -> Any:
    """Value from its description."""
    if isinstance(x, PLAIN):
        return x

    def inner(value: Any) -> Any:
        return _made(value, arrays, known)

    match x:
        case {"known": system}:
            return Known.of(inner(system))
        case {"array": name, "numpy": numpy}:
            return arrays[name] if numpy else jnp.asarray(arrays[name])
        case {"class": name}:
            return _class(name, known)
        case {"dict": items}:
            return {key: inner(value) for key, value in items}
        case {"tuple": items}:
            return tuple(map(inner, items))
        case {"list": items}:
            return list(map(inner, items))
        case {"of": name, "items": items}:
            return _class(name, known)._make(map(inner, items))
        case {"of": name, "fields": fields}:
            kind = _class(name, known)
            if {field.name for field in dataclasses.fields(kind)} != set(fields):
                raise KeyError(f"fields of {name}")
            return with_fields(object.__new__(kind), **{field: inner(value) for field, value in fields.items()})
    raise TypeError(f"a value, {short(x)}")


def _class(name: str, known: dict[str, type]) -> Any:
    """A class of jdyn, or one that is known, by its name: one whose objects are data."""
    if name in known:
        return known[name]
    module, _, path = name.partition(":")
    if not (module.startswith("jdyn.") and module.replace(".", "").isidentifier()):
        raise _UnknownClass(f"it has objects of {short(name)}, a class that is not jdyn's; give it as classes=[...]")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if not (isinstance(found, type) and found.__module__ == module and _holds_data(found)):
        raise TypeError(f"a class, {short(name)}")
    return found


def _holds_data(kind: type) -> bool:
    return issubclass(kind, eqx.Module | Structure | tuple) or dataclasses.is_dataclass(kind)
