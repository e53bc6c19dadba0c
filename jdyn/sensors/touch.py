"""Sensors of contact."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Scalar

from jdyn.geometry import ray_hit
from jdyn.model import Name, Units
from jdyn.sensors.reading import Reading
from jdyn.sensors.sensor import Sensor, as_arrays
from jdyn.spatial import Transform


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
        zone: A shape of `jdyn.geometry`: only those points count from which the normal out of the touched shape meets
            it. None for all points.
        frame: Name of the body or frame on which the zone is mounted.
        pose: Of the zone in that frame; the frame itself if None.
    """

    units: ClassVar[Units] = {"value": "N"}

    shapes: tuple[Name, ...] = eqx.field(static=True, converter=names_of)
    zone: Any = None
    frame: Name = eqx.field(static=True, default="world")
    pose: Transform | None = eqx.field(default=None, converter=as_arrays)

    def value(self, reading: Reading) -> Scalar:
        if reading.contacts is None:
            return jnp.zeros_like(reading.t)
        forces = reading.contacts.pressing(self.shapes)
        return jnp.sum(forces if self.zone is None else jnp.where(self._meets_zone(reading), forces, 0))

    def _meets_zone(self, reading):
        X, loads = reading.pose(self.frame, self.pose), reading.contacts

        def distance(point, normal):
            return ray_hit(self.zone, X.point_to_child(point), X.rotation.T @ normal).distance

        return jax.vmap(distance)(loads.position, loads.outwards(self.shapes)) < jnp.inf
