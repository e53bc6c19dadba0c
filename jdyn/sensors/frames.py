"""Sensors of the motion of frames, in the world or in another frame."""

from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.model import Name, Units
from jdyn.sensors.reading import Reading
from jdyn.sensors.sensor import Sensor, as_arrays
from jdyn.spatial import Transform
from jdyn.spatial.rotation import matrix_to_quaternion


class FrameSensor(Sensor):
    """A sensor of the motion of a frame, as its reference sees it: what such sensors have in common.

    >>> sensor = jdyn.sensors.FramePosition("hand", "tip", jdyn.pose((0.0, 0.0, 0.1)), reference="link1")
    >>> isinstance(sensor, jdyn.sensors.FrameSensor)
    True
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("double_pendulum"), jnp.array([1.0, 0.0]), jnp.zeros(2))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [ 0.   0.  -1.9]

    Attributes:
        name: Key of its values.
        frame: Name of a body or frame, or `"world"`.
        pose: Of the sensor in that frame; the frame itself if None.
        reference: Name of the frame in whose axes, and relative to whose motion, values are; the world if None.
        reference_pose: Of the reference in that frame; the frame itself if None.
    """

    frame: Name = eqx.field(static=True)
    pose: Transform | None = eqx.field(default=None, converter=as_arrays)
    reference: Name | None = eqx.field(static=True, default=None)
    reference_pose: Transform | None = eqx.field(default=None, converter=as_arrays)

    uses_forces: ClassVar[bool] = False

    def _pose(self, reading: Reading) -> Transform:
        X = reading.pose(self.frame, self.pose)
        return X if self.reference is None else self._reference(reading).inverse() @ X

    def _reference(self, reading: Reading) -> Transform:
        return reading.pose(self._reference_name, self.reference_pose)

    @property
    def _reference_name(self) -> str:
        return "world" if self.reference is None else self.reference

    def _velocities(self, reading: Reading) -> tuple[Array, Array, Array, Array]:
        """Velocities of the frame, [ω; v], and of the reference at its own origin, the way between both origins, and
        the linear velocity that the reference sees; in world axes."""
        moving, turning = reading.velocity(self.frame, self.pose), reading.velocity(*self._seen_from)
        way = reading.pose(self.frame, self.pose).translation - self._reference(reading).translation
        return moving, turning, way, moving[3:] - turning[3:] - jnp.cross(turning[:3], way)

    @property
    def _seen_from(self) -> tuple[str, Transform | None]:
        return self._reference_name, self.reference_pose

    def _in_axes(self, reading: Reading, x: Float[Array, "3"]) -> Float[Array, "3"]:
        """A vector of world axes in those of the reference."""
        return self._reference(reading).rotation.T @ x


class FramePosition(FrameSensor):
    """Position of the origin of a frame [m], in the world or in a `reference`. Fields are those of `FrameSensor`.

    >>> sensor = jdyn.sensors.FramePosition("tip", "tip")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.array([jnp.pi / 2]), jnp.zeros(1))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [1. 0. 0.]
    """

    units: ClassVar[Units] = {"value": "m"}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        return self._pose(reading).translation


class FrameQuaternion(FrameSensor):
    """Orientation of a frame in the world or in a `reference`, a unit quaternion (w, x, y, z) whose largest component
    is positive. Fields are those of `FrameSensor`.

    >>> sensor = jdyn.sensors.FrameQuaternion("turn", "tip")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.array([-1.0]), jnp.zeros(1))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [0.878 0.    0.479 0.   ]
    """

    units: ClassVar[Units] = {"value": ""}

    def value(self, reading: Reading) -> Float[Array, "4"]:
        return matrix_to_quaternion(self._pose(reading).rotation)


