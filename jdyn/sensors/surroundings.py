"""The shapes of a model, as sensors see them."""

import abc
from collections.abc import Sequence

import equinox as eqx
from jaxtyping import Array, Float, Int

from jdyn.array import Structure
from jdyn.geometry import Separation
from jdyn.spatial import Transform


class RayHits(Structure):
    """The first shape that each ray meets, in world axes.

    >>> model = jdyn.with_ground(jdyn.load("hopper"))
    >>> q, down = model.neutral(), jnp.array([0.0, 0.0, -1.0])
    >>> hits = jdyn.contact.ray_cast(model, q, jnp.array([2.0, 0.0, 1.5]), jnp.stack([down, -down]))
    >>> print(hits.distance, hits.shape, hits.point[0], hits.normal[0])
    [1.5 inf] [ 2 -1] [2. 0. 0.] [0. 0. 1.]
    >>> print(hits.names[hits.shape[0]])
    ground

    Attributes:
        names: Those of the collision shapes of the model.
        distance: From the origin of the ray [m]; infinite where it meets nothing.
        shape: Number of the shape in `names`; -1 where the ray meets nothing.
        point: The place [m]; infinite where the ray meets nothing.
        normal: Unit normal of the surface there, out of the shape; zero where the ray meets nothing.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    distance: Float[Array, "*rays"]
    shape: Int[Array, "*rays"]
    point: Float[Array, "*rays 3"]
    normal: Float[Array, "*rays 3"]


class Surroundings(Structure):
    """Collision shapes of a model, as a sensor that `uses_shapes` sees them in `jdyn.sensors.Reading.around`.

    >>> class Below(jdyn.sensors.Sensor):
    ...     uses_forces, uses_shapes = False, True
    ...
    ...     def value(self, reading):
    ...         tip, down = reading.pose("tip").translation, jnp.array([0.0, 0.0, -1.0])
    ...         ground = reading.around.numbers(["ground"])
    ...         return reading.around.cast(reading.kinematics.poses, tip[None], down[None], ground).point[0]
    >>> system = jdyn.System(jdyn.with_ground(jdyn.load("pendulum")), sensors=[Below("below")])
    >>> print(system.sense(system.state(jnp.array([2.0])))["below"].round(3) + 0.0)
    [0.909 0.    0.   ]
    """

    @abc.abstractmethod
    def numbers(self, names: Sequence[str]) -> tuple[int, ...]:
        """Numbers of collision shapes.

        Raises:
            ValueError: if there is none of a name.
        """

    @abc.abstractmethod
    def apart_from(self, body: int) -> tuple[int, ...]:
        """Numbers of the collision shapes that a body does not carry; all for the world."""

    @abc.abstractmethod
    def cast(
        self,
        poses: Transform,
        origins: Float[Array, "rays 3"],
        directions: Float[Array, "rays 3"],
        seen: tuple[int, ...],
    ) -> RayHits:
        """The first places where rays meet shapes.

        Args:
            poses: Of all bodies.
            origins: In world axes [m].
            directions: In world axes, of any length.
            seen: Numbers of the shapes that rays do not pass through.
        """

    @abc.abstractmethod
    def between(self, poses: Transform, pairs: Sequence[tuple[int, int]]) -> Separation:
        """Distances between pairs of shapes, in world axes.

        Args:
            poses: Of all bodies.
            pairs: Numbers of the two shapes of each.
        """
