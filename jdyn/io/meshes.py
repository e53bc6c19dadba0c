"""Locate the mesh files and the packages of a robot description, without opening them, in the named folders alone."""

import os
import pathlib
import posixpath
from collections.abc import Iterable

from jdyn.io.notes import Notes
from jdyn.terminal.messages import enumerated


def named_folders(package_dirs: Iterable[str | os.PathLike]) -> list[pathlib.Path]:
    """The folders that a user names, one or several.

    Raises:
        ValueError: naming those that are none.
    """
    named = [package_dirs] if isinstance(package_dirs, str | os.PathLike) else package_dirs
    folders = [pathlib.Path(os.path.abspath(directory)) for directory in named]
    if absent := [str(folder) for folder in folders if not folder.is_dir()]:
        raise ValueError(f"package_dirs: there is no folder {enumerated(absent)}")
    return folders


class MeshFolders:
    """The folders that a robot description may refer to.

    Args:
        folder: Folder of the description; `None` if it is text without a file.
        package_dirs: Further folders named by the user: packages, or folders that contain packages.
    """

    def __init__(self, folder: pathlib.Path | None, package_dirs: Iterable[str | os.PathLike] = ()):
        self._named = named_folders(package_dirs)
        self._ancestors = [] if folder is None else [folder, *folder.parents]
        package = [a for a in self._ancestors if (a / "package.xml").is_file()]
        self._roots = [*self._ancestors[:1], *self._named, *package[:1]]

    def find(self, name: str) -> str | None:
        """The path of a mesh, or `None` if it lies outside the named folders, of which `file://` names a file, too.

        A `package://` name is returned unchanged if its package is not found.
        """
        scheme, separator, rest = name.strip().replace("\\", "/").partition("://")
        if scheme == "package":
            package, _, rest = posixpath.normpath(rest.lstrip("/")).partition("/")
            return self._in_package(package, rest, name)
        if not separator or scheme == "file":
            # A path from / is what it is wherever it starts.
            candidates = [root / (rest if separator else scheme) for root in self._roots]
        else:
            return None
        paths = [pathlib.Path(os.path.normpath(path)) for path in candidates]
        return _first_existing([path for path in paths if any(path.is_relative_to(root) for root in self._roots)])

    def packages(self, name: str) -> list[pathlib.Path]:
        """The folders that a package of this name may be, if they exist: named ones, and those around the file."""
        if name in ("", "..") or pathlib.PurePath(name).name != name:
            return []
        named = [d if d.name == name else d / name for d in self._named]
        around = [ancestor for ancestor in self._ancestors if ancestor.name == name]
        return [top for top in (*named, *around) if top.is_dir()]

    def allow(self, path: pathlib.Path, *packages: str) -> bool:
        """Tell whether a file is in one of the folders or of these packages, with no link that leads out of them."""
        roots = [*self._roots, *(folder for package in packages for folder in self.packages(package))]
        return any(path.resolve().is_relative_to(root.resolve()) for root in roots)

    def _in_package(self, package: str, rest: str, name: str) -> str | None:
        if package in (".", ".."):
            return None
        return _first_existing([top / rest for top in self.packages(package)]) or name


def located(folders: MeshFolders, name: str, shown: str, notes: Notes, packages: str) -> str | None:
    """`MeshFolders.find` of a mesh, with a note about one that is not there.

    Args:
        folders: Where it may be.
        name: As `MeshFolders.find` takes it.
        shown: How notes call it.
        notes: Takes the note.
        packages: Words for files whose folder is not found, such as `"in packages"`.
    """
    path = folders.find(name)
    if path is None:
        notes.add("ignored, mesh files outside the folder of this file and of package_dirs", shown)
    elif path.startswith("package:"):
        notes.add(f"mesh files {packages} that are in no folder of package_dirs", shown)
    elif not os.path.isfile(path):
        notes.add("mesh files that do not exist", shown)
    return path


def _first_existing(paths: list[pathlib.Path]) -> str | None:
    """The first path that is a file, else the first path, else `None`."""
    return next((str(path) for path in paths if os.path.isfile(path)), str(paths[0]) if paths else None)
