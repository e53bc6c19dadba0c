"""Arguments of controllers, as arrays in the model's type; `shaped` refuses other shapes."""

from jaxtyping import Array, ArrayLike, Float

from jdyn.array import shaped
from jdyn.model import Model
from jdyn.spatial import Transform


def configuration(model: Model, name: str, value: ArrayLike) -> Float[Array, " nq"]:
    """A configuration."""
    return shaped(name, value, model.dtype, (model.nq,), owner=model.name)


def scalar_or(model: Model, size: int, name: str, value: ArrayLike) -> Float[Array, "*size"]:
    """A number, or one for each coordinate."""
    return shaped(name, value, model.dtype, (), (size,), owner=model.name)


def place(model: Model, target: ArrayLike | Transform) -> Float[Array, "3"] | Transform:
    """A position in the world, or a pose."""
    if isinstance(target, Transform):
        return Transform(
            shaped("target.rotation", target.rotation, model.dtype, (3, 3)),
            shaped("target.translation", target.translation, model.dtype, (3,)),
        )
    return shaped("target", target, model.dtype, (3,))
