"""Motion of bodies relative to others, at one configuration, and Jacobians of it."""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Integer

from jdyn.array import shaped
from jdyn.dynamics.kinematics import (
    JointKinematics,
    carrier,
    dof_motions,
    joint_kinematics,
    one_pose,
    poses,
    row_of,
    traced,
)
from jdyn.dynamics.paths import AllCoordinates, Paths, signs_on_paths
from jdyn.dynamics.row_jacobians import PointJacobian
from jdyn.model import WORLD, Model, checked
from jdyn.model.model import compiled
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


def jacobian(
    model: Model,
    q: Float[Array, " nq"],
    body_or_frame: str | int | Integer[Array, ""],
    *,
    point: Float[Array, "3"] | None = None,
    frame: Literal["body", "world", "aligned"] = "body",
) -> Float[Array, "6 nv"]:
    """Jacobian J of a body or a named frame: its spatial velocity [ω; v] is J v.

    >>> J = jdyn.jacobian(jdyn.load("double_pendulum"), jnp.zeros(2), "tip", frame="aligned")
    >>> print(J[3:].round(3) + 0.0)  # of the tip's linear velocity
    [[2. 1.]
     [0. 0.]
     [0. 0.]]

    Args:
        model: The mechanism.
        q: Configuration [rad or m].
        body_or_frame: Body index, which may be traced, body name or frame name. One program serves all of them.
        point: Where the linear velocity is taken, in the frame's coordinates [m]; its origin if left out.
        frame: `"body"`: in the frame's own axes; `"aligned"`: in world axes, at the same point; `"world"`: in
            the world frame, the linear part that of the point passing the world's origin.

    Returns:
        The Jacobian, columns in the order of `v`.

    Raises:
        ValueError: at trace time, if there is no such body or frame, a size disagrees with `model`, or `point` is
            given with `frame="world"`, which has no use for it. A traced index of no body gives NaN.

    Source: Featherstone 2008, section 4.2; Lynch and Park, Modern Robotics (2017), section 5.1.
    """
    if frame not in ("body", "world", "aligned"):
        raise ValueError(f"frame: expected 'body', 'world' or 'aligned', got {frame!r}")
    if frame == "world" and point is not None:
        raise ValueError("point: the world-frame Jacobian does not depend on it; leave it out, or use frame='aligned'")
    checked(model)
    return _jacobian(model, q, *traced(*carrier(model, body_or_frame)), point, frame)


@compiled
def _jacobian(model, q, body, number, point, frame):
    (q,) = checked(model, q=q)
    placement = one_pose(model.frames, number)
    if point is not None:
        placement = placement @ Transform(jnp.eye(3, dtype=model.dtype), shaped("point", point, model.dtype, (3,)))
    joints = joint_kinematics(model, model.expand(q))
    X_w = poses(model, joints.X)
    X_wf = one_pose(X_w, body) @ placement
    origin = jnp.zeros_like(X_wf.translation) if frame == "world" else X_wf.translation
    turn = X_wf.rotation.T if frame == "body" else jnp.eye(3, dtype=q.dtype)
    # Nothing moves the world, which comes first.
    every = np.arange(WORLD, model.nb)
    on_path = row_of(jnp.asarray(signs_on_paths(model, np.full_like(every, WORLD), every), q.dtype), body)
    path, A = AllCoordinates(on_path[None]), jax.scipy.linalg.block_diag(turn, turn)
    return jax.vmap(model.reduce_force)(path.jacobian(columns_at(model, joints, X_w, origin), A[None])[0])
