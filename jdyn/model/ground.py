"""Ground under any model."""

import dataclasses

import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from jdyn.array import shaped
from jdyn.model.model import Model, as_pose, checked
from jdyn.model.shapes import Shape, Shapes, all_friction, condim_of, joined
from jdyn.model.topology import WORLD
from jdyn.spatial import Transform

_NAME = "ground"


def with_ground(model: Model, placement: Transform | ArrayLike = (0, 0, 0), *, friction: ArrayLike = 1.0) -> Model:
    """A copy of a model that has ground to touch: a half-space that is fixed to the world.

    It is the last shape, `"ground"`, and can be varied like the others.

    >>> model = jdyn.with_ground(jdyn.load("quadruped"), (0, 0, -0.3))
    >>> model.shapes.entries[-1].name, model.shapes.entries[-1].kind
    ('ground', 'plane')
    >>> slope = jdyn.with_ground(model.without_shapes(), jdyn.pose(rpy=(0, 0.2, 0)))
    >>> print(slope.shapes.placements.rotation[-1, :, 2].round(3) + 0.0)  # upwards, away from the ground
    [0.199 0.    0.98 ]

    Args:
        model: The mechanism.
        placement: Pose in the world of a frame whose origin is on the surface and whose z axis points out of the
            ground, or that origin alone [m], for level ground. It may be traced.
        friction: Its coefficient of sliding friction [1]; or those of sliding [1], torsional [m] and rolling friction
            [m].

    Raises:
        ValueError: if `model` is none, or has a shape of that name to touch, or an array has a wrong shape.
    """
    checked(model)
    if model.shapes is not None and _NAME in [model.shapes.entries[row].name for row in model.shapes.rows("collision")]:
        raise ValueError(
            f"{model.name!r} has a collision shape named {_NAME!r} already: move it with "
            f'jdyn.vary(model, {{"collision:{_NAME}.translation": ...}})'
        )
    X = jax.tree.map(lambda leaf: leaf[None], as_pose("placement", placement, model.dtype))
    given = shaped("friction", jnp.asarray(friction), model.dtype, (), (3,))
    entry = Shape("plane", "collision", WORLD, "world", _NAME, condim=condim_of(given))
    ground = Shapes((entry,), jnp.zeros((1, 3), model.dtype), X, all_friction(given)[None])
    return dataclasses.replace(model, shapes=ground if model.shapes is None else joined([model.shapes, ground]))
