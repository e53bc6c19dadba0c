"""One instant of a system, as sensors see it."""

import functools
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PyTree, Scalar

from jdyn.dynamics import Kinematics
from jdyn.dynamics.inverse import accumulate_force
from jdyn.dynamics.kinematics import accumulate_motion, carrier, joint_bias, joint_motion
from jdyn.model import WORLD, Model, checked
from jdyn.sensors.surroundings import Surroundings
from jdyn.spatial import SpatialInertia, Transform
from jdyn.terminal.messages import unknown
from jdyn.transmissions import rows_of


class PointLoads(eqx.Module):
    """Forces between shapes at points, in world axes.

    >>> up, none = jnp.array([[0.0, 0.0, 9.81]]), jnp.zeros((1, 3))
    >>> loads = jdyn.sensors.PointLoads((("ground", "foot"),), ((-1, 0),), none, up / 9.81, up, none)
    >>> print(loads.on_bodies(jdyn.forward_kinematics(jdyn.load("pendulum"), jnp.zeros(1)))[0].round(2) + 0.0)
    [0.   0.   0.   0.   0.   9.81]

    Attributes:
        shapes: Names of both shapes of each point.
        bodies: Numbers of the bodies that carry them, -1 for the world.
        position: Where the forces act [m].
        normal: From the first shape to the second.
        force: On the second shape [N]; the first one bears the opposite.
        torque: On the second shape [N m].
    """

    shapes: tuple[tuple[str, str], ...] = eqx.field(static=True)
    bodies: tuple[tuple[int, int], ...] = eqx.field(static=True)
    position: Float[Array, "points 3"]
    normal: Float[Array, "points 3"]
    force: Float[Array, "points 3"]
    torque: Float[Array, "points 3"]

    def on_bodies(self, poses: Transform) -> Float[Array, "nb 6"]:
        """Forces on all bodies, each in its frame and at its origin."""
        total = jnp.zeros((len(poses.translation), 6), self.force.dtype)
        for side, sign in ((0, -1), (1, 1)):
            bodies = np.array(self.bodies, int).reshape(-1, 2)[:, side]
            points = np.flatnonzero(bodies != WORLD)
            bodies = bodies[points]
            X = Transform(poses.rotation[bodies], self.position[points] - poses.translation[bodies])
            force = jnp.concatenate([self.torque[points], self.force[points]], axis=1)
            total = total.at[bodies].add(sign * jax.vmap(_at_origin)(X, force))
        return total

    def pressing(self, names: tuple[str, ...]) -> Float[Array, " points"]:
        """Normal forces between shapes and all others [N]; zero at other points."""
        on = np.array([(pair[0] in names) != (pair[1] in names) for pair in self.shapes])
        return jnp.asarray(on, self.force.dtype) * jnp.sum(self.force * self.normal, axis=1)

    def outwards(self, names: tuple[str, ...]) -> Float[Array, "points 3"]:
        """Normals that lead out of these shapes, where they are among the two."""
        signs = np.array([-1.0 if pair[1] in names else 1.0 for pair in self.shapes])
        return jnp.asarray(signs, self.normal.dtype)[:, None] * self.normal

    def on_shapes(self, names: tuple[str, ...], pose: Transform) -> Float[Array, "6"]:
        """Sum of the forces on shapes, in a frame of this pose and at its origin."""
        signs = np.array([(pair[1] in names) - float(pair[0] in names) for pair in self.shapes])
        arms = self.position - pose.translation[None]
        wrenches = jnp.concatenate([self.torque + jnp.cross(arms, self.force), self.force], axis=1)
        total = jnp.asarray(signs, self.force.dtype) @ wrenches
        return Transform(pose.rotation, jnp.zeros_like(pose.translation)).force_to_child(total)


def _at_origin(X, force):
    """Force of a point in the frame of a body: X has the body's axes, and the arm from its origin in world axes."""
    torque = force[:3] + jnp.cross(X.translation, force[3:])
    return jnp.concatenate([X.rotation.T @ torque, X.rotation.T @ force[3:]])


