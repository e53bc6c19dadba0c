"""All of a robot file that can be simulated."""

from typing import NamedTuple

from jaxtyping import Array, Float

from jdyn.model import Constraint, Model


class Scene(NamedTuple):
    """Contents of a file.

    Attributes:
        model: The mechanism.
        constraints: Beyond the tree of its joints.
        configurations: Those that the file names.
        touches: Whether the file says that its shapes touch.
    """

    model: Model
    constraints: tuple[Constraint, ...]
    configurations: dict[str, Float[Array, " nq"]]
    touches: bool
