"""Tendons that run through space, from point to point and around bodies."""

import abc
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.array import as_numbers, in_type
from jdyn.dynamics import Kinematics
from jdyn.dynamics.body_kinematics import ORIGIN
from jdyn.dynamics.kinematics import carrier
from jdyn.model import Name, Units
from jdyn.spatial import Transform
from jdyn.transmissions.transmission import Transmission
from jdyn.transmissions.wrapping import WrappedPath, around_cylinder, around_sphere, straight_path


class PathPoint(eqx.Module):
    """A point of a frame through which a tendon runs, free to slide.

    >>> print(jdyn.transmissions.PathPoint("tip", [0.0, 0.0, 0.1]).point)
    [0.  0.  0.1]

    Attributes:
        frame: Name of a body or a frame, or `"world"`.
        point: In the frame [m].
    """

    units: ClassVar[Units] = {"point": "m"}

    frame: Name = eqx.field(static=True)
    point: Float[Array, "3"] = eqx.field(default=ORIGIN, converter=as_numbers)

    def position(self, kinematics: Kinematics) -> Float[Array, "3"]:
        """Position in the world [m]."""
        return kinematics.position(self.frame, self.point)


class Pulley(eqx.Module):
    """A pulley between branches of a tendon, which are not joined in space: lengths and tensions after it, up to the
    next one, are divided. A tendon that pulls two fingers, each with half of its tension, has two branches after
    pulleys with a divisor of 2.

    >>> half = jdyn.transmissions.Pulley(2.0)
    >>> print(half.divisor)
    2.0

    Attributes:
        divisor: By which they are divided.
    """

    units: ClassVar[Units] = {"divisor": ""}

    divisor: Scalar = eqx.field(converter=as_numbers)


class Wrapped(eqx.Module):
    """A body that a tendon runs around, between two of its points."""

    frame: eqx.AbstractVar[str]
    pose: eqx.AbstractVar[Transform]
    side: eqx.AbstractVar[PathPoint | None]
    inside: eqx.AbstractVar[bool]

    def __check_init__(self):
        if self.inside and self.side is not None:
            raise ValueError(f"{type(self).__name__}: a tendon that runs inside has no side, got inside and side")

    @abc.abstractmethod
    def path(self, start: Array, end: Array, side: Array | None) -> WrappedPath:
        """Path between two points, in axes of the body."""

    def place(self, kinematics: Kinematics) -> Transform:
        """Pose in the world."""
        return kinematics.pose(self.frame) @ self.pose


class WrappedSphere(Wrapped):
    """A sphere that a tendon runs around, between two of its points. It is straight where it touches nothing, and where
    one of these points is within the sphere.

    >>> ball = jdyn.transmissions.WrappedSphere("link1", 0.05)
    >>> ends = [jdyn.transmissions.PathPoint("world", [x, 0.0, 0.03]) for x in (-0.2, 0.2)]
    >>> tendon = jdyn.transmissions.SpatialTendon([ends[0], ball, ends[1]])
    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1))
    >>> print(f"{tendon.length(arm):.4f}")
    0.4020

    Attributes:
        frame: Name of the body or frame that carries it, or `"world"`.
        radius: [m].
        pose: Of the sphere in that frame.
        side: A point on whose side the tendon passes the centre; the shorter way, if it is left out.
        inside: Whether the tendon runs through the sphere, as through a ring that is free to turn. Where it would miss
            the ring, it touches the ring in one point.
    """

    units: ClassVar[Units] = {"radius": "m"}

    frame: Name = eqx.field(static=True)
    radius: Scalar = eqx.field(converter=as_numbers)
    pose: Transform = eqx.field(default_factory=Transform.identity)
    side: PathPoint | None = None
    inside: bool = eqx.field(static=True, default=False)

    def path(self, start: Array, end: Array, side: Array | None) -> WrappedPath:
        return around_sphere(start, end, self.radius, side, self.inside)


class WrappedCylinder(Wrapped):
    """A cylinder without ends that a tendon runs around, between two of its points. It is straight where it touches
    nothing, and where one of these points is within the cylinder.

    >>> drum = jdyn.transmissions.WrappedCylinder("link1", 0.05, pose=jdyn.pose(rpy=[np.pi / 2, 0.0, 0.0]))
    >>> ends = [jdyn.transmissions.PathPoint("world", [x, 0.0, 0.03]) for x in (-0.2, 0.2)]
    >>> tendon = jdyn.transmissions.SpatialTendon([ends[0], drum, ends[1]])
    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1))
    >>> print(f"{tendon.length(arm):.4f}")
    0.4020

    Attributes:
        frame: Name of the body or frame that carries it, or `"world"`.
        radius: [m].
        pose: Of the cylinder in that frame; the axis is z.
        side: A point on whose side the tendon passes the axis; the shorter way, if it is left out.
        inside: Whether the tendon runs through the cylinder. Where it would miss the cylinder, it touches the cylinder
            in one point.
    """

    units: ClassVar[Units] = {"radius": "m"}

    frame: Name = eqx.field(static=True)
    radius: Scalar = eqx.field(converter=as_numbers)
    pose: Transform = eqx.field(default_factory=Transform.identity)
    side: PathPoint | None = None
    inside: bool = eqx.field(static=True, default=False)

    def path(self, start: Array, end: Array, side: Array | None) -> WrappedPath:
        return around_cylinder(start, end, self.radius, side, self.inside)


class Pull(NamedTuple):
    """The derivative of a length by the position of a point that is fixed in a frame.

    Attributes:
        frame: The frame.
        position: In the world [m].
        slope: In world axes.
    """

    frame: str
    position: Array
    slope: Array


