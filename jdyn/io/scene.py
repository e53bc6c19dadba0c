"""All of a robot file that can be simulated."""

from typing import NamedTuple

from jaxtyping import Array, Float

from jdyn.actuators import Actuator
from jdyn.elements import ForceElement
from jdyn.model import Constraint, Model
from jdyn.sensors import Sensor


class Scene(NamedTuple):
    """Contents of a file.

    Attributes:
        model: The mechanism.
        constraints: Beyond the tree of its joints.
        configurations: Those that the file names.
        touches: Whether the file says which of its shapes touch.
        actuators: Between commands and the mechanism.
        sensors: Those of the file, in its order.
        elements: Springs, dampers, friction, stops and inertia of its tendons, the medium, carried weight.
        contact: False where the file switches contact off.
        stops: False where the file switches limits of joints off.
    """

    model: Model
    constraints: tuple[Constraint, ...]
    configurations: dict[str, Float[Array, " nq"]]
    touches: bool
    actuators: tuple[Actuator, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    elements: tuple[ForceElement, ...] = ()
    contact: bool = True
    stops: bool = True
