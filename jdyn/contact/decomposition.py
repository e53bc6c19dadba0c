"""Meshes that touch as several convex parts."""

import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Sequence

import jax
import numpy as np

from jdyn.contact.hulls import mesh_of
from jdyn.io.mesh_files import Mesh, MeshError
from jdyn.io.whole_file import whole_file
from jdyn.model import Model, ModelError, checked
from jdyn.model.shapes import Shape
from jdyn.terminal.messages import listed

_INSTALL = 'pip install "jdyn[collision]"'


def decompose(
    model: Model, folder: str | os.PathLike, *, threshold: float = 0.05, max_parts: int | None = None
) -> Model:
    """A copy of a model whose meshes touch as several convex parts each, instead of as one hull.

    CoACD cuts a mesh until the hull of each part is near the part. It takes seconds to minutes a mesh; the parts are
    kept as files, and the same call finds them again.

    ```
    gripper = jdyn.contact.decompose(jdyn.load("gripper.urdf"), "gripper_parts", threshold=0.02)
    ```

    >>> model = jdyn.contact.decompose(jdyn.with_ground(jdyn.load("quadruped")), "parts")  # has no meshes
    >>> len(model.shapes.rows("collision"))
    10

    Args:
        model: The mechanism.
        folder: Where the parts are kept; it is made if it does not exist.
        threshold: How much parts may differ from their hulls, in CoACD's measure, from 0.01 (fine) to 1.
        max_parts: Of one mesh; as many as the threshold asks for if left out.

    Returns:
        The model. The parts of a shape NAME are called `NAME`, `NAME_part1`, `NAME_part2`, ..., and have its scale,
        place, friction and margin. What is seen stays as it is.

    Raises:
        ImportError: if CoACD is not installed: `pip install "jdyn[collision]"`.
        ModelError: naming every mesh that cannot be read.

    Source: Wei, Liu, Ling, Su, Approximate convex decomposition for 3D meshes with collision-aware concavity and tree
    search, ACM Transactions on Graphics 41, 2022.
    """
    checked(model)
    shapes = model.shapes
    if shapes is None:
        return model
    entries, rows, problems = [], [], []
    parts: dict[str, Sequence[str]] = {}
    for row, entry in enumerate(shapes.entries):
        paths = [entry.path]
        if entry.kind == "mesh" and entry.role == "collision":
            try:
                paths = _parts(entry, pathlib.Path(folder), threshold, max_parts)
            except MeshError as error:
                problems.append(f"collision shape {entry.name!r} of link {entry.link!r}: {error}")
        names = [f"{entry.name}_part{k}" if k else entry.name for k in range(len(paths))]
        entries += [entry._replace(name=name, path=path) for name, path in zip(names, paths, strict=True)]
        rows += [row] * len(paths)
        if entry.role == "collision":
            parts[entry.name] = names
    if problems:
        raise ModelError(listed(model.name, "problem", problems))
    index = np.array(rows)
    sizes, placements, friction, margins = jax.tree.map(
        lambda leaf: leaf[index], (shapes.sizes, shapes.placements, shapes.friction, shapes.margins)
    )

    def of_parts(pairs):
        """Pairs of the parts of pairs of shapes, and which of these they are of."""
        each = [(a, b, row) for row, (x, y) in enumerate(pairs) for a in parts[x] for b in parts[y]]
        return tuple((a, b) for a, b, _ in each), np.array([row for *_, row in each], int)

    (included, _), (stated, of_stated) = of_parts(shapes.included), of_parts(shapes.stated)
    stated_friction = None if shapes.stated_friction is None else shapes.stated_friction[of_stated]
    changed = dataclasses.replace(
        shapes, entries=tuple(entries), sizes=sizes, placements=placements, friction=friction, included=included,
        stated=stated, stated_friction=stated_friction, margins=margins,
    )  # fmt: skip
    return dataclasses.replace(model, shapes=changed)


def _parts(entry: Shape, folder: pathlib.Path, threshold: float, max_parts: int | None) -> list[str]:
    """Files of the convex parts of a mesh."""
    source, mesh = mesh_of(entry)
    what = mesh.vertices.tobytes() + mesh.faces.tobytes() + repr((threshold, max_parts, entry.hull_vertices)).encode()
    stem = f"{pathlib.Path(source).stem}-{hashlib.sha256(what).hexdigest()[:16]}"
    # The number of parts is in their names, so that those of a call that was cut short are not taken for all.
    found = sorted(folder.glob(f"{stem}-*-of-*.stl"))
    if not found or len(found) != int(found[0].stem.rpartition("-")[2]):
        folder.mkdir(parents=True, exist_ok=True)
        found = _written(_cut(mesh, threshold, max_parts, entry.hull_vertices), folder, stem)
    return [str(path.absolute()) for path in found]


def _cut(mesh: Mesh, threshold: float, max_parts: int | None, most: int) -> list[tuple[np.ndarray, np.ndarray]]:
    try:
        import coacd
    except ModuleNotFoundError as error:
        if error.name != "coacd":
            raise
        raise ImportError(f"meshes are cut into convex parts by CoACD, which is not installed: {_INSTALL}") from None
    coacd.set_log_level("error")
    return coacd.run_coacd(
        coacd.Mesh(mesh.vertices, mesh.faces), threshold=threshold, max_convex_hull=max_parts or -1,
        decimate=True, max_ch_vertex=most,
    )  # fmt: skip


def _written(parts: list[tuple[np.ndarray, np.ndarray]], folder: pathlib.Path, stem: str) -> list[pathlib.Path]:
    # Takes a third of a second.
    import trimesh

    paths = [folder / f"{stem}-{number:03}-of-{len(parts)}.stl" for number in range(1, len(parts) + 1)]
    for path, (vertices, faces) in zip(paths, parts, strict=True):
        with whole_file(path, "wb") as file:
            file.write(trimesh.Trimesh(vertices, faces).export(file_type="stl"))
    return paths