class SpatialTendon(Transmission):
    """The length of a rope through points, around bodies and over pulleys.

    Between two points of its path it is straight, or leads around the body that stands between them on the shortest
    way. Moments are continuous where it meets a body and where it leaves. Its length jumps only where one of the points
    passes behind a body, seen from the `side` of that.

    >>> at = jdyn.transmissions.PathPoint
    >>> tendon = jdyn.transmissions.SpatialTendon([at("world", [0.3, 0.0, 0.0]), at("tip")])
    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("pendulum"), jnp.array([0.0]), jnp.zeros(1))
    >>> print(f"{tendon.length(arm):.3f}", tendon.moments(arm).round(3))
    1.044 [-0.287]

    Attributes:
        path: `PathPoint`s; `WrappedSphere`s and `WrappedCylinder`s between two of these; and `Pulley`s between
            branches, or before the first one.

    Raises:
        ValueError: if a branch has less than two points, a body is not between two points, or a part is of another
            kind. Methods: if there is no such frame.

    Source: MuJoCo's documentation, XML reference, tendon; moments by points of tangency, which are fixed in their
    bodies: a shortest path changes by what moves its ends alone.
    """

    units: ClassVar[Units] = {"length": "m"}

    path: tuple[PathPoint | Wrapped | Pulley, ...] = eqx.field(converter=tuple)

    def __check_init__(self):
        for part in self.path:
            if not isinstance(part, PathPoint | Wrapped | Pulley):
                raise ValueError(f"path: expected PathPoint, WrappedSphere, WrappedCylinder or Pulley, got {part!r}")
        kinds = "".join("." if isinstance(x, PathPoint) else "|" if isinstance(x, Pulley) else "o" for x in self.path)
        branches = kinds.removeprefix("|").split("|")
        for branch in branches:
            if branch.count(".") < 2 or "oo" in branch or branch[0] == "o" or branch[-1] == "o":
                raise ValueError(
                    "path: expected branches of two points or more, with at most one body between two of them, got "
                    + ", ".join(type(part).__name__ for part in self.path)
                )

    def length(self, kinematics: Kinematics) -> Scalar:
        lengths = [length / divisor for length, _, divisor in self._stretches(kinematics)]
        return jnp.sum(jnp.stack(lengths))

    def moments(self, kinematics: Kinematics) -> Float[Array, " nv"]:
        return kinematics.generalized(self.on_bodies(kinematics))

    def on_bodies(self, kinematics: Kinematics) -> Float[Array, "nb 6"]:
        pulls = [
            pull._replace(slope=pull.slope / divisor)
            for _, several, divisor in self._stretches(kinematics)
            for pull in several
        ]
        return _on_bodies(kinematics, pulls)

    def _stretches(self, kinematics: Kinematics) -> Iterator[tuple[Scalar, list[Pull], Any]]:
        """Lengths between neighbouring points, their slopes, and the divisor of each."""
        divisor: Any = 1
        last: PathPoint | None = None
        around: Wrapped | None = None
        for part in in_type(self, kinematics.q.dtype).path:
            if isinstance(part, Pulley):
                divisor, last = part.divisor, None
            elif isinstance(part, Wrapped):
                around = part
            else:
                if last is not None and around is not None:
                    yield *_around(kinematics, last, around, part), divisor
                elif last is not None:
                    yield *_straight(kinematics, last, part), divisor
                last, around = part, None


def _straight(kinematics: Kinematics, start: PathPoint, end: PathPoint) -> tuple[Scalar, list[Pull]]:
    first, last = start.position(kinematics), end.position(kinematics)
    length, direction = straight_path(first, last)
    return length, [Pull(start.frame, first, -direction), Pull(end.frame, last, direction)]


def _around(kinematics: Kinematics, start: PathPoint, body: Wrapped, end: PathPoint) -> tuple[Scalar, list[Pull]]:
    place, first, last = body.place(kinematics), start.position(kinematics), end.position(kinematics)
    side = None if body.side is None else place.point_to_child(body.side.position(kinematics))
    path = body.path(place.point_to_child(first), place.point_to_child(last), side)
    points, (away, towards) = jax.vmap(place.point_to_parent)(path.points), path.directions @ place.rotation.T
    on_body = [
        Pull(body.frame, point, jnp.where(path.touches, slope, 0))
        for point, slope in zip(points, (away, -towards), strict=True)
    ]
    return path.length, [Pull(start.frame, first, -away), *on_body, Pull(end.frame, last, towards)]


def _on_bodies(kinematics: Kinematics, pulls: list[Pull]) -> Float[Array, "nb 6"]:
    """Forces on bodies, in their frames and at their origins, of forces at points of frames."""
    bodies = [-1 if pull.frame == "world" else carrier(kinematics.model, pull.frame)[0] for pull in pulls]
    # The world feels nothing, nor do frames fixed to it.
    carried = [(body, pull) for body, pull in zip(bodies, pulls, strict=True) if body >= 0]
    on_bodies = jnp.zeros_like(kinematics.velocities)
    if not carried:
        return on_bodies
    places = np.array([body for body, _ in carried])
    forces = jnp.stack([pull.slope for _, pull in carried])
    arms = jnp.stack([pull.position for _, pull in carried]) - kinematics.poses.translation[places]
    wrenches = jnp.stack([jnp.cross(arms, forces), forces], axis=1)
    in_world_axes = on_bodies.reshape(-1, 2, 3).at[places].add(wrenches)
    return (in_world_axes @ kinematics.poses.rotation).reshape(-1, 6)
