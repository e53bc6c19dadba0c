"""Sensors of all that lies beyond a cut through the mechanism: forces on it, its centre of mass and its momentum."""

from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array import with_fields
from jdyn.dynamics.kinematics import carrier
from jdyn.model import WORLD, Locked, Model, Name, OtherRoot, Units
from jdyn.model.topology import support_mask
from jdyn.sensors.inertial import MountedSensor
from jdyn.sensors.reading import Reading
from jdyn.sensors.sensor import Sensor, as_arrays
from jdyn.spatial import SpatialInertia, Transform


class Limb(eqx.Module):
    """A body and all that it carries, or all that lies beyond a cut through a body.

    Links on fixed joints are part of the body that carries them. A cut between such links needs to know what is beyond:
    a sensor between arm and hand, of which the hand is fixed to the last link, measures forces on the hand alone.

    >>> whole = jdyn.sensors.Limb("link2")
    >>> sensor = jdyn.sensors.SubtreeCenterOfMass("center", whole)
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("double_pendulum"), jnp.zeros(2), jnp.zeros(2))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [ 0.   0.  -1.5]

    Attributes:
        frame: Name of the body, of a frame of it, or `"world"` for all bodies.
        piece: Inertia of what is beyond the cut of the body itself, in its frame; all of the body if None.
        carried: Bodies whose joints are on that piece; all that the body carries if None.
        shapes: Collision shapes of that piece, whose contact forces act on it; all of the body if None. Forces of force
            elements and constraints on a body that is cut are taken for those on its other piece.
    """

    units: ClassVar[Units] = {}

    frame: Name = eqx.field(static=True)
    piece: SpatialInertia | None = eqx.field(default=None, converter=as_arrays)
    carried: tuple[Name, ...] | None = eqx.field(static=True, default=None)
    shapes: tuple[Name, ...] | None = eqx.field(static=True, default=None)

    def body(self, model: Model) -> int:
        """Number of the body that is cut, or whole; -1 for the world."""
        return WORLD if self.frame == "world" else carrier(model, self.frame)[0]

    @property
    def is_whole(self) -> bool:
        """Tell whether the body is not cut."""
        return self.piece is None and self.carried is None and self.shapes is None

    def joined(self, model: Model) -> list[int]:
        """Numbers of the bodies whose joints are on the piece."""
        if self.carried is not None:
            return [model.topology.body(name) for name in self.carried]
        here = self.body(model)
        return [body for body, parent in enumerate(model.topology.parents) if parent == here]

    def without_locked(self, locked: Locked) -> "Limb":
        """The same limb where joints are locked: what is part of another body now is cut from it."""
        model, here = locked.before, self.body(locked.before)
        pieces, carried, ahead = [], [], self.joined(model)
        while ahead:
            body = ahead.pop(0)
            if locked.carriers[body][1] is None:
                carried.append(model.body_names[body])
            else:
                pieces.append(body)
                ahead += [child for child, parent in enumerate(model.topology.parents) if parent == body]
        X = None if here == WORLD else locked.carriers[here][1]
        if X is None and (not pieces or (self.is_whole and here != WORLD)):
            return self
        inertias = [] if self.piece is None else [self.piece.to_parent(locked.pose(X))]
        if self.piece is None and here != WORLD:
            pieces = [here, *pieces]
        inertias += [_row(model.inertias, body).to_parent(locked.pose(locked.carriers[body][1])) for body in pieces]
        entries = () if model.shapes is None else model.shapes.entries
        on = [here, *pieces] if self.shapes is None else pieces
        shapes = [entry.name for entry in entries if entry.role == "collision" and entry.body in on]
        return Limb(
            self.frame,
            piece=sum(inertias[1:], start=inertias[0]),
            carried=tuple(carried),
            shapes=(*(self.shapes or ()), *shapes),
        )

    def with_other_root(self, change: OtherRoot) -> "Limb":
        """The same limb; all of a tree where it begins at the old root.

        Raises:
            ValueError: if it begins at another body that carries something else then.
        """
        here = change.carrier(self.frame)
        if here == change.old_root and self.is_whole:
            return Limb(change.link)
        if here in change.way:
            raise change.refusal(self, f"of {self.frame!r} is no more what {here!r} carries")
        if self.carried is None:
            return self
        carried = tuple(change.link if name == change.old_root else name for name in self.carried)
        return with_fields(self, carried=carried)

    def contents(self, reading: Reading) -> tuple[SpatialInertia, Transform, Float[Array, "bodies 6"]]:
        """Inertias, poses and velocities of all that belongs to it, a row a body."""
        model, seen, here = reading.model, reading.kinematics, self.body(reading.model)
        rows = np.flatnonzero(np.any(support_mask(model.topology)[self.joined(model)], axis=0))
        if self.piece is None and here != WORLD:
            rows = np.append(here, rows)
        inertias, X, v = jax.tree.map(lambda x: x[rows], (model.inertias, seen.poses, seen.velocities))
        if self.piece is None:
            return inertias, X, v
        moving = reading.pose("world"), jnp.zeros(6, v.dtype)
        if here != WORLD:
            moving = jax.tree.map(lambda x: x[here], (seen.poses, seen.velocities))
        return jax.tree.map(lambda one, x: jnp.concatenate([one[None], x]), (self.piece, *moving), (inertias, X, v))

    def transmitted(self, reading: Reading) -> Float[Array, "6"]:
        """Force through the cut onto it [N m, N], in the frame of the body and at its origin."""
        model, seen, body = reading.model, reading.kinematics, self.body(reading.model)
        if self.is_whole:
            return reading.joint_forces[body]
        inertia = _row(model.inertias, body) if self.piece is None else self.piece
        if body == WORLD:
            none = jnp.zeros(3, seen.velocities.dtype)
            here, velocity = reading.pose("world"), jnp.concatenate([none, none])
            acceleration = jnp.concatenate([none, -model.gravity])
        else:
            moving = seen.poses, seen.velocities, reading.accelerations_from_free_fall
            here, velocity, acceleration = jax.tree.map(lambda x: x[body], moving)
        force = inertia.force(velocity, acceleration)
        for child in self.joined(model):
            pose = jax.tree.map(lambda x, child=child: x[child], seen.joints.X)
            force = force + pose.force_to_parent(reading.joint_forces[child])
        if reading.contacts is None:
            return force
        if self.shapes is None:
            return force - reading.contacts.on_bodies(seen.poses)[body]
        return force - reading.contacts.on_shapes(self.shapes, here)


