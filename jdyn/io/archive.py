"""Arrays in one file: NumPy's .npz format, with a header that gives the kind and version of the content."""

import hashlib
import json
import math
import os
import pathlib
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from jdyn.io.plain_file import expect_file
from jdyn.io.whole_file import whole_file

HEADER = "header.json"
# The comment that ends the file has the digest of all that stands before.
MARK = b"jdyn sha256 "
DIGEST = hashlib.sha256().digest_size * 2
# What is larger is not compressed [bytes]: a small file that unpacks to more than that is not made by jdyn.
MOST_UNPACKED = 2**28
# Files of older versions are compressed, whatever their size.
MOST_GAIN = 16
# Exceptions that NumPy and zipfile raise if bytes are missing or changed.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, AttributeError, EOFError, KeyError, MemoryError, NotImplementedError,
    OSError, OverflowError, RecursionError, RuntimeError, SyntaxError, TypeError, ValueError, tokenize.TokenError,
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
    text = json.dumps({"format": f"jdyn {kind}", "version": version, "sealed": True, **header}, ensure_ascii=False)
    entries: dict[str, Any] = {HEADER: np.frombuffer(text.encode(), np.uint8), **arrays}
    large = sum(np.asarray(x).nbytes for x in entries.values()) > MOST_UNPACKED
    with whole_file(path, "w+b") as file:
        (np.savez if large else np.savez_compressed)(file, **entries)
        with zipfile.ZipFile(file, "a") as archive:
            archive.comment = MARK + b"0" * DIGEST
        digest = _digest(file)
        file.seek(-DIGEST, os.SEEK_END)
        file.write(digest)


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
    expect_file(path)
    with open(path, "rb") as file:
        try:
            sealed = _check_digest(file)
            arrays = _arrays(file)
            header = json.loads(arrays.pop(HEADER).tobytes().decode())
            found, written = header.pop("format"), header.pop("version")
            if header.pop("sealed", False) and not sealed:
                raise ValueError("its end is missing")
        except DAMAGE as error:
            raise ValueError(
                f"{path}: expected a jdyn {kind}, found a damaged or a different file ({error})"
            ) from error
    if found != f"jdyn {kind}":
        raise ValueError(f"{path}: expected a jdyn {kind}, found a {found!s:.80}")
    if type(written) is not int or not 1 <= written <= version:
        raise ValueError(f"{path}: written in version {written!s:.20} of its format; this jdyn reads up to {version}")
    return arrays, header


def _check_digest(file):
    """Tell whether the file ends with its digest; older ones do not.

    Raises:
        ValueError: if it is another digest.
    """
    file.seek(0, os.SEEK_END)
    if file.tell() < DIGEST + len(MARK):
        return False
    file.seek(-DIGEST - len(MARK), os.SEEK_END)
    mark, written = file.read(len(MARK)), file.read()
    if mark != MARK:
        return False
    if written != _digest(file):
        raise ValueError("its digest is another one")
    return True


def _digest(file):
    """Digest of all but the last bytes, which are those of the digest."""
    file.flush()
    left, found = os.fstat(file.fileno()).st_size - DIGEST, hashlib.sha256()
    file.seek(0)
    while left > 0 and (block := file.read(min(left, 2**20))):
        found.update(block)
        left -= len(block)
    return found.hexdigest().encode()


def _arrays(file):
    """Entries by name, each with the shape, type and size that it says. Pickled objects, which could run code, are
    refused; reading verifies checksums."""
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        if len(set(names)) < len(names) or not all(entry.filename.endswith(".npy") for entry in entries):
            raise ValueError("expected arrays of different names")
        packed = os.fstat(file.fileno()).st_size
        if (unpacked := sum(entry.file_size for entry in entries)) > max(2 * MOST_UNPACKED, MOST_GAIN * packed):
            raise ValueError(f"its {packed} bytes unpack to {unpacked}")
        return {name: _array(archive, entry) for name, entry in zip(names, entries, strict=True)}


def _array(archive, entry):
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        read: Any = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
        if dtype.hasobject or math.prod(shape) * dtype.itemsize != entry.file_size - stream.tell():
            raise ValueError(f"{entry.filename!s:.80}: expected numbers of shape {shape!s:.80}")
    with archive.open(entry) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)
