"""Arguments of controllers, as arrays in the model's type; `shaped` refuses other shapes."""

from jaxtyping import Array, ArrayLike, Float

from jdyn.array import shaped
from jdyn.model import Model


def configuration(model: Model, name: str, value: ArrayLike) -> Float[Array, " nq"]:
    """A configuration."""
    return shaped(name, value, model.dtype, (model.nq,), owner=model.name)


def scalar_or(model: Model, size: int, name: str, value: ArrayLike) -> Float[Array, "*size"]:
    """A number, or one for each coordinate."""
    return shaped(name, value, model.dtype, (), (size,), owner=model.name)
