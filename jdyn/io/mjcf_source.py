"""MJCF documents made safe for MuJoCo's compiler: they refer to no files and stay within size limits.

MuJoCo opens any path that a document names, and its XML parser disagrees with others on where a document type
declaration ends. Therefore it never sees the original document. This module parses the document, inserts included
files, reads meshes and attached models from the folders named by the user, and writes the result as new XML. Parts
that nothing here needs (textures, skins, memory sizes, sensors without a class in jdyn) are emptied or left out.
"""

import dataclasses
import hashlib
import math
import os
import pathlib
import re
import struct
from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from jdyn.io import xml
from jdyn.io.meshes import named_folders
from jdyn.io.mjcf_sensor_kinds import SENSOR_CLASSES
from jdyn.io.xml import Element
from jdyn.model import ModelError
from jdyn.terminal.messages import listed

# MuJoCo's own limit is 500; a few levels are reserved for elements that it adds around a document.
MAX_DEPTH = 490
# MuJoCo's compiler takes quadratic time: a few seconds for this many elements, including replicas.
MAX_ELEMENTS = 20_000
MAX_DOCUMENTS = 100
# Squares, cubes and products of numbers up to this size do not overflow.
MAX_NUMBER = 1e50
MAX_ASSET_BYTES = 2**28
# Rows and columns of height fields.
MAX_GRID = 4096

# A small file may hold a large picture: its size is in the first bytes.
_PNG = b"\x89PNG\r\n\x1a\n"
_DROPPED = ("size", "skin", "custom", "keyframe", "lengthrange")
_DROPPED_ATTRIBUTES = ("meshdir", "texturedir", "assetdir", "strippath")
# Attributes that only say how much memory MuJoCo takes, and what they become.
_SHRUNK = {"nsample": "1"}
# Attributes that multiply the compiler's work or memory, and their largest accepted values.
_LARGEST = {"actdim": 1000, "params": 300, "nrow": MAX_GRID, "ncol": MAX_GRID}
_COPIES = {"replicate": ("count",), "composite": ("count",), "flexcomp": ("count", "cellcount")}


@dataclasses.dataclass(frozen=True)
class Document:
    """One self-contained MJCF document.

    Attributes:
        name: Name of the model.
        label: Origin of the document, for messages.
        text: The XML text; the only files it names are keys of `assets`.
        assets: Contents of the files.
        paths: Name of each file of `assets` in the source.
        files: Where each file of `assets` is.
        lines: Origin of each line of `text`, for messages.
        keyframes: The attributes of each keyframe, and where it is. Those of attached models are not among them.
        unread: Names of the sensors and skins that were left out, or of what they are, also those of attached models.
    """

    name: str
    label: str
    text: str
    assets: dict[str, bytes]
    paths: dict[str, str]
    files: dict[str, str]
    lines: list[str]
    keyframes: list[tuple[dict[str, str], str]]
    unread: dict[str, list[str]]


def read(source: str | os.PathLike, package_dirs: Iterable[str | os.PathLike] = ()) -> Document:
    """Read a document and everything it needs.

    Args:
        source: Path of a MuJoCo `.xml` file, or its text.
        package_dirs: Folders, besides the file's own, from which files may be read.

    Raises:
        ModelError: naming every file that is absent or outside these folders, and every element that is refused.
    """
    text, label, folder = xml.read(source, "MJCF")
    roots = [*([] if folder is None else [folder]), *named_folders(package_dirs)]
    reader = _Reader(label, roots)
    root = xml.parse(text, label)
    reader.note_origins(root, label)
    flat, _ = reader.flatten(root, label, folder)
    if reader.problems:
        raise ModelError(listed(label, "problem", reader.problems))
    name = root.attributes.get("model") or ("mjcf" if folder is None else _stem(label))
    return Document(
        name, label, flat, reader.assets, reader.paths, reader.files, reader.lines, reader.keyframes, reader.unread
    )


