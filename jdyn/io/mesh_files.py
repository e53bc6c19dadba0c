"""Mesh files to triangles with colours."""

import contextlib
import dataclasses
import functools
import io
import logging
import os
import pathlib
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from jaxtyping import Float32, Int32

from jdyn.io import xml
from jdyn.io.mjcf_source import MAX_ASSET_BYTES
from jdyn.model import ModelError, ModelWarning
from jdyn.terminal.messages import bulleted

SUFFIXES = (".stl", ".obj", ".dae", ".glb", ".msh")
# Of what has no colour, beside what has one.
_GREY = (0.7, 0.7, 0.7)


class MeshError(ValueError):
    """A mesh file is absent, cannot be read, or holds no triangles."""


@dataclasses.dataclass(frozen=True, eq=False)
class Mesh:
    """A surface of triangles.

    Attributes:
        vertices: Corners in the file's frame [m].
        faces: Numbers of the three vertices of each triangle, anticlockwise from outside.
        colors: Red, green and blue from 0 to 1 of each triangle; None if the file states none.
    """

    vertices: Float32[np.ndarray, "n 3"]
    faces: Int32[np.ndarray, "m 3"]
    colors: Float32[np.ndarray, "m 3"] | None


def read_mesh(path: str | os.PathLike) -> Mesh:
    """The triangles of an STL, OBJ, COLLADA (.dae) or GLB file, or of one in MuJoCo's own format (.msh).

    Lengths are metres, but for COLLADA files that state another unit, from which they are converted; the axis that a
    COLLADA file calls up is left as it is. RViz does both. Nothing else is opened but the materials (.mtl) beside an
    OBJ file; textures are left out. COLLADA files are XML as robot files are: without DTD or entities. A file that has
    not changed is read once.

    Args:
        path: The file.

    Raises:
        MeshError: naming the file, if it is absent, of another format, damaged, empty or larger than 256 MB.
    """
    name, path = os.fspath(path), pathlib.Path(path)
    try:
        state = path.stat()
    except (OSError, ValueError) as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else f"it cannot be read ({error})"
        if str(name).startswith("package:"):
            why = "the package was not found; name its folder in package_dirs when the robot is loaded"
        raise MeshError(f"{name}: {why}") from None
    if not stat.S_ISREG(state.st_mode):
        raise MeshError(f"{path}: expected a file, got a folder or a device")
    if state.st_size > MAX_ASSET_BYTES:
        raise MeshError(f"{path}: larger than {MAX_ASSET_BYTES // 2**20} MB; simplify the mesh")
    return _read(path, state.st_mtime_ns, state.st_size)


def read_meshes(paths: Iterable[str]) -> dict[str, Mesh]:
    """The meshes that can be read, by path, so that the rest of a robot can be drawn without the others.

    Args:
        paths: Files, each as `read_mesh` takes it.

    Warns:
        ModelWarning: once, naming every file that cannot be read, and why.
    """
    found: dict[str, Mesh] = {}
    problems = []
    for path in dict.fromkeys(paths):
        try:
            found[path] = read_mesh(path)
        except MeshError as error:
            problems.append(str(error))
    if problems:
        noun = "mesh is" if len(problems) == 1 else "meshes are"
        warnings.warn(f"{len(problems)} {noun} not drawn:{bulleted(problems)}", ModelWarning, stacklevel=2)
    return found


@functools.lru_cache(maxsize=1024)
def _read(path: pathlib.Path, _modified: int, _size: int) -> Mesh:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise MeshError(f"{path}: expected a file ending in {', '.join(SUFFIXES)}; convert it")
    try:
        parts = list(_parts(path, suffix))
    except MeshError:
        raise
    # Readers of five formats raise anything where a file is damaged.
    except Exception as error:
        raise MeshError(f"{path}: damaged, or no {suffix} file ({type(error).__name__}: {error})") from error
    if not parts:
        raise MeshError(f"{path}: it holds no triangles, or is no {suffix} file")
    vertices, faces, colors = zip(*parts, strict=True)
    starts = np.cumsum([0, *(len(each) for each in vertices[:-1])])
    colored = None
    if any(each is not None for each in colors):
        rows = [
            np.broadcast_to(_GREY if color is None else color, (len(face), 3))
            for face, color in zip(faces, colors, strict=True)
        ]
        colored = np.concatenate(rows).astype(np.float32)
    return Mesh(
        np.concatenate(vertices).astype(np.float32),
        np.concatenate([face + start for face, start in zip(faces, starts, strict=True)]).astype(np.int32),
        colored,
    )


