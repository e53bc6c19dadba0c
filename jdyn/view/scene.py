"""What is drawn of a model: triangles with colours, fixed to its bodies. Movies and the viewer draw the same."""

import dataclasses
from typing import Literal

import numpy as np
from jaxtyping import Float32, Int32

from jdyn.model import WORLD, Model, checked
from jdyn.model.messages import one_of
from jdyn.view.skeleton import skeleton

Role = Literal["visual", "collision"]

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
    """

    body: int
    name: str
    vertices: Float32[np.ndarray, "n 3"]
    faces: Int32[np.ndarray, "m 3"]
    color: Float32[np.ndarray, "3"] | Float32[np.ndarray, "m 3"]


def parts(model: Model, role: Role = "visual") -> list[Part]:
    """The surfaces of a model; capsules along its links where it has no shapes.

    Args:
        model: The mechanism.
        role: `"visual"` shapes or `"collision"` shapes.

    Raises:
        ValueError: if `model` is no model, or a batch of them, or `role` is neither.
    """
    checked(model)
    one_of("role", role, ("visual", "collision"))
    if model.gravity.ndim > 1:
        raise ValueError(
            f"model: expected one, got a batch of shape {model.gravity.shape[:-1]}; pick one with "
            "jax.tree.map(lambda leaf: leaf[i], model)"
        )
    return _rods(model)


def _rods(model) -> list[Part]:
    depths = {body: len(path) for body, path in enumerate(model.topology.supports)}
    names = {WORLD: "world"} | dict(enumerate(model.body_names))
    colors = {body: _LINKS[depth % len(_LINKS)] for body, depth in depths.items()} | {WORLD: _WORLD}
    return [
        Part(body, names[body], vertices, faces, np.asarray(colors[body], np.float32))
        for body, solids in skeleton(model).items()
        for vertices, faces in solids
    ]
