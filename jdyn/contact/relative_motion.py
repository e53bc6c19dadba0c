"""Motion of the two bodies of each pair of shapes relative to each other."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jdyn.contact.colliders import Colliders
from jdyn.contact.joints_between import JointsBetween, joints_between
from jdyn.dynamics.kinematics import dof_motions, joint_kinematics, poses
from jdyn.impulses.jacobians import PointJacobian
from jdyn.model import Model
from jdyn.spatial import Transform


class RelativeMotion(NamedTuple):
    """Motion of the second body of each pair as the first one sees it, in world axes, at one configuration.

    Attributes:
        model: The mechanism.
        poses: Of all bodies in the world.
        origin: Where twists and wrenches are taken [m]: near the mechanism, for float32.
        columns: Twist of each coordinate of all joints at the origin [1, m].
        between: The joints between the two bodies of each pair.
    """

    model: Model
    poses: Transform
    origin: Float[Array, "3"]
    columns: Float[Array, "nv_full 6"]
    between: JointsBetween

    @classmethod
    def at(cls, model: Model, colliders: Colliders, q: Float[Array, " nq"]) -> "RelativeMotion":
        joints = joint_kinematics(model, model.expand(q))
        X = poses(model, joints.X)
        origin = X.translation[0]
        near = Transform(X.rotation, X.translation - origin[None])
        return cls(model, X, origin, dof_motions(model, joints, near), joints_between(model, colliders))

    def of(self, numbers: Int[np.ndarray | Array, " some"]) -> "RelativeMotion":
        """Motion of the pairs of these numbers alone; known ones are all."""
        return self if isinstance(numbers, np.ndarray) else self._replace(between=self.between.of(numbers))

    def twists(self, v: Float[Array, " nv"]) -> Float[Array, "pairs 6"]:
        """[ω; v] of each pair at the origin, by the velocity of the model."""
        return self.between.twists(self.columns, self.model.expand_velocity(v))

    def twists_at(
        self, points: Float[Array, "rows 3"], pair: Int[np.ndarray, " rows"], v: Float[Array, " nv"]
    ) -> Float[Array, "rows 6"]:
        """[ω; v] at points of the second bodies; each row belongs to the pair in that place."""
        turning, moving = jnp.split(self.twists(v)[pair], 2, axis=1)
        return jnp.concatenate([turning, moving + jnp.cross(turning, points - self.origin[None])], axis=1)

    def generalized(self, wrenches: Float[Array, "pairs 6"]) -> Float[Array, " nv"]:
        """Generalized forces of wrenches [n; f] at the origin, on the second body of each pair; the first one bears the
        opposite."""
        return self.model.reduce_force(self.between.forces(self.columns, wrenches))

    def jacobians(
        self, points: Float[Array, "rows 3"], pair: Int[np.ndarray, " rows"]
    ) -> tuple[PointJacobian, PointJacobian]:
        """Jacobians of angular velocities of second bodies relative to first ones, and of the velocities of their
        points; each row belongs to the pair in that place."""
        return self.between.jacobians(self.model, self.columns, points - self.origin[None], pair)
