"""Arrays in one file: NumPy's own .npz, with a header that says what it holds and in which version."""

import json
import os
import pathlib
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

HEADER = "header.json"
# What NumPy and zipfile raise where bytes were lost or changed.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, AttributeError, EOFError, KeyError, MemoryError, NotImplementedError,
    OSError, OverflowError, RuntimeError, SyntaxError, TypeError, ValueError,
)  # fmt: skip


def save_archive(
    path: str | os.PathLike, kind: str, version: int, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]
) -> None:
    """Write arrays and a header to one file, which appears whole or not at all.

    Args:
        path: The file; one that exists is replaced.
        kind: What the file holds, in words.
        version: Of the format of this kind.
        arrays: By name.
        header: Anything that JSON can say.
    """
    path = pathlib.Path(path)
    text = json.dumps({"format": f"jdyn {kind}", "version": version, **header}, ensure_ascii=False)
    entries: dict[str, Any] = {HEADER: np.frombuffer(text.encode(), np.uint8), **arrays}
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, "xb") as file:
            np.savez_compressed(file, **entries)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def load_archive(path: str | os.PathLike, kind: str, version: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the header of a file that `save_archive` wrote.

    Args:
        path: The file.
        kind: What it has to hold.
        version: The newest that is understood.

    Raises:
        OSError: if there is none, or none that may be read.
        ValueError: if it is damaged, holds something else, or was written by a newer version.
    """
    with open(path, "rb") as file:
        try:
            # Reading an entry compares it with its checksum; pickled objects, which could run code, are refused.
            with np.load(file, allow_pickle=False) as entries:
                arrays = {name: entries[name] for name in entries.files}
            header = json.loads(arrays.pop(HEADER).tobytes().decode())
            found, written = header.pop("format"), header.pop("version")
        except DAMAGE as error:
            raise ValueError(
                f"{path}: expected a jdyn {kind}, found a damaged or a different file ({error})"
            ) from error
    if found != f"jdyn {kind}":
        raise ValueError(f"{path}: expected a jdyn {kind}, found a {found}")
    if not isinstance(written, int) or written > version:
        raise ValueError(f"{path}: written in version {written} of its format, this jdyn reads up to {version}")
    return arrays, header
