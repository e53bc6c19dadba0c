"""Arrays in one file: NumPy's .npz format, with a header that gives the kind and version of the content."""

import json
import os
import pathlib
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from jdyn.io.whole_file import whole_file

HEADER = "header.json"
# Exceptions that NumPy and zipfile raise if bytes are missing or changed.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, AttributeError, EOFError, KeyError, MemoryError, NotImplementedError,
    OSError, OverflowError, RuntimeError, SyntaxError, TypeError, ValueError, tokenize.TokenError,
)  # fmt: skip


def save_archive(
    path: str | os.PathLike, kind: str, version: int, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]
) -> None:
    """Write arrays and a header to one file, atomically.

    Args:
        path: The file; an existing one is replaced.
        kind: Kind of content, in words.
        version: Version of this kind's format.
        arrays: Arrays by name.
        header: Further entries of the header; anything that JSON can represent.
    """
    path = pathlib.Path(path)
    text = json.dumps({"format": f"jdyn {kind}", "version": version, **header}, ensure_ascii=False)
    entries: dict[str, Any] = {HEADER: np.frombuffer(text.encode(), np.uint8), **arrays}
    with whole_file(path, "wb") as file:
        np.savez_compressed(file, **entries)


def load_archive(path: str | os.PathLike, kind: str, version: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the header of a file written by `save_archive`.

    Args:
        path: The file.
        kind: Expected kind of content.
        version: Newest version that can be read.

    Raises:
        OSError: if the file does not exist or cannot be read.
        ValueError: if it is damaged, contains something else, or has a newer version.
    """
    with open(path, "rb") as file:
        try:
            # Reading an entry verifies its checksum; pickled objects, which could run code, are refused.
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
        raise ValueError(f"{path}: written in version {written} of its format; this jdyn reads up to {version}")
    return arrays, header
