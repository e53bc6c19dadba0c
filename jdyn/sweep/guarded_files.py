"""A store's files as Zarr may read them."""

from __future__ import annotations

import asyncio
import threading
import warnings
from typing import Any

import numpy as np
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore

from jdyn.io.plain_file import read_plain
from jdyn.sweep.contents import MOST_WORDS, Contents, digest_of
from jdyn.sweep.layout import Output, parameters_chunk
from jdyn.sweep.ledger import Ledger, most_packed


class GuardedFiles(LocalStore):
    """Files whose content is as it was written, and no others.

    A file that is there from the beginning has to have its digest. Of a chunk that is not whole there is none, so that
    its lanes have not run for whoever reads. What a file unpacks to has the size of its lanes: one that says more would
    take as much memory as it likes.
    """

    def __init__(self, contents: Contents):
        super().__init__(contents.path, read_only=True)
        self._contents, self._ledger = contents, Ledger(contents)
        # Whether chunks are whole, by number; Zarr asks in several threads.
        self._whole: dict[int, bool] = {}
        self._lock = threading.Lock()

    def __reduce__(self):
        # Copies, and those of other processes, look for themselves.
        return GuardedFiles, (self._contents,)

    def with_read_only(self, read_only: bool = True) -> GuardedFiles:
        if not read_only:
            raise ValueError(f"{self.root}: these files are only read")
        return self

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        return await asyncio.to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
        if byte_range is not None:
            raise ValueError(f"{self.root / key}: files of a store are read as a whole")
        content = self._content(key)
        return None if content is None else (prototype or default_buffer_prototype()).buffer.from_bytes(content)

    def _content(self, key) -> bytes | None:
        contents = self._contents
        name, _, place = key.partition("/c/")
        if key in contents.sealed:
            output = contents.parameters.get(name)
            most = MOST_WORDS if output is None else most_packed(output, self._lanes(output))
            try:
                content = read_plain(self.root, key, most)
            except FileNotFoundError as error:
                raise ValueError(f"{self.root}: {key} is missing; {AGAIN}") from error
            if digest_of(content) != contents.sealed[key]:
                raise ValueError(f"{self.root}: {key} is not as it was written; {AGAIN}")
            if output is None:
                return content
            lanes = self._lanes(output)
        elif name in contents.outputs and place:
            output, lanes = contents.outputs[name], contents.chunk
            chunk = int(place.partition("/")[0])
            if not self._is_whole(chunk):
                return None
            content = read_plain(self.root, key, most_packed(output, lanes))
        else:
            return None
        if _unpacked(content) != lanes * output.bytes:
            raise ValueError(f"{self.root}: {key} does not hold {lanes} lanes of shape {output.shape}")
        return content

    def _is_whole(self, chunk):
        with self._lock:
            if chunk not in self._whole:
                lacks = self._ledger.lacks(chunk)
                self._whole[chunk] = lacks is None
                if lacks:
                    self._warn(chunk, lacks)
            return self._whole[chunk]

    def _warn(self, chunk, lacks):
        contents = self._contents
        first, after = chunk * contents.chunk, min((chunk + 1) * contents.chunk, contents.size)
        warnings.warn(
            f"{self.root}: lanes {first} to {after - 1} are damaged and count as not_run ({lacks}); the same sweep "
            "computes them again",
            stacklevel=2,
        )

    def _lanes(self, output: Output):
        return min(parameters_chunk(output), self._contents.size)


AGAIN = "the sweep itself writes it anew, with store=... as before"


def _unpacked(content: bytes) -> int | None:
    """Size that a frame of Zstandard says that it unpacks to [bytes] (RFC 8878, 3.1.1.1); None if it does not."""
    if len(content) < 5 or content[:4] != b"\x28\xb5\x2f\xfd":
        return None
    whole, dictionary = content[4] >> 5 & 1, (0, 1, 2, 4)[content[4] & 3]
    length = (1 if whole else 0, 2, 4, 8)[content[4] >> 6]
    start = 6 - whole + dictionary
    field = content[start : start + length]
    if not length or len(field) < length:
        return None
    return int(np.frombuffer(field.ljust(8, b"\0"), "<u8")[0]) + (256 if length == 2 else 0)
