"""Constraints beyond the tree of joints: closed loops, couplings of joints, prescribed motion, rolling.

A constraint speaks of a few frames and joints by their names, and knows nothing of the tree between them.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.array import with_fields
from jdyn.model.locked import Locked
from jdyn.model.names import JointName, Name
from jdyn.model.units import Factor, Scaling, Units, times
from jdyn.spatial import Transform
from jdyn.spatial.rotation import matrix_to_quaternion, quaternion_log

ORIGIN = (0.0, 0.0, 0.0)


class Placed(eqx.Module):
    """Frames and joints that constraints are functions of.

    Attributes:
        t: Time [s].
        frames: World pose of each of the constraint's frames.
        joints: Coordinate of each of its joints [rad or m].
    """

    t: Scalar
    frames: tuple[Transform, ...]
    joints: tuple[Scalar, ...]


class Moving(eqx.Module):
    """Velocity of `Placed`.

    Attributes:
        frames: Spatial velocity [ω; v] of each frame, in the world's axes and at the world's origin [rad/s, m/s].
        joints: Rate of each coordinate [rad/s or m/s].
    """

    frames: tuple[Float[Array, "6"], ...]
    joints: tuple[Scalar, ...]


class Constraint(eqx.Module):
    """Equations that hold for the poses of some frames and the coordinates of some joints, and for their rates.

    >>> class Level(jdyn.constraints.Constraint):  # two joints whose angles add up to zero
    ...     frames, joints = (), ("joint1", "joint2")
    ...
    ...     def residual(self, placed):
    ...         return (placed.joints[0] + placed.joints[1])[None]
    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, -0.5]), jnp.zeros(2)
    >>> print(jdyn.constrained_dynamics(model, [Level()], q, zero, zero).a.round(3))
    [-5.291  5.291]

    Attributes:
        frames: Names of bodies and frames, and `"world"`.
        joints: Names of joints with one coordinate.
    """

    if TYPE_CHECKING:
        # Type checkers would take abstract variables for arguments.
        frames: ClassVar[Any]
        joints: ClassVar[Any]
    else:
        frames: eqx.AbstractVar[tuple[str, ...]]
        joints: eqx.AbstractVar[tuple[str, ...]]

    @abc.abstractmethod
    def residual(self, placed: Placed) -> Float[Array, " holonomic"]:
        """Residual, zero where the constraint is met [m or rad]; empty if it constrains velocities alone."""

    def slip(self, placed: Placed, moving: Moving) -> Float[Array, " nonholonomic"]:
        """Velocities that are zero besides the rates of `residual`, linear in `moving` [m/s or rad/s]."""
        return jnp.zeros(0, placed.t.dtype)

    def closed(self, placed: Placed) -> "Constraint":
        """The same, with the values that its functions close over as leaves."""
        return self


class _OfFrames(Constraint):
    """Constraint between two frames alone."""

    frame_a: Name = eqx.field(static=True)
    frame_b: Name = eqx.field(static=True)

    joints: ClassVar = ()

    @property
    def frames(self):
        return self.frame_a, self.frame_b

    @abc.abstractmethod
    def between(self, X: Transform, Y: Transform) -> Array:
        """The residual for the poses of both frames."""

    def residual(self, placed):
        return self.between(*placed.frames)


def _point(x: Any) -> Array:
    return jnp.asarray(x, float)


class Connect(_OfFrames):
    """A point of one frame is a point of another one: a ball joint. Three rows, in the axes of the first frame [m].

    In a planar mechanism one of them follows from the joints, which does no harm.

    >>> model, hung = jdyn.load("double_pendulum"), [jdyn.constraints.Connect("tip", "world", point_b=(1.0, 0.0, 0.0))]
    >>> start = jdyn.assemble(model, hung, jnp.array([0.5, 1.0]))
    >>> print(jdyn.frame_pose(model, start.q, "tip").translation.round(3) + 0.0)
    [1. 0. 0.]

    Attributes:
        frame_a, frame_b: Names of bodies or frames, or `"world"`.
        point_a, point_b: The point, in the coordinates of either frame [m].
    """

    units: ClassVar[Units] = {"point_a": "m", "point_b": "m"}

    point_a: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=_point)
    point_b: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=_point)

    def between(self, X, Y):
        return X.point_to_child(Y.point_to_parent(self.point_b)) - self.point_a


class Hinge(_OfFrames):
    """A revolute joint that closes a loop: a point and an axis of one frame are those of another one. Five rows: the
    point, in the axes of the first frame [m], and the sines of two angles between the axes.

    >>> closed = [jdyn.constraints.Hinge("tip", "world", axis_a=(0, 1, 0), axis_b=(0, 1, 0), point_b=(1.0, 0.0, -1.0))]
    >>> q, zero = jnp.array([0.0, jnp.pi / 2]), jnp.zeros(2)
    >>> found = jdyn.constrained_dynamics(jdyn.load("double_pendulum"), closed, q, zero, zero)
    >>> print(found.multipliers.shape, jnp.max(jnp.abs(found.a)) < 1e-3)  # five rows; nothing moves
    (5,) True

    Attributes:
        frame_a, frame_b: Names of bodies or frames, or `"world"`.
        axis_a, axis_b: Direction of the axis in either frame; scaled to unit length.
        point_a, point_b: A point of the axis in either frame [m].
    """

    units: ClassVar[Units] = {"axis_a": "", "axis_b": "", "point_a": "m", "point_b": "m"}

    axis_a: Float[Array, "3"] = eqx.field(converter=_point)
    axis_b: Float[Array, "3"] = eqx.field(converter=_point)
    point_a: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=_point)
    point_b: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=_point)

    def between(self, X, Y):
        apart = X.point_to_child(Y.point_to_parent(self.point_b)) - self.point_a
        axis = X.rotation.T @ (Y.rotation @ _direction(self.axis_b))
        return jnp.concatenate([apart, _across(_direction(self.axis_a)) @ axis])


class Weld(_OfFrames):
    """One frame keeps its pose in another one. Six rows: the rotation vector of the deviation [rad] and its
    translation [m].

    >>> model, zero = jdyn.load("pendulum"), jnp.zeros(1)
    >>> welded = [jdyn.constraints.Weld("world", "link1")]
    >>> found = jdyn.constrained_dynamics(model, welded, zero, zero, jnp.array([5.0]))
    >>> print(found.forces.round(3))  # all of the motor's 5 N m
    [-5.]

    Attributes:
        frame_a, frame_b: Names of bodies or frames, or `"world"`.
        pose: Of the second frame in the first.
    """

    units: ClassVar[Units] = {}

    pose: Transform = eqx.field(default_factory=Transform.identity)

    def between(self, X, Y):
        return _deviation(X @ self.pose, Y)


class Distance(_OfFrames):
    """Two points keep their distance, as by a rod without mass: half of (d² − l²) / l, which is d − l to first order
    [m].

    >>> model, rod = jdyn.load("double_pendulum"), [jdyn.constraints.Distance("tip", "world", length=2.0)]
    >>> found = jdyn.constrained_dynamics(model, rod, jnp.zeros(2), jnp.array([1.0, 0.0]), jnp.zeros(2))
    >>> print(found.multipliers.shape)
    (1,)

    Attributes:
        frame_a, frame_b: Names of bodies or frames, or `"world"`.
        length: l, greater than zero [m].
        point_a, point_b: A point in the coordinates of either frame [m].
    """

    units: ClassVar[Units] = {"length": "m", "point_a": "m", "point_b": "m"}

    length: Float[Array, ""] = eqx.field(converter=_point)
    point_a: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=_point)
    point_b: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=_point)

    def between(self, X, Y):
        apart = Y.point_to_parent(self.point_b) - X.point_to_parent(self.point_a)
        return ((apart @ apart / self.length - self.length) / 2)[None]


class PointOnPlane(_OfFrames):
    """A point of one frame stays on a plane of another one, along which it slides without friction: one row, the
    distance [m], whose force pushes the point along the plane's normal [N].

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 1.0]), jnp.zeros(2)
    >>> height = jdyn.frame_pose(model, q, "tip").translation[2]
    >>> table = [jdyn.constraints.PointOnPlane("world", "tip", offset=height)]
    >>> found = jdyn.constrained_dynamics(model, table, q, zero, zero)
    >>> print(jdyn.frame_acceleration(model, q, zero, found.a, "tip", frame="aligned")[5].round(3) + 0.0)
    0.0

    Attributes:
        frame_a: Name of the body or frame that has the plane, or `"world"`.
        frame_b: Name of the body or frame that has the point, or `"world"`.
        point_b: The point, in its frame [m].
        normal: Of the plane, in its frame; scaled to unit length.
        offset: Distance of the plane from its frame's origin, along the normal [m].
    """

    units: ClassVar[Units] = {"point_b": "m", "normal": "", "offset": "m"}

    point_b: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=_point)
    normal: Float[Array, "3"] = eqx.field(default=(0.0, 0.0, 1.0), converter=_point)
    offset: Float[Array, ""] = eqx.field(default=0.0, converter=_point)

    def between(self, X, Y):
        point = X.point_to_child(Y.point_to_parent(self.point_b))
        return (_direction(self.normal) @ point - self.offset)[None]


class Gear(Constraint):
    """A joint's coordinate is a polynomial of another one's: gears, racks, screws between a hinge and a slider, cams.

    A polynomial of degree one between two joints is cheaper as a `jdyn.Mimic` of the builder, which eliminates the
    coordinate.

    >>> geared = [jdyn.constraints.Gear("joint2", "joint1", (0.0, -2.0))]
    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, -1.0]), jnp.zeros(2)
    >>> a = jdyn.constrained_dynamics(model, geared, q, zero, zero).a
    >>> print((a[1] / a[0]).round(3))
    -2.0

    Attributes:
        follower, leader: Names of joints with one coordinate.
        coefficients: Of the powers of the leader's coordinate, from the constant on up: `(0, ratio)` for a gear,
            `(0, lead / (2 π))` for a screw.
    """

    follower: JointName = eqx.field(static=True)
    leader: JointName = eqx.field(static=True)
    coefficients: Float[Array, " powers"] = eqx.field(converter=_point)

    frames: ClassVar = ()

    @property
    def joints(self):
        return self.follower, self.leader

    def scaled(self, scaling: Scaling) -> Self:
        """The same between scaled joints."""
        out, into = (scaling.joint(joint) for joint in (self.follower, self.leader))
        powers = [_ratio(scaling, out, into, power) for power in range(self.coefficients.shape[-1])]
        return with_fields(self, coefficients=_each(self.coefficients, powers))

    def residual(self, placed):
        follower, leader = placed.joints
        return (follower - jnp.polyval(self.coefficients[::-1], leader))[None]


class JointSum(Constraint):
    """A weighted sum of joints' coordinates is a given number: differentials, fingers on one cable.

    >>> pulled = [jdyn.constraints.JointSum(("joint1", "joint2"), (1.0, 2.0), 0.5)]
    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> a = jdyn.constrained_dynamics(model, pulled, q, zero, zero).a
    >>> print((a[0] / a[1]).round(3))
    -2.0

    Attributes:
        joints: Names of joints with one coordinate.
        weights: Factor of each coordinate.
        total: What the products add up to.
    """

    joints: tuple[JointName, ...] = eqx.field(static=True, converter=tuple)
    weights: Float[Array, " joints"] = eqx.field(converter=_point)
    total: Scalar = eqx.field(default=0.0, converter=_point)

    frames: ClassVar = ()

    def __check_init__(self):
        if self.weights.shape[-1:] != (len(self.joints),):
            raise ValueError(f"JointSum: expected {len(self.joints)} weights, got shape {self.weights.shape}")

    def scaled(self, scaling: Scaling) -> Self:
        """The same sum of scaled joints: in m if all of them slide; otherwise the weights are those of angles."""
        units = [scaling.joint(joint) for joint in self.joints]
        if not any(isinstance(unit, float | int) for unit in units):
            return with_fields(self, total=times(self.total, units[0]))
        weights = [_ratio(scaling, 1.0, unit, 1) for unit in units]
        return with_fields(self, weights=_each(self.weights, weights))

    def residual(self, placed):
        return (self.weights @ jnp.stack(placed.joints) - self.total)[None]

    def without_locked(self, locked: Locked) -> "JointSum | None":
        """The sum of the joints that are left; None if there are none."""
        stay = [i for i, joint in enumerate(self.joints) if joint not in locked.joints]
        if not stay:
            return None
        held = [w * locked.joints[j][0] for w, j in zip(self.weights, self.joints, strict=True) if j in locked.joints]
        joints = tuple(self.joints[i] for i in stay)
        return JointSum(joints, self.weights[np.array(stay)], self.total - sum(held))


class PrescribedJoint(Constraint):
    """A joint moves as told. Its row's force is what the joint's drive adds to other forces [N m or N].

    >>> driven = [jdyn.constraints.PrescribedJoint("joint1", lambda t: 1.5 * t**2)]
    >>> found = jdyn.constrained_dynamics(jdyn.load("pendulum"), driven, jnp.zeros(1), jnp.zeros(1), jnp.zeros(1))
    >>> print(found.a.round(3), found.multipliers.round(3))
    [3.] [1.]

    Attributes:
        joint: Name of a joint with one coordinate.
        position: `t -> q`, twice differentiable [rad or m].
    """

    units: ClassVar[Units] = {"position": "x"}

    joint: JointName = eqx.field(static=True)
    position: Callable[[Scalar], Scalar]

    frames: ClassVar = ()

    @property
    def joints(self):
        return (self.joint,)

    def scaled(self, scaling: Scaling) -> Self:
        """The same of a scaled joint."""
        return scaling.along(scaling.joint(self.joint)).numbers(self)

    def residual(self, placed):
        return (placed.joints[0] - self.position(placed.t))[None]

    def closed(self, placed):
        return dataclasses.replace(self, position=eqx.filter_closure_convert(self.position, placed.t))


class PrescribedFrame(Constraint):
    """A frame moves as told. Its rows' forces are a torque and a force at the frame's origin, in the axes of the pose
    that it is told [N m, N].

    >>> def rising(t):
    ...     return jdyn.Transform(jnp.eye(3), jnp.stack([0 * t, 0 * t, 0.5 * t**2]))
    >>> model = jdyn.ROBOTS["chain"](1, floating_base=True)  # one body that is free to move
    >>> q, v, tau = model.neutral(), jnp.zeros(6), jnp.zeros(6)
    >>> found = jdyn.constrained_dynamics(model, [jdyn.constraints.PrescribedFrame("link1", rising)], q, v, tau)
    >>> print(found.multipliers.round(2) + 0.0)  # 1 kg that accelerates by 1 m/s² against gravity
    [ 0.    0.    0.    0.    0.   10.81]

    Attributes:
        frame: Name of a body or frame.
        pose: `t -> Transform`, its pose in the world, twice differentiable.
    """

    units: ClassVar[Units] = {"pose": "pose"}

    frame: Name = eqx.field(static=True)
    pose: Callable[[Scalar], Transform]

    joints: ClassVar = ()

    @property
    def frames(self):
        return (self.frame,)

    def residual(self, placed):
        return _deviation(self.pose(placed.t), placed.frames[0])

    def closed(self, placed):
        return dataclasses.replace(self, pose=eqx.filter_closure_convert(self.pose, placed.t))


class VelocityCoupling(Constraint):
    """A ẋ + B q̇ = C for the velocities of frames and joints, with A, B, C functions of the configuration and time; ẋ
    are `Moving.frames`.

    >>> def opposite(placed):  # the rates of two joints add up to zero
    ...     return jnp.zeros((1, 0, 6)), jnp.array([[1.0, 1.0]]), jnp.zeros(1)
    >>> coupled = [jdyn.constraints.VelocityCoupling((), ("joint1", "joint2"), opposite)]
    >>> start = jdyn.assemble(jdyn.load("double_pendulum"), coupled, jnp.zeros(2), jnp.array([1.0, 0.0]))
    >>> print((start.v[0] + start.v[1]).round(3) + 0.0)
    0.0

    Attributes:
        frames: Names of bodies and frames.
        joints: Names of joints with one coordinate.
        coefficients: `placed -> (A, B, C)` of shapes (rows, frames, 6), (rows, joints) and (rows,).

    Source: Vereshchagin 1974, equation (1.1).
    """

    frames: tuple[Name, ...] = eqx.field(static=True)
    joints: tuple[JointName, ...] = eqx.field(static=True)
    coefficients: Callable[[Placed], tuple[Array, Array, Array]]

    def residual(self, placed):
        return jnp.zeros(0, placed.t.dtype)

    def slip(self, placed, moving):
        A, B, C = self.coefficients(placed)
        total = -jnp.asarray(C)
        if self.frames:
            total = total + jnp.tensordot(A, jnp.stack(moving.frames), 2)
        return total + B @ jnp.stack(moving.joints) if self.joints else total

    def closed(self, placed):
        return dataclasses.replace(self, coefficients=eqx.filter_closure_convert(self.coefficients, placed))


class _Rolling(Constraint):
    """A body that touches a plane at one point, which does not slip."""

    joints: ClassVar = ()

    @abc.abstractmethod
    def lowest(self, body: Transform, plane: Transform) -> Array:
        """The body's point that touches the plane, in the world."""

    def residual(self, placed):
        body, plane = placed.frames
        return plane.point_to_child(self.lowest(body, plane))[2:]

    def slip(self, placed, moving):
        body, plane = placed.frames
        apart = moving.frames[0] - moving.frames[1]
        return (plane.rotation.T @ (apart[3:] + jnp.cross(apart[:3], self.lowest(body, plane))))[:2]


