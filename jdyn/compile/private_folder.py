"""A folder in which nobody else can put anything."""

from __future__ import annotations

import os
import pathlib
import stat

from jdyn.io.plain_file import kind_of


def make_private(folder: pathlib.Path, levels: int) -> None:
    """Make a folder that its user alone may enter, with all that is missing above it, or make sure that it is one.

    Args:
        folder: Where it is.
        levels: How many of the last folders are for nobody else. Those above may be seen by others, but not changed.

    Raises:
        PermissionError: if somebody else could have put something there, or can.
        OSError: if it cannot be made.
    """
    own = [folder, *folder.parents][:levels]
    # What is above may be reached by links, of which each folder counts.
    above = own[-1].parent
    above.mkdir(mode=0o700, parents=True, exist_ok=True)
    above = above.resolve()
    for level in [*reversed(above.parents), above]:
        _check_above(level)
    for level in reversed(own):
        level.mkdir(mode=0o700, exist_ok=True)
        _check_own(level)


def _check_above(level):
    status = level.stat()
    if status.st_uid not in (0, os.getuid()):
        raise PermissionError(f"{level}: it belongs to the user {status.st_uid}, who may change what is in it")
    shared = stat.S_IWOTH if status.st_gid == os.getgid() else stat.S_IWOTH | stat.S_IWGRP
    # In a folder like /tmp, everyone may add something, and change only what is theirs.
    if status.st_mode & shared and not status.st_mode & stat.S_ISVTX:
        raise PermissionError(f"{level}: others may write to it; chmod go-w {level}")


def _check_own(level):
    status = level.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise PermissionError(f"{level}: expected a folder, found {kind_of(status)}")
    if status.st_uid != os.getuid():
        raise PermissionError(f"{level}: it belongs to the user {status.st_uid}, not to you; delete it")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{level}: others may write to it, and may have; delete it")
    level.chmod(0o700)
