"""Models that SDF documents include, from the folders of their files and those that the user names alone."""

import pathlib
import re
from collections.abc import Iterable

from jdyn.io.meshes import MeshFolders
from jdyn.io.sdf_values import Source
from jdyn.io.xml import Element, parse, read
from jdyn.model import ModelError
from jdyn.terminal.messages import short

_VERSION = re.compile(r"\d{1,3}(\.\d{1,3}){0,2}", re.ASCII)
# Models within models, each with a few calls of the reader.
MAX_NESTED = 50
MAX_INCLUDES = 1000
OLDEST, NEWEST = (1, 4), (1, 12)


def version_of(root: Element) -> tuple[int, ...] | None:
    """The version of the format of a document; None if it says none."""
    text = root.attributes.get("version", "").strip()
    return tuple(map(int, text.split("."))) if _VERSION.fullmatch(text) else None


class Includes:
    """Finds and reads included models.

    Args:
        package_dirs: Folders that the user names: models, or folders of models.
    """

    def __init__(self, package_dirs: Iterable):
        self._package_dirs = [package_dirs] if isinstance(package_dirs, str | pathlib.PurePath) else [*package_dirs]
        self._count = 0

    def folders(self, folder: pathlib.Path | None) -> MeshFolders:
        """The folders that a file in this folder may refer to."""
        return MeshFolders(folder, self._package_dirs)

    def model(self, uri: str, source: Source) -> tuple[Element, Source] | str | None:
        """The model that an address names and its document, or why there is none; None for what is a light."""
        self._count += 1
        if self._count > MAX_INCLUDES:
            raise ModelError(
                f"{short(uri)} is one of more than {MAX_INCLUDES} included models, too many for a robot file"
            )
        path = self._file(uri, source)
        if isinstance(path, str):
            # Gazebo's own light, which worlds begin with, and which is part of its installation.
            return None if uri.strip().rstrip("/") == "model://sun" else path
        if str(path) in source.models:
            return f"{short(uri)} includes itself"
        text, label, folder = read(path, "SDF")
        root = parse(text, label)
        models = root.all("model")
        if root.tag == "sdf" and not models and root.first("light") is not None:
            return None
        if root.tag != "sdf" or len(models) != 1:
            return f"{short(uri)} is {short(label)}, expected <sdf> with one <model> in it"
        version = version_of(root)
        if version is None or version < OLDEST:
            return f"{short(uri)} is {short(label)}, whose version is not 1.4 or later"
        inner = Source(f"{path.parent.name}/{path.name}, ", version, self.folders(folder), (*source.models, str(path)))
        return models[0], inner

    def _file(self, uri: str, source: Source) -> pathlib.Path | str:
        scheme, separator, name = uri.strip().replace("\\", "/").partition("://")
        if separator and scheme not in ("model", "package", "file"):
            return f"{short(uri)} is not a file; download the model, and name its folder in package_dirs"
        if separator and scheme != "file":
            # MeshFolders knows packages by the name that ROS gives to such addresses.
            there = source.meshes.find(f"package://{name.rstrip('/')}")
        else:
            there = source.meshes.find(uri.strip())
        path = None if there is None or there.startswith("package:") else pathlib.Path(there)
        if path is None and scheme in ("model", "package"):
            path = next(iter(source.meshes.packages(name.strip("/"))), None)
        if path is None or not path.exists():
            return f"{short(uri)} is in no folder of this file or of package_dirs"
        if not source.meshes.allow(path, name.strip("/").partition("/")[0]):
            return f"{short(uri)} leads out of the folders of this file and of package_dirs"
        return _main_file(path) if path.is_dir() else path


def _main_file(folder: pathlib.Path) -> pathlib.Path | str:
    """The file of a model's folder: the newest one that its `model.config` lists, or else `model.sdf`."""
    config, listed = folder / "model.config", []
    if config.is_file():
        text, label, _ = read(config, "model.config")
        for element in parse(text, label).all("sdf"):
            listed.append((version_of(element) or (0,), element.text.strip()))
    name = max(listed)[1] if listed else "model.sdf"
    path = folder / name
    if pathlib.PurePath(name).name != name or not path.resolve().is_relative_to(folder.resolve()):
        return f"{short(str(folder))}: its model.config names {short(name)}, which is not in this folder"
    return path if path.is_file() else f"{short(str(folder))} has no file {short(name)}"