class FrameAxis(FrameSensor):
    """Direction of an axis of a frame, in the world or in a `reference`. Fields are those of `FrameSensor`, and

    >>> sensor = jdyn.sensors.FrameAxis("down", "tip", axis="z")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.array([jnp.pi / 2]), jnp.zeros(1))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [-1.  0.  0.]

    Attributes:
        axis: Which one.
    """

    units: ClassVar[Units] = {"value": ""}

    axis: Literal["x", "y", "z"] = eqx.field(static=True, default="x", kw_only=True)

    def __check_init__(self):
        if self.axis not in ("x", "y", "z"):
            raise ValueError(f"FrameAxis.axis: expected 'x', 'y' or 'z', got {self.axis!r}")

    def value(self, reading: Reading) -> Float[Array, "3"]:
        return self._pose(reading).rotation[:, "xyz".index(self.axis)]


class FrameLinearVelocity(FrameSensor):
    """Velocity of the origin of a frame [m/s]; with a `reference` the rate of its position there, in axes of the
    reference. Fields are those of `FrameSensor`.

    >>> sensor = jdyn.sensors.FrameLinearVelocity("speed", "tip")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0]))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [2. 0. 0.]
    """

    units: ClassVar[Units] = {"value": "m/s"}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        return self._in_axes(reading, self._velocities(reading)[3])


class FrameAngularVelocity(FrameSensor):
    """Angular velocity of a frame [rad/s], in world axes; with a `reference` relative to its own, in its axes. Fields
    are those of `FrameSensor`.

    >>> sensor = jdyn.sensors.FrameAngularVelocity("spin", "tip")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0]))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [ 0. -2.  0.]
    """

    units: ClassVar[Units] = {"value": "1/s"}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        moving, turning, _, _ = self._velocities(reading)
        return self._in_axes(reading, moving[:3] - turning[:3])


class FrameLinearAcceleration(FrameSensor):
    """Acceleration of the origin of a frame [m/s²]; with a `reference` the second rate of its position there, in axes
    of the reference. Fields are those of `FrameSensor`, and

    >>> sensor = jdyn.sensors.FrameLinearAcceleration("pull", "tip")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0]), a=jnp.zeros(1))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [0. 0. 4.]

    Attributes:
        from_free_fall: Whether the acceleration is that relative to free fall, as accelerometers read it: upwards at
            rest, as MuJoCo's `framelinacc`. Not with a `reference`.

    Raises:
        ValueError: if it is to be relative to free fall and to a reference.
    """

    from_free_fall: bool = eqx.field(static=True, default=False, kw_only=True)

    units: ClassVar[Units] = {"value": "m/s^2"}
    uses_forces: ClassVar[bool] = True

    def __check_init__(self):
        if self.from_free_fall and self.reference is not None:
            raise ValueError(
                "FrameLinearAcceleration: expected an acceleration relative to free fall or to a reference, got both"
            )

    def value(self, reading: Reading) -> Float[Array, "3"]:
        _, turning, way, seen = self._velocities(reading)
        change, about = reading.acceleration(self.frame, self.pose), reading.acceleration(*self._seen_from)
        w = turning[:3]
        apparent = jnp.cross(about[:3], way) + jnp.cross(w, jnp.cross(w, way)) + 2 * jnp.cross(w, seen)
        total = change[3:] - about[3:] - apparent
        return self._in_axes(reading, total - reading.model.gravity if self.from_free_fall else total)


class FrameAngularAcceleration(FrameSensor):
    """Rate of the angular velocity of a frame [rad/s²], in world axes; with a `reference` the rate of the angular
    velocity relative to it, in its axes. Fields are those of `FrameSensor`.

    >>> sensor = jdyn.sensors.FrameAngularAcceleration("jerk", "tip")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1), a=jnp.ones(1))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [ 0. -1.  0.]
    """

    units: ClassVar[Units] = {"value": "1/s^2"}
    uses_forces: ClassVar[bool] = True

    def value(self, reading: Reading) -> Float[Array, "3"]:
        moving, turning, _, _ = self._velocities(reading)
        change, about = reading.acceleration(self.frame, self.pose), reading.acceleration(*self._seen_from)
        return self._in_axes(reading, change[:3] - about[:3] - jnp.cross(turning[:3], moving[:3] - turning[:3]))
