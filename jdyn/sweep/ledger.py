"""Which chunks of a store are whole."""

from __future__ import annotations

import json
import os

from jdyn.io.plain_file import read_plain
from jdyn.io.whole_file import whole_file
from jdyn.sweep.contents import Contents, digest_of
from jdyn.sweep.layout import LEDGER, Output

# Largest entry [bytes].
MOST_ENTRY = 2**20


class Ledger:
    """A folder with a small file for each chunk that is finished: its store, its number, and digests of its files.

    A chunk counts only while all of that holds, so neither a file that is lost or changed, nor one that is in another's
    place, passes for what was computed.
    """

    def __init__(self, contents: Contents):
        self._contents = contents

    def lacks(self, chunk: int) -> str | None:
        """Reason why a chunk is not whole, in words: nothing if it is not finished, or what is damaged. None if all of
        its files are as they were written."""
        contents = self._contents
        try:
            written = json.loads(read_plain(contents.path, _name(chunk), MOST_ENTRY))
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, RecursionError) as error:
            return str(error)
        try:
            return None if written == self._entry(chunk) else "they are not as they were written"
        except (OSError, ValueError) as error:
            return str(error)

    def enter(self, chunk: int) -> None:
        """Note that a chunk is finished, whole or not at all, also after a crash of the machine."""
        with whole_file(self._contents.path / _name(chunk), "w", tidy=False) as file:
            file.write(json.dumps(self._entry(chunk)))
            file.flush()
            os.fsync(file.fileno())

    def _entry(self, chunk):
        contents = self._contents
        files = {
            name: digest_of(read_plain(contents.path, output.file(name, chunk), most_packed(output, contents.chunk)))
            for name, output in contents.outputs.items()
            if output.bytes
        }
        return {"store": contents.seal, "chunk": chunk, "files": files}


def most_packed(output: Output, lanes: int) -> int:
    """Largest file of so many lanes: what cannot be compressed grows a little."""
    return lanes * output.bytes * 9 // 8 + 1024


def _name(chunk):
    return f"{LEDGER}/{chunk}.json"