class _Reader:
    """Reads one document with its includes, meshes and attached models.

    Problems are collected in `problems` and reported together, except those that make reading on pointless: they are
    raised at once.
    """

    def __init__(self, label: str, roots: list[pathlib.Path]):
        self.assets: dict[str, bytes] = {}
        self.paths: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.lines: list[str] = []
        self.keyframes: list[tuple[dict[str, str], str]] = []
        self.unread: dict[str, list[str]] = {"sensors": [], "skins": []}
        self.problems: list[str] = []
        self._label = label
        self._roots = roots
        self._allowed = [path.resolve() for path in roots]
        self._origins: dict[int, str] = {}
        self._folders: dict[int, pathlib.Path] = {}
        self._opened = 0
        self._models: list[pathlib.Path] = []

    def flatten(self, root: Element, label: str, folder: pathlib.Path | None) -> tuple[str, int]:
        """The text of a document, which needs no files except `self.assets`, and its number of expanded elements."""
        if root.tag != "mujoco":
            hint = "; this is URDF" if root.tag == "robot" else ""
            raise ModelError(f"{label}: expected an MJCF document, whose root is <mujoco>, got <{root.tag}>{hint}")
        self._include(root, [], folder)
        self._check_depth(root, label)
        self._drop(root)
        self._check_values(root)
        weights = self._localise(root, folder)
        weight = self._check_weight(root, label, weights)
        return self._written(root), weight

    def note_origins(self, root: Element, label: str):
        """Record the origins of a document's elements, for messages."""
        prefix = "" if label == self._label else f"{label}, "
        self._origins.update((id(element), f"{prefix}line {element.line}") for element in root.walk())

    def _problem(self, element: Element, text: str):
        self.problems.append(f"{self._origins[id(element)]}, <{element.tag}>: {text}")

    def _refusal(self, element: Element, text: str) -> ModelError:
        return ModelError(f"{self._label}: {self._origins[id(element)]}, <{element.tag}>: {text}")

    # Files.

    def _find(
        self, element: Element, name: str, *bases: pathlib.Path | None, beside: str | None = None
    ) -> pathlib.Path | None:
        """The path of a file in the first folder that contains it; if there is none, record a problem. `beside` is its
        name in the folder of the included file that the element is from."""
        shown, inside = repr(name if len(name) < 200 else f"{name[:200]}..."), False
        places = [(base, name) for base in (*bases, *self._roots) if base is not None]
        if beside is not None and id(element) in self._folders:
            places.insert(1, (self._folders[id(element)], beside))
        for base, there in places:
            try:
                path = (base / there.replace("\\", "/")).resolve()
                if any(path.is_relative_to(folder) for folder in self._allowed):
                    inside = True
                    if path.is_file():
                        return path
            except (OSError, ValueError, RuntimeError) as error:
                why = getattr(error, "strerror", None) or type(error).__name__
                return self._problem(element, f"file {shown} cannot be read ({why})")
        if not self._roots:
            self._problem(element, f"file {shown}: MJCF text has no folder; name the folder in package_dirs")
        elif inside:
            folders = ", ".join(str(folder) for folder in self._roots)
            self._problem(
                element, f"file {shown} is not in {folders}; put it there, or name its folder in package_dirs"
            )
        else:
            self._problem(element, f"file {shown} is outside the model's folder; name its folder in package_dirs")
        return None

    def _keep_file(self, element: Element, name: str, meshdir: str, folder: pathlib.Path | None):
        """Read a file into `self.assets`, and replace its name in the element by its key there."""
        path = self._find(element, os.path.join(meshdir, name), folder, beside=name)
        if path is None:
            return
        try:
            with path.open("rb") as file:
                data = file.read(MAX_ASSET_BYTES + 1)
        except OSError as error:
            return self._problem(element, f"file {name!r} cannot be read ({error.strerror})")
        if len(data) > MAX_ASSET_BYTES:
            return self._problem(element, f"file {name!r} is larger than {MAX_ASSET_BYTES // 2**20} MB")
        if data.startswith(_PNG) and max(struct.unpack(">2I", data[16:24].ljust(8, b"\0"))) > MAX_GRID:
            return self._problem(element, f"file {name!r} has more than {MAX_GRID} rows or columns; scale the picture")
        self.files[self._keep(element, data, path.suffix.lower(), name)] = str(path)

    def _keep(self, element: Element, data: bytes, suffix: str, name: str) -> str:
        """Keep the contents of a file, and refer to it by its key, which is returned."""
        # Keys depend on the contents, so that no cache can confuse two files of the same name.
        key = hashlib.sha256(data).hexdigest()[:32] + suffix
        self.assets[key], self.paths[key] = data, name
        element.attributes["file"] = key
        return key

    # Documents inside documents.

    def _open(self, element: Element, name: str, taken: list[pathlib.Path], *bases: pathlib.Path | None):
        """The root, the label and the path of another document, which must not be in `taken`."""
        path = self._find(element, name, *bases)
        if path is None:
            return None
        self._opened += 1
        if path in taken:
            raise self._refusal(element, f"file {name!r} is included twice")
        if self._opened > MAX_DOCUMENTS:
            raise self._refusal(element, f"more than {MAX_DOCUMENTS} files are included")
        text, label, _ = xml.read(path, "MJCF")
        root = xml.parse(text, label)
        self.note_origins(root, label)
        return root, label, path

    def _include(self, root: Element, taken: list[pathlib.Path], *folders: pathlib.Path | None):
        """Put the contents of included files in place of every `<include>`; each file may be included once."""
        for element in list(root.walk()):
            if any(child.tag == "include" for child in element.children):
                contents = (self._contents(child, taken, *folders) for child in element.children)
                element.children = [child for children in contents for child in children]

    def _contents(self, element: Element, taken: list[pathlib.Path], *folders: pathlib.Path | None) -> list[Element]:
        if element.tag != "include":
            return [element]
        opened = self._open(element, element.attributes.get("file", ""), taken, *folders)
        if opened is None:
            return []
        root, _, path = opened
        taken.append(path)
        self._folders.update((id(element), path.parent) for element in root.walk())
        self._include(root, taken, folders[0], path.parent)
        return root.children

    def _keep_model(self, element: Element, name: str, folder: pathlib.Path | None, weights: dict[str, int]):
        """Flatten a document whose parts this one attaches, and replace its name in the element by its key."""
        opened = self._open(element, name, self._models, folder)
        if opened is None:
            return
        root, label, path = opened
        self._models.append(path)
        text, weight = self.flatten(root, label, path.parent)
        self._models.pop()
        element.attributes.setdefault("name", root.attributes.get("model", "MuJoCo Model"))
        weights[element.attributes["name"]] = weight
        self._keep(element, text.encode(), ".xml", name)

    # Checks.

    def _check_depth(self, root: Element, label: str):
        level, depth = [root], 0
        while level:
            depth += 1
            if depth > MAX_DEPTH:
                raise ModelError(f"{label}: elements are nested more than {MAX_DEPTH} deep, counting includes")
            level = [child for element in level for child in element.children]

    def _check_values(self, root: Element):
        names = {element.attributes.get(key) for element in root.walk() for key in ("name", "class")}
        for element in root.walk():
            # MuJoCo reads a default namespace of the whole document, and knows no other.
            prefixed = element is not root and any(":" in key for key in element.attributes)
            if prefixed or element.namespace != root.namespace:
                raise self._refusal(element, "MJCF has no XML namespaces; remove xmlns and prefixes")
            for key, value in element.attributes.items():
                numbers = [] if value in names else _numbers(value)
                unlimited = key.endswith("range")
                if not all(abs(x) <= MAX_NUMBER or (unlimited and math.isinf(x)) for x in numbers):
                    self._problem(element, f"{key} is {value!r}, expected finite numbers up to {MAX_NUMBER:g}")
                elif key in _LARGEST and any(x > _LARGEST[key] for x in numbers):
                    self._problem(element, f"{key} is {value!r}, expected at most {_LARGEST[key]}")

    def _check_weight(self, root: Element, label: str, weights: dict[str, int]) -> int:
        """The number of elements after replication and attachment; an error if MuJoCo would take too long."""
        # Of what is attached, MuJoCo copies whatever refers to it, too.
        referring = sum(1 for section in root.children if section.tag != "worldbody" for _ in section.walk())
        parts: dict[str, _Part] = {}
        path = [_Part(root)]
        while True:
            part = path[-1]
            child = next(part.rest, None)
            if child is not None:
                path.append(_Part(child))
                name = "world" if child.tag == "worldbody" else child.attributes.get("name", "")
                if child.tag in ("body", "frame", "worldbody"):
                    parts[name] = path[-1]
                continue
            path.pop()
            if part.element.tag == "attach" and "model" in part.element.attributes:
                part.size += weights.get(part.element.attributes["model"], 0)
            elif part.element.tag == "attach":
                attributes = part.element.attributes
                source = parts.get(attributes.get("body", attributes.get("frame", "")))
                # It holds what the document has of it so far.
                below = path[path.index(source) :] if source in path else [source] if source else []
                part.size += referring + sum(other.size for other in below)
            for key in _COPIES.get(part.element.tag, ()):
                part.size *= self._copies(part.element, key)
            if part.size > MAX_ELEMENTS:
                raise ModelError(f"{label}: expands to more than {MAX_ELEMENTS} elements, counting replicas")
            if not path:
                return part.size
            path[-1].size += part.size

    def _copies(self, element: Element, key: str) -> int:
        counts = element.attributes.get(key, "1").split()
        if not all(re.fullmatch(r"\d{1,9}", count) for count in counts):
            self._problem(element, f"{key} is {element.attributes[key]!r}, expected whole numbers")
            return 1
        return max(1, math.prod(int(count) for count in counts))

    # The document that MuJoCo receives.

    def _drop(self, root: Element):
        """Remove elements that cost memory or open files without changing the dynamics that jdyn computes."""
        if not self._models:
            keys = (key for keyframe in root.all("keyframe") for key in keyframe.all("key"))
            self.keyframes = [(key.attributes, self._origins[id(key)]) for key in keys]
        # Others may open files, or take any amount of memory.
        for section in root.all("sensor"):
            left_out = [one for one in section.children if not _is_read(one)]
            self.unread["sensors"] += [one.attributes.get("name", one.tag) for one in left_out]
            section.children = [one for one in section.children if _is_read(one)]
        for element in list(root.walk()):
            skins = [child for child in element.children if child.tag == "skin"]
            self.unread["skins"] += [skin.attributes.get("name", "skin") for skin in skins]
            element.children = [child for child in element.children if child.tag not in _DROPPED]
            if element.tag == "default":
                element.children = [child for child in element.children if child.tag != "texture"]
        # Otherwise MuJoCo would simulate muscles to find their length ranges.
        lengthrange = Element("lengthrange", "", {"mode": "none"}, root.line)
        compiler = Element("compiler", "", {}, root.line, children=[lengthrange])
        root.children.append(compiler)
        self._origins[id(compiler)] = self._origins[id(lengthrange)] = self._origins[id(root)]

    def _localise(self, root: Element, folder: pathlib.Path | None) -> dict[str, int]:
        """Replace file names by keys of `self.assets`; return the number of elements of each attached model."""
        meshdir, strip = _mesh_folder(root)
        weights: dict[str, int] = {}
        for element in root.walk():
            attributes = element.attributes
            name = attributes.get("file")
            if element.tag in ("mesh", "texture", "hfield") and name and "name" not in attributes:
                attributes["name"] = _stem(name)
            if element.tag == "texture":
                kept = {key: attributes[key] for key in ("name", "type") if key in attributes}
                element.attributes = {**kept, "builtin": "flat", "width": "1", "height": "1"}
            elif element.tag in ("mesh", "flexcomp", "hfield") and name:
                self._keep_file(element, _basename(name) if strip else name, meshdir, folder)
            elif element.tag == "model" and name:
                self._keep_model(element, name, folder, weights)
            elif name:
                self._problem(element, f"file {name!r}: this element cannot refer to a file")
            for key in _DROPPED_ATTRIBUTES:
                element.attributes.pop(key, None)
            for key, value in _SHRUNK.items():
                if re.search("[1-9]", attributes.get(key, "")):
                    element.attributes[key] = value
        return weights

    def _written(self, root: Element) -> str:
        """XML text with one tag per line, whose line numbers continue those of the documents written before."""
        # Leading empty lines make line numbers unique over all documents: MuJoCo's messages give only the line.
        written = [""] * len(self.lines)
        pending: list[Element | str] = [root]
        while pending:
            element = pending.pop()
            if isinstance(element, str):
                written.append(f"</{element}>")
                self.lines.append(self.lines[-1])
                continue
            attributes = "".join(f" {key}={quoteattr(value)}" for key, value in element.attributes.items())
            written.append(f"<{element.tag}{attributes}" + (">" if element.children else "/>"))
            self.lines.append(self._origins[id(element)])
            if element.children:
                pending += [element.tag, *reversed(element.children)]
        return "\n".join(written)