def _row(x: Any, row: int) -> Any:
    return jax.tree.map(lambda x: x[row], x)


def _limb(x: Any) -> Any:
    return Limb(x) if isinstance(x, str) else x


class _CutSensor(MountedSensor):
    limb: Limb | None = eqx.field(default=None, converter=_limb, kw_only=True)

    uses_forces: ClassVar[bool] = True

    def without_locked(self, locked: Locked) -> Self:
        """The same sensor, also of a body that is part of another one now."""
        limb = Limb(self.frame) if self.limb is None else self.limb
        return with_fields(self, limb=limb.without_locked(locked))

    def with_other_root(self, change: OtherRoot) -> Self:
        """The same sensor.

        Raises:
            ValueError: if something else carries the body.
        """
        limb = Limb(self.frame) if self.limb is None else self.limb
        if (here := change.carrier(limb.frame)) in change.way:
            raise change.refusal(self, f"is about the force that {here!r} takes from what carries it, which is another")
        return with_fields(self, limb=None if self.limb is None else limb.with_other_root(change))

    def _transmitted(self, reading: Reading) -> Float[Array, "6"]:
        limb = Limb(self.frame) if self.limb is None else self.limb
        body, X = reading.mounted(self.frame, self.pose)
        # Of the world, it needs to know which part is beyond.
        unknown = body == WORLD and (limb.piece is None or limb.shapes is None)
        if unknown or body != limb.body(reading.model):
            raise ValueError(
                f"{type(self).__name__} {self.name!r}: expected a frame of the body that transmits the force, got "
                f"{self.frame!r}" + ("" if self.limb is None else f" and the limb of {limb.frame!r}")
            )
        return X.force_to_child(limb.transmitted(reading))


