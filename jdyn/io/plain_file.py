"""Files that others may have made: none that is a link, a pipe or a device, or larger than it can rightly be."""

from __future__ import annotations

import os
import pathlib
import stat

KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


def read_plain(folder: pathlib.Path, name: str, most: int) -> bytes:
    """Content of a file within a folder, which no link leads out of.

    Args:
        folder: Where it is; may be a link itself.
        name: Path of the file from there, with `/`.
        most: Largest size [bytes].

    Raises:
        FileNotFoundError: if there is none.
        OSError: if it cannot be read.
        ValueError: if it is no file, is larger, or is reached by a link.
    """
    path = within(folder, name)
    # A pipe that took the place of the file meanwhile would otherwise be waited for.
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        _expect_file(path, status)
        if status.st_size > most:
            raise ValueError(f"{path}: expected at most {most} bytes, found {status.st_size}")
        return file.read(most + 1)


def within(folder: pathlib.Path, name: str) -> pathlib.Path:
    """The path of something in a folder, which need not be there.

    Raises:
        ValueError: if it is reached by a link, or by what is no folder.
    """
    path = folder
    *folders, last = name.split("/")
    for part in folders:
        path = path / part
        try:
            status = path.lstat()
        except FileNotFoundError:
            return folder / name
        if not stat.S_ISDIR(status.st_mode):
            raise ValueError(f"{path}: expected a folder, found {kind_of(status)}")
    path = path / last
    if path.is_symlink():
        raise ValueError(f"{path}: expected a file, found a link")
    return path


def expect_file(path: str | os.PathLike) -> None:
    """Raise a ValueError if there is something at a path that is no file, nor a link to one: to open a pipe would wait
    for its other end."""
    _expect_file(path, os.stat(path))


def _expect_file(path, status):
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path}: expected a file, found {kind_of(status)}")


def kind_of(status: os.stat_result) -> str:
    """Kind of a file by its status, in words."""
    return KINDS.get(stat.S_IFMT(status.st_mode), "a file")