def _parts(path: pathlib.Path, suffix: str) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Vertices, faces and colours of each surface in a file."""
    # Takes a third of a second.
    import trimesh

    resolver = _Materials(path.parent) if suffix == ".obj" else None
    data = path.read_bytes()
    if suffix == ".dae":
        data = _harmless(data, path)
    with _without_word_of_textures():
        if suffix == ".msh":
            scene = trimesh.Scene(trimesh.Trimesh(*_mujocos_own(data), process=False))
        else:
            scene = trimesh.load_scene(io.BytesIO(data), file_type=suffix[1:], resolver=resolver, process=False)
    for node in scene.graph.nodes_geometry:
        pose, name = scene.graph[node]
        surface = scene.geometry[name]
        # Others are points or curves.
        if not isinstance(surface, trimesh.Trimesh) or not len(surface.faces):
            continue
        if not np.all(np.isfinite(surface.vertices)):
            raise MeshError(f"{path}: it has vertices that are not finite")
        color = _colors(surface.visual)
        # COLLADA repeats each corner for each of its triangles.
        bare = trimesh.Trimesh(surface.vertices, surface.faces, process=False)
        bare.merge_vertices()
        vertices = bare.vertices @ pose[:3, :3].T + pose[:3, 3]
        # A mirrored part is turned inside out.
        faces = bare.faces[:, ::-1] if np.linalg.det(pose[:3, :3]) < 0 else bare.faces
        if suffix == ".dae" and surface.units is not None:
            vertices = vertices * trimesh.units.unit_conversion(surface.units, "meters")
        yield vertices, faces, color


def _mujocos_own(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of a .msh file: four counts; vertices, normals and coordinates of textures; faces.

    Source: MuJoCo's documentation, chapter XML Reference, section asset/mesh.
    """
    vertices, normals, textures, faces = counts = np.frombuffer(data, "<i4", 4).astype(int)
    if np.any(counts < 0) or len(data) != 4 * (4 + 3 * vertices + 3 * normals + 2 * textures + 3 * faces):
        raise ValueError(f"its size does not follow from its counts {counts.tolist()}")
    corners = np.frombuffer(data, "<i4", 3 * faces, offset=len(data) - 12 * faces)
    if np.any((corners < 0) | (corners >= vertices)):
        raise ValueError("faces of vertices that it does not have")
    return np.frombuffer(data, "<f4", 3 * vertices, offset=16).reshape(-1, 3), corners.reshape(-1, 3)


def _harmless(data: bytes, path: pathlib.Path) -> bytes:
    """The document of a COLLADA file, as its reader may see it."""
    try:
        return xml.harmless(xml.decoded(data, str(path)), str(path))
    except ModelError as error:
        raise MeshError(str(error)) from None


@contextlib.contextmanager
def _without_word_of_textures() -> Iterator[None]:
    """trimesh logs a traceback for each texture that it is not given."""

    def says_more(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("unable to load")

    logger = logging.getLogger("trimesh.util")
    logger.addFilter(says_more)
    try:
        yield
    finally:
        logger.removeFilter(says_more)


def _colors(visual) -> np.ndarray | None:
    """One colour, or a row a face; None where there is none."""
    if visual.kind == "texture":
        return np.asarray(visual.material.main_color, float)[:3] / 255
    if visual.kind in ("face", "vertex"):
        return np.asarray(visual.face_colors, float)[:, :3] / 255
    return None


class _Materials(Mapping[str, bytes]):
    """Gives the reader of OBJ files the materials in one folder, and no other file.

    Args:
        folder: The folder of the OBJ file.
    """

    def __init__(self, folder: pathlib.Path):
        self._folder = folder.resolve()

    def __getitem__(self, name: str) -> bytes:
        path = (self._folder / name.strip().replace("\\", "/")).resolve()
        if path.suffix.lower() != ".mtl" or not path.is_relative_to(self._folder) or not path.is_file():
            raise KeyError(name)
        return path.read_bytes()

    def __iter__(self):
        return (path.name for path in self._folder.glob("*.mtl"))

    def __len__(self):
        return len(list(iter(self)))
