"""The protocol of sensors: named outputs of a system."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float

from jdyn.array import as_numbers
from jdyn.model import Factor, Name, Scaling, Units, unit_of
from jdyn.sensors.reading import Reading


class Sensor(eqx.Module):
    """A named output of a system: a function of its state, its accelerations and its forces at one instant.

    `jdyn.System(model, sensors=[...])` takes any number of them; a simulation costs no more for it. A subclass defines
    `value`. Numbers are leaves: `jdyn.vary` changes them, sweeps and gradients find them.

    >>> class Height(jdyn.sensors.Sensor):
    ...     uses_forces = False
    ...
    ...     def value(self, reading):
    ...         return reading.pose("tip").translation[2]
    >>> system = jdyn.System(jdyn.load("pendulum"), sensors=[Height("height")])
    >>> print(system.sense(system.state(jnp.array([jnp.pi])))["height"].round(3))
    1.0

    Attributes:
        name: Key of its values; each sensor of a system has another one.
        uses_forces: Whether `value` looks at accelerations or forces. Where no sensor does, they are not computed.
        uses_actuators: Whether it looks at what actuators do.
        uses_shapes: Whether it looks at collision shapes.
    """

    units: ClassVar[Units] = {}

    name: Name = eqx.field(static=True)

    uses_forces: ClassVar[bool] = True
    uses_actuators: ClassVar[bool] = False
    uses_shapes: ClassVar[bool] = False

    def value_factor(self, scaling: Scaling) -> Factor:
        """Factor of its values on a scaled mechanism, whose unit is `"value"` among the `units` of the class.

        Raises:
            ValueError: if there is none.
        """
        if (unit := unit_of(self, "value")) is None:
            raise scaling.refusal(self, 'has values of unknown unit; give the class `units = {"value": "m/s"}`')
        return scaling.factor(unit)

    @abc.abstractmethod
    def value(self, reading: Reading) -> Float[Array, "..."]:
        """Value at one instant."""


def as_arrays(x: Any) -> Any:
    """A pose or an inertia with `as_numbers` for leaves; None stays None."""
    return jax.tree.map(as_numbers, x)