class ActuatorReadings(eqx.Module):
    """Lengths, speeds and forces of actuators at one instant.

    >>> found = jdyn.sensors.ActuatorReadings(("elbow",), jnp.ones(1), jnp.zeros(1), jnp.ones(1), jnp.ones(1))
    >>> print(found.names)
    ('elbow',)

    Attributes:
        names: Their names.
        lengths: Of their transmissions [m or rad].
        velocities: Rates of these [m/s or rad/s].
        forces: Along the transmissions [N or N m].
        generalized: What they do together [N m or N].
        counts: Number of lengths that each has, in rows that follow each other; one if left out.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    lengths: Float[Array, " rows"]
    velocities: Float[Array, " rows"]
    forces: Float[Array, " rows"]
    generalized: Float[Array, " nv"]
    counts: tuple[int, ...] | None = eqx.field(static=True, default=None)


class Reading(eqx.Module):
    """One instant of a system. What several sensors ask for is found once, when the first one asks.

    Vectors of methods are in world axes. Frames are names of bodies and frames, and `"world"`; a sensor may sit in a
    `pose` of its own in the frame.

    >>> arm = jdyn.sensors.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.array([2.0]), a=jnp.zeros(1))
    >>> print(arm.acceleration("tip").round(3) + 0.0)
    [0. 0. 0. 0. 0. 4.]

    Attributes:
        t: Time [s].
        kinematics: Configuration `q`, velocity `v`, poses and velocities of bodies.
        a: Accelerations [rad/s² or m/s²]; None where no sensor of the system uses forces.
        tau: Generalized forces of all but joints' own springs, dampers and friction, and of constraints [N m or N];
            None likewise.
        on_bodies: Forces of force elements and constraints on bodies, each in its frame and at its origin [N m, N];
            None for none.
        contacts: Forces of contact; None where nothing touches.
        parts: Parts of the state beside the motion, see `jdyn.State`.
        actuators: What actuators do; None where no sensor of the system asks for it, or there are none.
        surroundings: Collision shapes; None where no sensor of the system uses them.
    """

    t: Scalar
    kinematics: Kinematics
    a: Float[Array, " nv"] | None = None
    tau: Float[Array, " nv"] | None = None
    on_bodies: Float[Array, "nb 6"] | None = None
    contacts: PointLoads | None = None
    parts: dict[str, PyTree[Array]] = eqx.field(default_factory=dict)
    actuators: ActuatorReadings | None = None
    surroundings: Surroundings | None = None

    @classmethod
    def of(
        cls, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], *, t: ArrayLike = 0.0, **others: Any
    ) -> Self:
        """One instant of a model in the state `(q, v)`; other fields by name."""
        q, v = checked(model, q=q, v=v)
        return cls(jnp.asarray(t, q.dtype), Kinematics.of(model, q, v), **others)

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self.kinematics.model

    def pose(self, frame: str, pose: Transform | None = None) -> Transform:
        """Pose in the world.

        Raises:
            ValueError: if there is no such frame.
        """
        body, X = self.mounted(frame, pose)
        return X if body == WORLD else _row(self.kinematics.poses, body) @ X

    def velocity(self, frame: str, pose: Transform | None = None) -> Float[Array, "6"]:
        """Velocity [ω; v] of the frame's origin [rad/s, m/s]."""
        body, X = self.mounted(frame, pose)
        if body == WORLD:
            return jnp.zeros(6, self.t.dtype)
        return self._world_axes(body, X).motion_to_child(self.kinematics.velocities[body])

    def acceleration(self, frame: str, pose: Transform | None = None) -> Float[Array, "6"]:
        """Acceleration [dω/dt; dv/dt] of the frame's origin [rad/s², m/s²], without gravity."""
        body, X = self.mounted(frame, pose)
        if body == WORLD:
            return jnp.zeros(6, self.t.dtype)
        here = self._world_axes(body, X)
        spatial, v = here.motion_to_child(self.accelerations[body]), self.velocity(frame, pose)
        return spatial.at[3:].add(jnp.cross(v[:3], v[3:]))

    def mounted(self, frame: str, pose: Transform | None = None) -> tuple[int, Transform]:
        """Number of the body that carries a frame, -1 for the world, and a pose in the frame as one in that body."""
        body, number = (WORLD, -1) if frame == "world" else carrier(self.model, frame)
        X = Transform.identity(self.t.dtype) if number < 0 else _row(self.model.frames, number)
        return body, X if pose is None else X @ pose

    @property
    def of_actuators(self) -> ActuatorReadings:
        """Lengths, speeds and forces of actuators.

        Raises:
            ValueError: if there are none.
        """
        if self.actuators is None:
            raise ValueError("sensors: a sensor asks for actuators, of which this system has none")
        return self.actuators

    @property
    def around(self) -> Surroundings:
        """Collision shapes.

        Raises:
            ValueError: if no sensor says that it uses them.
        """
        if self.surroundings is None:
            raise ValueError("sensors: a sensor that asks for shapes says so by `uses_shapes`")
        return self.surroundings

    def actuator(self, name: str) -> Any:
        """Row of an actuator in `of_actuators`, or rows of one along several lengths.

        Raises:
            ValueError: if there is no such actuator.
        """
        names = self.of_actuators.names
        if name not in names:
            raise ValueError(unknown("actuator", name, names))
        counts = self.of_actuators.counts
        return names.index(name) if counts is None else rows_of(counts)[names.index(name)]

    @functools.cached_property
    def accelerations(self) -> Float[Array, "nb 6"]:
        """Spatial accelerations of all bodies, each in its own frame and at its origin, without gravity."""
        if self.a is None:
            raise ValueError("sensors: a sensor that asks for accelerations or forces says so by `uses_forces`")
        model, seen = self.model, self.kinematics
        q, v, a = model.expand(seen.q), model.expand_velocity(seen.v), model.expand_velocity(self.a)
        motion = joint_motion(model, seen.joints, a) + joint_bias(model, q, v, seen.velocities)
        return accumulate_motion(model, seen.joints.X, motion, jnp.zeros(6, motion.dtype))

    @functools.cached_property
    def accelerations_from_free_fall(self) -> Float[Array, "nb 6"]:
        """Spatial accelerations of all bodies relative to free fall, each in its own frame."""
        up = -jnp.einsum("bji,j->bi", self.kinematics.poses.rotation, self.model.gravity)
        return self.accelerations.at[:, 3:].add(up)

    @functools.cached_property
    def joint_forces(self) -> Float[Array, "nb 6"]:
        """Force that each joint transmits to its body, in the body's frame and at its origin [N m, N]."""
        moving = self.kinematics.velocities, self.accelerations_from_free_fall
        force = jax.vmap(SpatialInertia.force)(self.model.inertias, *moving)
        if self.on_bodies is not None:
            force = force - self.on_bodies
        if self.contacts is not None:
            force = force - self.contacts.on_bodies(self.kinematics.poses)
        return accumulate_force(self.model, self.kinematics.joints.X, force)

    def _world_axes(self, body: int, X: Transform) -> Transform:
        """World axes at the origin of a frame, in the body that carries it."""
        return Transform(self.kinematics.poses.rotation[body].T, X.translation)


def _row(poses: Transform, number: int) -> Transform:
    return jax.tree.map(lambda x: x[number], poses)
