"""Sensors of contact."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Scalar

from jdyn.model import Name
from jdyn.sensors.reading import Reading
from jdyn.sensors.sensor import Sensor


def names_of(x: Any) -> Any:
    """Names of a field, which may be a single one."""
    return (x,) if isinstance(x, str) else tuple(x)


class Touch(Sensor):
    """Sum of the normal forces with which all others press on collision shapes [N]; zero where contact is left out.

    >>> builder = jdyn.Builder("ball")
    >>> builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=4e-3 * jnp.ones(3))
    >>> builder.add_shape("ball", "sphere", 0.1, role="collision")
    >>> model = jdyn.with_ground(builder.build())
    >>> touch = jdyn.sensors.Touch("touch", "ball")
    >>> system = jdyn.System(model, contact=jdyn.CompliantContact(), sensors=[touch])
    >>> motion = jdyn.simulate(system, system.state(model.neutral().at[2].set(0.1)), 1.0)
    >>> print(motion.sensors["touch"][-1].round(1))
    9.8

    Attributes:
        name: Key of its values.
        shapes: Names of collision shapes.
    """

    shapes: tuple[Name, ...] = eqx.field(static=True, converter=names_of)

    def value(self, reading: Reading) -> Scalar:
        if reading.contacts is None:
            return jnp.zeros_like(reading.t)
        return reading.contacts.pressing(self.shapes)