class RollingDisk(_Rolling):
    """A thin disk that rolls on a plane without slipping. One row for its lowest point, which is on the plane [m], and
    two for that point's velocity along the plane [m/s].

    >>> disk = jdyn.constraints.RollingDisk("link1", 0.3, axis=(0, 1, 0))
    >>> model = jdyn.ROBOTS["chain"](1, floating_base=True)  # one body that is free to move
    >>> q, v, tau = model.neutral().at[2].set(0.3), jnp.zeros(6), jnp.zeros(6)
    >>> print(jdyn.constrained_dynamics(model, [disk], q, v, tau).multipliers.shape)
    (3,)

    Attributes:
        disk: Name of the body or frame whose origin is the disk's centre.
        radius: Of the disk [m].
        axis: Of the disk, in its frame; scaled to unit length.
        plane: The frame whose first two axes span the plane.
    """

    units: ClassVar[Units] = {"radius": "m", "axis": ""}

    disk: Name = eqx.field(static=True)
    radius: Float[Array, ""] = eqx.field(converter=_point)
    axis: Float[Array, "3"] = eqx.field(default=(0.0, 0.0, 1.0), converter=_point)
    plane: Name = eqx.field(static=True, default="world")

    @property
    def frames(self):
        return self.disk, self.plane

    def lowest(self, body, plane):
        normal, axis = plane.rotation[:, 2], body.rotation @ _direction(self.axis)
        down = (axis @ normal) * axis - normal
        return body.translation + self.radius * _direction(down)