class Force(_CutSensor):
    """Force [N] that a body takes from what carries it, in axes of the sensor: what a load cell in its joint measures.
    At rest it is the weight of all beyond, upwards. Fields are those of `MountedSensor`, and

    >>> sensor = jdyn.sensors.Force("pivot", "link1")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1), a=jnp.zeros(1))
    >>> print(sensor.value(reading).round(3) + 0.0)  # the pivot carries 1 kg
    [0.   0.   9.81]

    Attributes:
        limb: What is beyond; the whole body that carries the frame, and all that hangs on it, if None.
    """

    units: ClassVar[Units] = {"value": "N"}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        return self._transmitted(reading)[3:]


class Torque(_CutSensor):
    """Torque [N m] about the origin of the sensor that a body takes from what carries it, in axes of the sensor. Fields
    are those of `MountedSensor`, and

    >>> sensor = jdyn.sensors.Torque("pivot", "link1")
    >>> level = jnp.array([jnp.pi / 2])
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), level, jnp.zeros(1), a=jnp.zeros(1))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [ 0.    -4.905  0.   ]

    Attributes:
        limb: What is beyond; the whole body that carries the frame, and all that hangs on it, if None.
    """

    units: ClassVar[Units] = {"value": "N m"}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        return self._transmitted(reading)[:3]


class _LimbSensor(Sensor):
    limb: Limb = eqx.field(converter=_limb)

    uses_forces: ClassVar[bool] = False

    def _momentum(self, reading: Reading) -> tuple[Array, Array]:
        """Momentum [angular; linear] about the centre of mass, in world axes, and the mass."""
        inertias, X, v = self.limb.contents(reading)
        about_center = Transform(X.rotation, X.translation - _center(inertias, X)[None])
        momenta = jax.vmap(SpatialInertia.momentum)(inertias, v)
        return jnp.sum(jax.vmap(Transform.force_to_parent)(about_center, momenta), axis=0), jnp.sum(inertias.mass)


def _center(inertias: SpatialInertia, X: Transform) -> Float[Array, "3"]:
    moments = jax.vmap(lambda X, I: X.rotation @ I.first_moment + I.mass * X.translation)(X, inertias)
    return jnp.sum(moments, axis=0) / jnp.sum(inertias.mass)


class SubtreeCenterOfMass(_LimbSensor):
    """Centre of mass of a body and all that it carries, in the world [m]; NaN where nothing of it has mass.

    >>> sensor = jdyn.sensors.SubtreeCenterOfMass("center", "world")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("double_pendulum"), jnp.zeros(2), jnp.zeros(2))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [ 0.  0. -1.]

    Attributes:
        name: Key of its values.
        limb: Name of the body or of a frame of it, `"world"` for all bodies, or a `Limb`.
    """

    units: ClassVar[Units] = {"value": "m"}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        inertias, X, _ = self.limb.contents(reading)
        return _center(inertias, X)


class SubtreeLinearVelocity(_LimbSensor):
    """Velocity of the centre of mass of a body and all that it carries, in world axes [m/s]. Fields are those of
    `SubtreeCenterOfMass`.

    >>> sensor = jdyn.sensors.SubtreeLinearVelocity("speed", "world")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0]))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [1. 0. 0.]
    """

    units: ClassVar[Units] = {"value": "m/s"}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        momentum, mass = self._momentum(reading)
        return momentum[3:] / mass


class SubtreeAngularMomentum(_LimbSensor):
    """Angular momentum of a body and all that it carries about their centre of mass, in world axes [N m s]. Fields are
    those of `SubtreeCenterOfMass`.

    >>> sensor = jdyn.sensors.SubtreeAngularMomentum("spin", "world")
    >>> reading = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0]))
    >>> print(sensor.value(reading).round(3) + 0.0)
    [ 0.    -0.167  0.   ]
    """

    units: ClassVar[Units] = {"value": "J s"}

    def value(self, reading: Reading) -> Float[Array, "3"]:
        return self._momentum(reading)[0][:3]
