"""All of a robot file that can be simulated."""

from typing import NamedTuple

from jaxtyping import Array, Float

from jdyn.actuators import Actuator
from jdyn.model import Constraint, Model


class Scene(NamedTuple):
    """Contents of a file.

    Attributes:
        model: The mechanism.
        constraints: Beyond the tree of its joints.
        configurations: Those that the file names.
        actuators: Between commands and the mechanism.
        touches: Whether the file says that its shapes touch.
    """

    model: Model
    constraints: tuple[Constraint, ...]
    configurations: dict[str, Float[Array, " nq"]]
    touches: bool
    actuators: tuple[Actuator, ...] = ()