class RollingSphere(_Rolling):
    """A sphere that rolls on a plane without slipping. Rows as of `RollingDisk`; it may spin about the plane's normal.

    >>> ball = jdyn.constraints.RollingSphere("link1", 0.3)
    >>> model = jdyn.ROBOTS["chain"](1, floating_base=True)  # one body that is free to move
    >>> q, v, tau = model.neutral().at[2].set(0.3), jnp.zeros(6), jnp.zeros(6)
    >>> print(jdyn.constrained_dynamics(model, [ball], q, v, tau).multipliers.shape)
    (3,)

    Attributes:
        sphere: Name of the body or frame whose origin is the sphere's centre.
        radius: Of the sphere [m].
        plane: The frame whose first two axes span the plane.
    """

    units: ClassVar[Units] = {"radius": "m"}

    sphere: Name = eqx.field(static=True)
    radius: Float[Array, ""] = eqx.field(converter=_point)
    plane: Name = eqx.field(static=True, default="world")

    @property
    def frames(self):
        return self.sphere, self.plane

    def lowest(self, body, plane):
        return body.translation - self.radius * plane.rotation[:, 2]


def _ratio(scaling: Scaling, out: Factor, into: Factor, power: int) -> Array:
    """Factor of one unit over a power of another one."""
    one = jnp.ones((), scaling.model.dtype)
    return times(one, out) / times(one, into) ** power


def _each(numbers: Array, factors: list[Array]) -> Array:
    """Numbers times a factor for each; of no numbers, none."""
    return times(numbers, jnp.stack(factors)) if factors else numbers


def _deviation(wanted, X):
    """Deviation of a pose from the one that is wanted, in its axes: rotation vector [rad] and translation [m]."""
    off = wanted.inverse() @ X
    return jnp.concatenate([quaternion_log(matrix_to_quaternion(off.rotation)), off.translation])


def _direction(x):
    return x / jnp.linalg.norm(x)


def _across(axis):
    """Two unit vectors across an axis and each other."""
    some = jnp.zeros_like(axis).at[jnp.argmin(jnp.abs(axis))].set(1)
    one = _direction(jnp.cross(axis, some))
    return jnp.stack([one, jnp.cross(axis, one)])
