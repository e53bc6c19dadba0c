"""Files that appear whole, or not at all."""

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def whole_file(path: pathlib.Path, mode: str) -> Iterator[Any]:
    """A new file to write, which takes its name, and the place of an older one, once everything is written.

    Args:
        path: Of the file.
        mode: `"w"` for text, `"wb"` for bytes. What a process that was killed has left is overwritten.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, mode) as file:
            yield file
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