class _Part:
    """An element of which the children are counted.

    Attributes:
        element: It.
        rest: Its children that have not been counted.
        size: How many elements it and those that have been counted are, replicated and attached.
    """

    def __init__(self, element: Element):
        self.element, self.rest, self.size = element, iter(element.children), 1


def _is_read(sensor: Element) -> bool:
    """Tell whether a sensor may have a class here. Those of each pixel of a camera have none."""
    return sensor.tag in SENSOR_CLASSES and not (sensor.tag == "rangefinder" and "camera" in sensor.attributes)


def _mesh_folder(root: Element) -> tuple[str, bool]:
    """The folder of meshes in the compiler options, and whether they strip the folders from file names."""
    meshdir, strip = "", "false"
    for compiler in root.all("compiler"):
        attributes = compiler.attributes
        meshdir = attributes.get("meshdir", attributes.get("assetdir", meshdir))
        strip = attributes.get("strippath", strip)
    return meshdir, strip == "true"


def _numbers(value: str) -> list[float]:
    """The numbers of an attribute; none if it holds anything else."""
    try:
        return [float(token) for token in value.split()]
    except ValueError:
        return []


def _basename(name: str) -> str:
    return re.split(r"[/\\]", name)[-1]


def _stem(name: str) -> str:
    return _basename(name).rpartition(".")[0] or _basename(name)
