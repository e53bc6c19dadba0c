"""TOML files whose problems are named by line."""

from __future__ import annotations

import math
import pathlib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from jdyn.model.messages import known

T = TypeVar("T")


class Table:
    """A table of a file, whose entries are taken one by one; what nobody takes is refused.

    Attributes:
        entries: What is left of it.
        path: Names of the tables above, and its own.
        where: From a path to the file and line, in words.
    """

    def __init__(self, entries: Mapping[str, Any], path: tuple[str, ...], where: Callable[[tuple[str, ...]], str]):
        self.entries, self.path, self.where, self._taken = dict(entries), path, where, []

    @classmethod
    def read(cls, path: pathlib.Path) -> Table:
        """The whole file.

        Raises:
            OSError: if it cannot be read.
            ValueError: if it is not TOML, with the line.
        """
        try:
            text = path.read_text(encoding="utf-8")
            return cls(tomllib.loads(text), (), lambda keys: f"{path}:{_line(text, keys)}")
        except ValueError as error:
            raise ValueError(f"{path}: not a TOML file: {error}") from error

    @classmethod
    def of(cls, entries: Mapping[str, Any], source: str) -> Table:
        """Entries that are in no file."""
        return cls(entries, (), lambda keys: source)

    def take(self, key: str, read: Callable[[Any], T], default: Any = ...) -> T:
        """An entry as `read` makes it; one without a default has to be there."""
        self._taken.append(key)
        if key not in self.entries:
            if default is ...:
                raise self.error(key, "expected an entry, there is none")
            return default
        try:
            return read(self.entries.pop(key))
        except (TypeError, ValueError) as error:
            raise self.error(key, str(error)) from error

    def table(self, key: str) -> Table:
        """A table in this one; empty if there is none."""
        return Table(self.take(key, mapping, {}), (*self.path, key), self.where)

    def tables(self) -> dict[str, Table]:
        """All entries, which have to be tables."""
        return {key: self.table(key) for key in list(self.entries)}

    def close(self) -> None:
        """Raise a ValueError if an entry is left."""
        for key in self.entries:
            raise self.error(key, f"there is no such entry here; {known(key, self._taken)}")

    def error(self, key: str, message: str) -> ValueError:
        keys = (*self.path, key)
        return ValueError(f"{self.where(keys)}: {'.'.join(keys)}: {message}")


def _line(text: str, keys: tuple[str, ...]) -> int:
    """Where an entry stands, or the table or entry around it."""
    found, table = 1, ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[([^\[\]]+)\]\s*(#.*)?$", line):
            table = _names(header[1])
            here = table
        elif entry := re.match(r"\s*((?:[\w-]|\"[^\"]*\"|'[^']*'|\s*\.\s*)+?)\s*=", line):
            here = (*table, *_names(entry[1]))
        else:
            continue
        if here and here == keys[: len(here)]:
            found = number
    return found


def _names(dotted: str) -> tuple[str, ...]:
    """`a."b.c".d` as ("a", "b.c", "d")."""
    return tuple(name.strip("\"'") for name in re.findall(r"[\w-]+|\"[^\"]*\"|'[^']*'", dotted))


# Readers of values.


def mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected a table, got {value!r}")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {value!r}")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {value!r}")
    return value


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {value!r}")
    return float(value)


def positive(value: Any) -> float:
    if number(value) <= 0:
        raise ValueError(f"expected a positive number, got {value!r}")
    return float(value)


def count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"expected a whole number of at least 1, got {value!r}")
    return value


def whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a whole number of at least 0, got {value!r}")
    return value


def numbers(value: Any) -> list[float]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"expected a list of numbers, got {value!r}")
    return [number(x) for x in value]


def texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"expected a list of names, got {value!r}")
    return [text(x) for x in value]


def choice(choices: Sequence[str]) -> Callable[[Any], str]:
    """Reads one of the choices."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"expected {' or '.join(map(repr, choices))}, got {value!r}")
        return value

    return read
