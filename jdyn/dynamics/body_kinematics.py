"""Poses and velocities of all bodies in one state."""

from collections.abc import Sequence
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jdyn.array import shaped
from jdyn.dynamics.inverse import accumulate_force
from jdyn.dynamics.kinematics import (
    JointKinematics,
    carrier,
    common_carrier,
    joint_force,
    joint_kinematics,
    poses_and_velocities,
)
from jdyn.model import Model
from jdyn.spatial import Transform

Vector = Float[ArrayLike, "3"] | Sequence[float]

ORIGIN = (0.0, 0.0, 0.0)


class Coordinates(eqx.Module):
    """State of a mechanism.

    Attributes:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
    """

    model: Model
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]


class Kinematics(Coordinates):
    """Poses and velocities of all bodies in one state, found once, and how forces on frames push coordinates.

    Frames are names of bodies and frames, and `"world"`. Vectors of methods are in world axes, points in the frame's.

    >>> arm = jdyn.elements.Kinematics.of(jdyn.load("pendulum"), jnp.array([jnp.pi / 2]), jnp.array([2.0]))
    >>> print(arm.velocity("tip")[3:].round(3) + 0.0, arm.generalized(arm.push("tip", force=[0.0, 0.0, 3.0])))
    [0. 0. 2.] [3.]

    Attributes:
        model: The mechanism.
        q: Configuration [rad or m].
        v: Velocity [rad/s or m/s].
        joints: Poses of bodies in their parents, and motion subspaces.
        poses: Of bodies in the world.
        velocities: Of bodies, [ω; v] in the body's frame [rad/s, m/s].
    """

    joints: JointKinematics
    poses: Transform
    velocities: Float[Array, "nb 6"]

    @classmethod
    def of(cls, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Self:
        """Kinematics of a model in the state `(q, v)`."""
        joints = joint_kinematics(model, model.expand(q))
        poses, velocities = poses_and_velocities(model, joints, model.expand_velocity(v))
        return cls(model, q, v, joints, poses, velocities)

    def pose(self, frame: str) -> Transform:
        """Pose of a frame in the world.

        Raises:
            ValueError: if there is no such frame.
        """
        body, number = self._carrier(frame)
        here = Transform.identity(self.q.dtype) if body < 0 else _row(self.poses, body)
        return here if number < 0 else here @ _row(self.model.frames, number)

    def position(self, frame: str, point: Vector = ORIGIN) -> Float[Array, "3"]:
        """Position of a point of a frame [m]."""
        return self.pose(frame).point_to_parent(self._vector("point", point))

    def velocity(self, frame: str, point: Vector = ORIGIN) -> Float[Array, "6"]:
        """Velocity of a frame, [ω; v], with v that of a point of it [rad/s, m/s]."""
        body, _ = self._carrier(frame)
        if body < 0:
            return jnp.zeros(6, self.q.dtype)
        return self._at_point(body, frame, point).motion_to_child(self.velocities[body])

    def push(
        self, frame: str, force: Vector = ORIGIN, torque: Vector = ORIGIN, point: Vector = ORIGIN
    ) -> Float[Array, "nb 6"]:
        """A force at a point of a frame and a torque, as forces on all bodies, each in its frame and at its origin.
        Their sums are forces that act together.

        Args:
            frame: Name of a body or a frame; the world does not feel it.
            force: [N].
            torque: [N m].
            point: [m].

        Raises:
            ValueError: if there is no such frame, or a vector has not three entries.
        """
        wrench = jnp.concatenate([self._vector("torque", torque), self._vector("force", force)])
        body, _ = self._carrier(frame)
        if body < 0:
            return jnp.zeros_like(self.velocities)
        on_body = self._at_point(body, frame, point).force_to_parent(wrench)
        return jnp.zeros_like(self.velocities).at[body].set(on_body)

    def generalized(self, forces: Float[Array, "nb 6"]) -> Float[Array, " nv"]:
        """Generalized forces of forces on bodies [N m or N]."""
        through_joints = accumulate_force(self.model, self.joints.X, forces)
        return self.model.reduce_force(joint_force(self.model, self.joints, through_joints))

    def common_carrier(self, first: str, second: str) -> str:
        """Name of the last body that carries both frames, or is the body of one of them; `"world"` if there is none.

        Raises:
            ValueError: if there is no such frame.
        """
        return common_carrier(self.model, first, second)

    def _carrier(self, frame: str) -> tuple[int, int]:
        return (-1, -1) if frame == "world" else carrier(self.model, frame)

    def _at_point(self, body: int, frame: str, point: Any) -> Transform:
        """Axes of the world at a point of a frame, in the body that carries it."""
        _, number = self._carrier(frame)
        at = self._vector("point", point)
        at = at if number < 0 else _row(self.model.frames, number).point_to_parent(at)
        return Transform(self.poses.rotation[body].T, at)

    def _vector(self, name: str, x: Any) -> Float[Array, "3"]:
        return shaped(name, x, self.q.dtype, (3,))


def _row(poses: Transform, number: int) -> Transform:
    return jax.tree.map(lambda x: x[number], poses)
