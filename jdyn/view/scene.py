"""Scene of a model: triangles with colours, fixed to its bodies. Movies and the viewer draw the same."""

import dataclasses

import numpy as np
from jaxtyping import Float32, Int32

from jdyn.io.mesh_files import read_meshes
from jdyn.model import WORLD, Model, Shape, checked
from jdyn.terminal.messages import one_of
from jdyn.view import solids
from jdyn.view.look import LOOKS, Look
from jdyn.view.skeleton import skeleton

_SOLIDS = {
    "box": solids.box,
    "sphere": lambda size: solids.sphere(*size),
    "ellipsoid": solids.ellipsoid,
    "cylinder": lambda size: solids.cylinder(*size),
    "capsule": lambda size: solids.capsule(*size),
}
# What has no color of its own.
_PLAIN = (0.82, 0.82, 0.84)
# Bodies of a skeleton, by turns, and what carries them.
_LINKS = ((0.26, 0.42, 0.66), (0.90, 0.58, 0.22))
_WORLD = (0.45, 0.45, 0.48)


@dataclasses.dataclass(frozen=True)
class Part:
    """One drawable surface, fixed to a body.

    Attributes:
        body: The body that carries it; -1 is the world.
        name: What it is called.
        vertices: Corners in the body's frame [m].
        faces: Numbers of the three vertices of each triangle, anticlockwise from outside.
        color: Red, green and blue from 0 to 1, for the whole or a row a face.
        opacity: From 0 to 1.
    """

    body: int
    name: str
    vertices: Float32[np.ndarray, "n 3"]
    faces: Int32[np.ndarray, "m 3"]
    color: Float32[np.ndarray, "3"] | Float32[np.ndarray, "m 3"]
    opacity: float = 1.0


def one_model(model: Model) -> None:
    """Check that something is a model, and not a batch of them.

    Raises:
        ValueError: if it is not.
    """
    checked(model)
    if model.gravity.ndim > 1:
        raise ValueError(
            f"model: expected one, got a batch of shape {model.gravity.shape[:-1]}; pick one with "
            "jax.tree.map(lambda leaf: leaf[i], model)"
        )


def parts(model: Model, look: Look = "visual") -> list[Part]:
    """The surfaces of a model; rods along its links where it has no such shapes.

    A model with collision shapes alone shows these. Planes are left out, since floors of pictures stand for them, and
    so is what is wholly transparent. A mesh whose file cannot be read is left out.

    Args:
        model: The mechanism.
        look: As `"visual"` shapes, as `"collision"` shapes, or as a `"skeleton"` of rods.

    Warns:
        ModelWarning: naming meshes that cannot be read.

    Raises:
        ValueError: if `model` is no model, or a batch of them, or there is no such look.
    """
    one_model(model)
    one_of("look", look, LOOKS)
    shapes = model.shapes
    if shapes is None or look == "skeleton":
        return _rods(model)
    rows = _drawn_rows(shapes, look) or _drawn_rows(shapes, "collision")
    meshes = read_meshes(path for row in rows if (path := shapes.entries[row].path) is not None)
    heights = {row: shapes.heights_of(row) for row in rows if shapes.entries[row].kind == "height field"}
    drawn = [_part(shapes.entries[row], meshes, heights.get(row), *_numbers(shapes, row)) for row in rows]
    return [part for part in drawn if part is not None] or _rods(model)


def _drawn_rows(shapes, role) -> list[int]:
    return [row for row in shapes.rows(role) if _is_drawn(shapes.entries[row])]


def _is_drawn(shape) -> bool:
    return shape.kind != "plane" and (shape.color is None or shape.color[3] > 0)


def _numbers(shapes, row):
    """Size, rotation and translation of a shape."""
    placement = shapes.placements
    numbers = shapes.size(row), placement.rotation[row], placement.translation[row]
    return tuple(np.asarray(x, float) for x in numbers)


def _part(shape: Shape, meshes, heights, size, rotation, translation) -> Part | None:
    if heights is not None:
        (vertices, faces), color = solids.surface(heights, size), _PLAIN
    elif shape.kind != "mesh":
        vertices, faces = _SOLIDS[shape.kind](size)
        color = _PLAIN
    elif shape.path in meshes:
        mesh = meshes[shape.path]
        # A mirror image has its outside where the inside was.
        faces = mesh.faces[:, ::-1] if np.prod(size) < 0 else mesh.faces
        vertices, color = mesh.vertices * size, _PLAIN if mesh.colors is None else mesh.colors
    else:
        return None
    opacity = 1.0 if shape.color is None else float(shape.color[3])
    color = np.asarray(color if shape.color is None else shape.color[:3], np.float32)
    placed = (vertices @ rotation.T + translation).astype(np.float32)
    return Part(shape.body, shape.name, placed, faces, color, opacity)


def _rods(model) -> list[Part]:
    depths = {body: len(path) for body, path in enumerate(model.topology.supports)}
    names = {WORLD: "world"} | dict(enumerate(model.body_names))
    colors = {body: _LINKS[depth % len(_LINKS)] for body, depth in depths.items()} | {WORLD: _WORLD}
    return [
        Part(body, names[body], vertices, faces, np.asarray(colors[body], np.float32))
        for body, triangles in skeleton(model).items()
        for vertices, faces in triangles
    ]
