"""Sensors of the distance of shapes: along rays, and between shapes."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.array import as_numbers
from jdyn.geometry import Separation
from jdyn.model import Name, Units
from jdyn.sensors.reading import Reading
from jdyn.sensors.sensor import Sensor, as_arrays
from jdyn.sensors.touch import names_of
from jdyn.spatial import Transform


def _names_or_none(x: Any) -> Any:
    return None if x is None else names_of(x)


class Rangefinder(Sensor):
    """Distances [m] along rays from the origin of a frame to the first collision shapes that they meet.

    Shapes are as for `jdyn.contact.ray_cast`, and so are derivatives.

    >>> model = jdyn.with_ground(jdyn.load("pendulum"))
    >>> down = jdyn.sensors.Rangefinder("height", "world", jdyn.pose((0.5, 0.0, 2.0)), directions=(0.0, 0.0, -1.0))
    >>> system = jdyn.System(model, sensors=[down])
    >>> print(system.sense(system.state())["height"])
    2.0

    Attributes:
        name: Key of its values.
        frame: Name of the body or frame on which it is mounted, or `"world"`.
        pose: Of the sensor in that frame; the frame itself if None.
        directions: In axes of the sensor, of any length; the z axis if left out. The value has their axes but the last.
        shapes: Names of the collision shapes that it sees; if None, all but those of the body that carries the
            frame, and all where that is the world.
        missed: Value of a ray that meets nothing [m].
    """

    units: ClassVar[Units] = {"value": "m", "directions": "", "missed": "m"}

    frame: Name = eqx.field(static=True)
    pose: Transform | None = eqx.field(default=None, converter=as_arrays)
    directions: Float[Array, "*rays 3"] = eqx.field(default=(0.0, 0.0, 1.0), converter=as_numbers)
    shapes: tuple[Name, ...] | None = eqx.field(static=True, default=None, converter=_names_or_none)
    missed: Scalar = eqx.field(default=np.inf, converter=as_numbers)

    uses_forces: ClassVar[bool] = False

    @property
    def uses_shapes(self) -> bool:
        return self.shapes != ()

    def value(self, reading: Reading) -> Float[Array, "*rays"]:
        X, rays = reading.pose(self.frame, self.pose), self.directions.shape[:-1]
        if self.shapes == ():
            return jnp.broadcast_to(self.missed, rays)
        around, (body, _) = reading.around, reading.mounted(self.frame, self.pose)
        seen = around.apart_from(body) if self.shapes is None else around.numbers(self.shapes)
        directions = self.directions.reshape(-1, 3) @ X.rotation.T
        origins = jnp.broadcast_to(X.translation[None], directions.shape)
        distance = around.cast(reading.kinematics.poses, origins, directions, seen).distance
        return jnp.where(distance == jnp.inf, self.missed, distance).reshape(rays)


class Distance(Sensor):
    """Distance [m] between collision shapes, the least of all pairs of a first and a second one; below zero where they
    overlap.

    Shapes and derivatives are as for `jdyn.contact.distances`.

    >>> model = jdyn.with_ground(jdyn.load("quadruped"))
    >>> clearance = jdyn.sensors.Distance("clearance", "ground", ["fr_foot", "fl_foot"])
    >>> system = jdyn.System(model, sensors=[clearance])
    >>> q = model.neutral().at[2].set(1.0)
    >>> print(jax.grad(lambda q: system.sense(system.state(q))["clearance"])(q)[2].round(3))
    1.0

    Attributes:
        name: Key of its values.
        first, second: Names of collision shapes.
        cutoff: Largest distance that it measures [m], its value where shapes are farther from each other.
    """

    units: ClassVar[Units] = {"value": "m", "cutoff": "m"}

    first: tuple[Name, ...] = eqx.field(static=True, converter=names_of)
    second: tuple[Name, ...] = eqx.field(static=True, converter=names_of)
    cutoff: Scalar = eqx.field(default=np.inf, converter=as_numbers)

    uses_forces: ClassVar[bool] = False
    uses_shapes: ClassVar[bool] = True

    def value(self, reading: Reading) -> Float[Array, "..."]:
        return jnp.minimum(self._least(reading).distance, self.cutoff)

    def _least(self, reading: Reading) -> Separation:
        """Separation of the pair that is least far apart."""
        around = reading.around
        firsts, seconds = around.numbers(self.first), around.numbers(self.second)
        pairs = [(first, second) for first in firsts for second in seconds]
        found = around.between(reading.kinematics.poses, pairs)
        least = jnp.argmin(found.distance)
        return jax.tree.map(lambda x: x[least], found)


class DistanceNormal(Distance):
    """Direction from the point of the first shape to the point of the second one, a unit vector in world axes, between
    which their `Distance` is measured; zero where that is beyond the cutoff. It turns around where shapes begin to
    overlap. Fields are those of `Distance`.

    >>> model = jdyn.with_ground(jdyn.load("quadruped"))
    >>> system = jdyn.System(model, sensors=[jdyn.sensors.DistanceNormal("up", "ground", "fr_foot")])
    >>> print(system.sense(system.state(model.neutral().at[2].set(1.0)))["up"])
    [0. 0. 1.]
    """

    units: ClassVar[Units] = {"value": ""}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        found = self._least(reading)
        return jnp.where(found.distance < self.cutoff, jnp.where(found.distance < 0, -1, 1) * found.normal, 0)


class DistancePoints(Distance):
    """Points of the first and of the second shape, rows in world axes [m], between which their `Distance` is measured;
    zero where that is beyond the cutoff. Fields are those of `Distance`.

    >>> model = jdyn.with_ground(jdyn.load("quadruped"))
    >>> system = jdyn.System(model, sensors=[jdyn.sensors.DistancePoints("points", "ground", "fr_foot")])
    >>> print(system.sense(system.state(model.neutral().at[2].set(1.0)))["points"].shape)
    (2, 3)
    """

    def value(self, reading: Reading) -> Float[Array, "2 3"]:
        found = self._least(reading)
        return jnp.where(found.distance < self.cutoff, jnp.stack([found.a, found.b]), 0)
