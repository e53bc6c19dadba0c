"""Arguments of controllers, as arrays in the model's type; `shaped` refuses other shapes."""

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float

from jdyn.array import shaped
from jdyn.dynamics.kinematics import carrier
from jdyn.model import WORLD, Model
from jdyn.model.model import as_pose
from jdyn.spatial import Transform


def configuration(model: Model, name: str, value: ArrayLike) -> Float[Array, " nq"]:
    """A configuration."""
    return shaped(name, value, model.dtype, (model.nq,), owner=model.name)


def scalar_or(model: Model, size: int, name: str, value: ArrayLike) -> Float[Array, "*size"]:
    """A number, or one for each coordinate."""
    return shaped(name, value, model.dtype, (), (size,), owner=model.name)


def place(
    model: Model, body_or_frame: str | int, target: ArrayLike | Transform
) -> tuple[Float[Array, "3"] | Transform, int]:
    """A position in the world, or a pose, for a body or a frame that moves, and how many components it has.

    Raises:
        ValueError: if there is no such body or frame, it is fixed to the world, or a shape is wrong.
    """
    if carrier(model, body_or_frame)[0] == WORLD:
        raise ValueError(f"{body_or_frame!r} is fixed to the world: no joint of {model.name!r} moves it")
    if isinstance(target, Transform):
        return as_pose("target", target, model.dtype), 6
    return shaped("target", target, model.dtype, (3,)), 3


def inputs(model: Model, actuated: ArrayLike | None) -> Float[Array, "nv nu"]:
    """From the actuators' forces to generalized forces: indices, a mask, a matrix, or every coordinate."""
    eye = jnp.eye(model.nv, dtype=model.dtype)
    if actuated is None:
        return eye
    given = actuated if isinstance(actuated, Tracer) else np.asarray(actuated)
    if given.ndim == 2 and len(given) == model.nv and jnp.issubdtype(given.dtype, jnp.floating):
        return jnp.asarray(given, model.dtype)
    if given.dtype == bool and given.shape == (model.nv,):
        return eye[:, np.flatnonzero(given)]
    if given.ndim == 1 and jnp.issubdtype(given.dtype, jnp.integer):
        if len(set(given)) == len(given) and np.all((0 <= given) & (given < model.nv)):
            return eye[:, given]
    raise ValueError(
        f"actuated: expected different indices from 0 to {model.nv - 1}, a mask of shape {(model.nv,)}, or a matrix of "
        f"floating-point numbers of shape ({model.nv}, inputs) for {model.name!r}, got {actuated!r}"
    )
