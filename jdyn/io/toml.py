"""TOML files whose problems are named by line."""

from __future__ import annotations

import math
import pathlib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from jdyn.terminal.messages import known, listed, short, short_name

T = TypeVar("T")


class Table:
    """A table of a file, whose entries are taken one by one; what nobody takes is refused.

    Problems are noted, here and in tables of this one, until `check` raises them all.

    Attributes:
        entries: What is left of it.
        path: Names of the tables above, and its own.
        where: From a path to the file and line, in words.
        source: The file, in words.
    """

    def __init__(
        self,
        entries: Mapping[str, Any],
        path: tuple[str, ...],
        where: Callable[[tuple[str, ...]], str],
        source: str,
        problems: list[str] | None = None,
    ):
        self.entries, self.path, self.where, self.source = dict(entries), path, where, source
        self._taken: list[str] = []
        self._problems: list[str] = [] if problems is None else problems

    @classmethod
    def read(cls, path: pathlib.Path) -> Table:
        """The whole file.

        Raises:
            OSError: if it cannot be read.
            ValueError: if it is not TOML, with the line.
        """
        try:
            text = path.read_text(encoding="utf-8")
            return cls(tomllib.loads(text), (), lambda keys: f"{path}:{_line(text, keys)}", str(path))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: not a TOML file: {error}") from error

    @classmethod
    def of(cls, entries: Mapping[str, Any], source: str) -> Table:
        """Entries that are in no file."""
        return cls(entries, (), lambda keys: source, source)

    def take(self, key: str, read: Callable[[Any], T], default: Any = ...) -> T:
        """An entry as `read` makes it; one without a default has to be there.

        Where there is a problem, it is the default or None, which nobody sees who calls `check` before using it.
        """
        self._taken.append(key)
        otherwise: Any = None if default is ... else default
        if key not in self.entries:
            if default is ...:
                self.complain(key, "expected an entry, there is none")
            return otherwise
        try:
            return read(self.entries.pop(key))
        except (TypeError, ValueError) as error:
            self.complain(key, str(error))
            return otherwise

    def table(self, key: str) -> Table:
        """A table in this one; empty if there is none."""
        return Table(self.take(key, mapping, {}), (*self.path, key), self.where, self.source, self._problems)

    def tables(self) -> dict[str, Table]:
        """All entries, which have to be tables."""
        are = {key: isinstance(value, Mapping) for key, value in self.entries.items()}
        tables = {key: self.table(key) for key in are}
        return {key: table for key, table in tables.items() if are[key]}

    def close(self) -> None:
        """Note entries that are left."""
        for key in self.entries:
            self.complain(key, f"there is no such entry here; {known(key, self._taken)}")

    def complain(self, key: str, message: str) -> None:
        """Note a problem with an entry."""
        keys = (*self.path, key)
        self._problems.append(f"{self.where(keys)}: {'.'.join(map(short_name, keys))}: {message}")

    def check(self) -> None:
        """Raise a ValueError that tells all problems, if there are any."""
        if len(self._problems) == 1:
            raise ValueError(self._problems[0])
        if self._problems:
            raise ValueError(listed(self.source, "problem", self._problems))


def _line(text: str, keys: tuple[str, ...]) -> int:
    """Line where an entry stands, or the table or entry around it."""
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
        raise ValueError(f"expected a table, got {short(value)}")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {short(value)}")
    return value


def path(value: Any) -> str:
    if len(text(value)) > 4096 or "\0" in value:
        raise ValueError(f"expected a path, got {short(value)}")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {short(value)}")
    return value


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {short(value)}")
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {short(value)}")
    return float(value)


def positive(value: Any) -> float:
    if number(value) <= 0:
        raise ValueError(f"expected a positive number, got {short(value)}")
    return float(value)


def count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"expected a whole number of at least 1, got {short(value)}")
    return value


def at_most(most: int) -> Callable[[Any], int]:
    """Reads a `count` up to a limit."""

    def read(value: Any) -> int:
        if count(value) > most:
            raise ValueError(f"expected at most {most}, got {short(value)}")
        return value

    return read


def whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"expected a whole number of at least 0, got {short(value)}")
    return value


def numbers(value: Any) -> list[float]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"expected a list of numbers, got {short(value)}")
    return [number(x) for x in value]


def texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"expected a list of names, got {short(value)}")
    return [text(x) for x in value]


def paths(value: Any) -> list[str]:
    return [path(x) for x in texts(value)]


def choice(choices: Sequence[str]) -> Callable[[Any], str]:
    """Reads one of the choices."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"expected {' or '.join(map(repr, choices))}, got {short(value)}")
        return value

    return read
