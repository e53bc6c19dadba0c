"""Locate the mesh files of a robot description, without opening them and only in the named folders."""

import os
import pathlib
import posixpath
from collections.abc import Iterable


class MeshFolders:
    """The folders that a robot description may refer to.

    Args:
        folder: Folder of the description; `None` if it is text without a file.
        package_dirs: Further folders named by the user: packages, or folders that contain packages.
    """

    def __init__(self, folder: pathlib.Path | None, package_dirs: Iterable[str | os.PathLike] = ()):
        if isinstance(package_dirs, str | os.PathLike):
            package_dirs = [package_dirs]
        named = [pathlib.Path(os.path.abspath(directory)) for directory in package_dirs]
        self._named = named
        self._ancestors = [] if folder is None else [folder, *folder.parents]
        package = [a for a in self._ancestors if (a / "package.xml").is_file()]
        self._roots = [*self._ancestors[:1], *named, *package[:1]]

    def find(self, name: str) -> str | None:
        """The path of a mesh, or `None` if it lies outside the named folders.

        A `package://` name is returned unchanged if its package is not found.
        """
        scheme, separator, rest = name.strip().replace("\\", "/").partition("://")
        if scheme == "package":
            package, _, rest = posixpath.normpath(rest.lstrip("/")).partition("/")
            return self._in_package(package, rest, name)
        if not separator:
            candidates = [root / scheme for root in self._roots]
        elif scheme == "file" and rest.startswith("/"):
            candidates = [pathlib.Path(rest)]
        else:
            return None
        paths = [pathlib.Path(os.path.normpath(path)) for path in candidates]
        return _first_existing([path for path in paths if any(path.is_relative_to(root) for root in self._roots)])

    def _in_package(self, package: str, rest: str, name: str) -> str | None:
        if package in (".", ".."):
            return None
        named = [d if d.name == package else d / package for d in self._named]
        around = [ancestor for ancestor in self._ancestors if ancestor.name == package]
        return _first_existing([top / rest for top in (*named, *around) if top.is_dir()]) or name


def _first_existing(paths: list[pathlib.Path]) -> str | None:
    """The first path that is a file, else the first path, else `None`."""
    return next((str(path) for path in paths if path.is_file()), str(paths[0]) if paths else None)
