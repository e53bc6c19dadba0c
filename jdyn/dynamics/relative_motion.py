"""Motion of bodies relative to others, at one configuration, and Jacobians of its points."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jdyn.dynamics.kinematics import JointKinematics, dof_motions, joint_kinematics, poses
from jdyn.dynamics.paths import Paths
from jdyn.dynamics.row_jacobians import PointJacobian
from jdyn.model import Model
from jdyn.spatial import Transform


class RelativeMotion(NamedTuple):
    """Motion of the second body of each path as the first one sees it, in world axes, at one configuration.

    Attributes:
        model: The mechanism.
        poses: Of all bodies in the world.
        origin: Where twists and wrenches are taken [m].
        columns: Twist of each coordinate of all joints at the origin [1, m].
        paths: From first bodies to second ones.
    """

    model: Model
    poses: Transform
    origin: Float[Array, "3"]
    columns: Float[Array, "nv_full 6"]
    paths: Paths

    @classmethod
    def at(cls, model: Model, paths: Paths, q: Float[Array, " nq"]) -> "RelativeMotion":
        """The motion at a configuration, at an origin near the mechanism, for float32."""
        joints = joint_kinematics(model, model.expand(q))
        X = poses(model, joints.X)
        return cls(model, X, X.translation[0], columns_at(model, joints, X, X.translation[0]), paths)

    def of(self, numbers: Int[np.ndarray | Array, " some"]) -> "RelativeMotion":
        """Motion of the paths of these numbers alone; known ones are all."""
        return self if isinstance(numbers, np.ndarray) else self._replace(paths=self.paths.of(numbers))

    def twists(self, v: Float[Array, " nv"]) -> Float[Array, "paths 6"]:
        """[ω; v] of each path at the origin, by the velocity of the model."""
        return self.paths.twists(self.columns, self.model.expand_velocity(v))

    def twists_at(
        self, points: Float[Array, "rows 3"], paths: Int[np.ndarray, " rows"], v: Float[Array, " nv"]
    ) -> Float[Array, "rows 6"]:
        """[ω; v] at points of the second bodies; each row belongs to the path in that place."""
        turning, moving = jnp.split(self.twists(v)[paths], 2, axis=1)
        return jnp.concatenate([turning, moving + jnp.cross(turning, points - self.origin[None])], axis=1)

    def generalized(self, wrenches: Float[Array, "paths 6"]) -> Float[Array, " nv"]:
        """Generalized forces of wrenches [n; f] at the origin, on the second body of each path; the first one bears the
        opposite."""
        return self.model.reduce_force(self.paths.forces(self.columns, wrenches))

    def jacobians(
        self, points: Float[Array, "rows 3"], paths: Int[np.ndarray, " rows"]
    ) -> tuple[PointJacobian, PointJacobian]:
        """Jacobians of angular velocities of second bodies relative to first ones, and of the velocities of their
        points; each row belongs to the path in that place."""
        return self.paths.point_jacobians(self.model, self.columns, points - self.origin[None], paths)


def columns_at(
    model: Model, joints: JointKinematics, X: Transform, origin: Float[Array, "3"]
) -> Float[Array, "nv_full 6"]:
    """Twist of each coordinate of all joints at a place of the world, in world axes, from the poses X of bodies."""
    return dof_motions(model, joints, Transform(X.rotation, X.translation - origin[None]))
