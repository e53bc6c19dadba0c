"""Planar robots as tables with one line for each link."""

import math
import os
import pathlib
from typing import NamedTuple

from jdyn.model import ModelError
from jdyn.terminal.messages import bulleted

MAX_BYTES = 2**20


class Link(NamedTuple):
    """A rectangular link: `length` [m], `mass` [kg], `width` [m]."""

    length: float
    mass: float
    width: float


def load_links(path: str | os.PathLike) -> tuple[Link, ...]:
    """The links of a robot file, base to tip.

    ```
    # Two links.
    # length [m]  mass [kg]  width [m]
    1.0           1.0        0.1
    0.5           0.4        0.1      # the gripper is in here
    ```

    Every line has the three numbers of a link, in this order; empty lines and comments after a `#` are ignored.

    Args:
        path: A text file in UTF-8.

    Raises:
        ModelError: if the file cannot be read, has no link, or has other lines, of which it names the first ten.
    """
    label, links, problems = str(path), [], []
    for number, line in enumerate(_text(path, label).splitlines(), start=1):
        words = line.partition("#")[0].split()
        try:
            links += [_link(words)] if words else []
        except ValueError as problem:
            problems.append(f"line {number}: {problem}")
    if not links and not problems:
        problems.append("no link: expected a line of length, mass and width for each")
    if problems:
        raise ModelError(f"{label}: not a robot file" + bulleted(problems))
    return tuple(links)


def _text(path, label) -> str:
    try:
        with pathlib.Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ModelError(f"{label}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise ModelError(f"{label}: larger than {MAX_BYTES // 2**20} MB, which no table of links is")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ModelError(f"{label}: expected a text file in UTF-8") from None


def _link(words: list[str]) -> Link:
    names = Link._fields
    if len(words) != len(names):
        raise ValueError(f"expected {len(names)} numbers, {', '.join(names)}, got {len(words)}: {' '.join(words)!r}")
    return Link(*(_positive(name, word) for name, word in zip(names, words, strict=True)))


def _positive(name: str, word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise ValueError(f"{name}: expected a finite positive number, got {word!r}")
    return number
