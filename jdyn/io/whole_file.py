"""Files that appear whole, or not at all."""

import contextlib
import hashlib
import os
import pathlib
import re
import secrets
import shutil
import socket
import stat
import time
from collections.abc import Iterator
from typing import Any

# After this time what is unfinished is left, whatever its process does [s].
OLD = 24 * 3600.0
# Numbers of processes are those of a machine, and several may share a folder.
MACHINE = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
# Names that are in use in this process.
_ours: set[str] = set()


@contextlib.contextmanager
def whole_file(path: pathlib.Path, mode: str, *, tidy: bool = True) -> Iterator[Any]:
    """A new file to write, which takes its name, and the place of an older one, once everything is written.

    Args:
        path: Of the file.
        mode: `"w"` for text, `"wb"` for bytes.
        tidy: Whether to look for what killed processes have left of it; not where there are many files.
    """
    if tidy:
        remove_unfinished(path.parent, path.name)
    with unfinished_name(path) as unfinished:
        # Nobody else has this name, so that no link or file of another one is written to.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(unfinished, flags, 0o666)
        try:
            with open(descriptor, mode) as file:
                yield file
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def unfinished_name(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A name beside a path for what is written before it takes its place; `remove_unfinished` knows it."""
    name = f".{path.name}.{MACHINE}-{os.getpid()}.{secrets.token_hex(8)}"
    _ours.add(name)
    try:
        yield path.with_name(name)
    finally:
        _ours.discard(name)


def remove_unfinished(folder: pathlib.Path, name: str | None = None) -> None:
    """Remove what processes that were killed have left in a folder: own files with names that `unfinished_name` makes,
    whose process on this machine has ended, or which are a day old.

    Args:
        folder: Where to look.
        name: Of the file that would have been written; that of any if left out.
    """
    what = ".+" if name is None else re.escape(name)
    pattern = re.compile(rf"\.{what}\.(?:([0-9a-f]{{8}})-)?(\d{{1,9}})(?:\.[0-9a-f]{{16}})?")
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        found = [(entry, match) for entry in entries if (match := pattern.fullmatch(entry.name))]
        for entry, match in found:
            machine, process = match[1] or MACHINE, int(match[2])
            if entry.name not in _ours and _is_left(entry.stat(follow_symlinks=False), machine, process):
                _remove(pathlib.Path(entry.path))


def _is_left(status, machine, process):
    if status.st_uid != os.getuid() or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return False
    ended = machine == MACHINE and (process == os.getpid() or not _runs(process))
    return ended or time.time() - status.st_mtime > OLD


def _runs(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
