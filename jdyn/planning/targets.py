"""Targets of bodies and frames."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jdyn.control.arguments import place, scalar_or
from jdyn.dynamics import frame_pose, jacobian
from jdyn.model import Model
from jdyn.spatial import Transform, matrix_to_quaternion, quaternion_log
from jdyn.spatial.rotation import left_jacobian_inverse


class FrameTarget(eqx.Module):
    """A body or a frame should be at a place in the world.

    The error of a position is in world axes. That of a pose has six components, in the target's axes: the rotation
    vector that leads from the target to the frame, then the position. So a weight of zero on the third component leaves
    turns about the target's z axis free.

    >>> height = jnp.array([0.0, 0.0, 1.0])  # the weight of the height alone
    >>> target = jdyn.planning.FrameTarget("tip", jnp.array([0.0, 0.0, -1.5]), weight=height)
    >>> reached = jdyn.inverse_kinematics(jdyn.load("double_pendulum"), [target], jnp.array([0.3, 0.3]))
    >>> print(jdyn.frame_pose(jdyn.load("double_pendulum"), reached.q, "tip").translation[2].round(3))
    -1.5

    Attributes:
        body_or_frame: Body index, body name or frame name.
        target: A position [m] of shape (3,), or a pose (`jdyn.Transform`).
        weight: What an error counts, a scalar or one for each component [1/rad, 1/m]; zero leaves a component free.
    """

    body_or_frame: str | int = eqx.field(static=True)
    target: ArrayLike | Transform
    weight: ArrayLike = 1.0

    def checked(self, model: Model) -> "FrameTarget":
        """The same, with arrays in the type of `model`.

        Raises:
            ValueError: if there is no such body or frame, it is fixed to the world, or a shape is wrong.
        """
        target, size = place(model, self.body_or_frame, self.target)
        weight = jnp.broadcast_to(scalar_or(model, size, "weight", self.weight), size)
        return FrameTarget(self.body_or_frame, target, weight)

    def error(self, model: Model, q: Float[Array, " nq"]) -> tuple[Float[Array, " task"], Float[Array, "task nv"]]:
        """Error from the target to the frame [rad, m], without weights, and its Jacobian."""
        X = frame_pose(model, q, self.body_or_frame)
        J = jacobian(model, q, self.body_or_frame)
        if not isinstance(self.target, Transform):
            return X.translation - self.target, X.rotation @ J[3:]
        away = self.target.inverse() @ X
        turn = quaternion_log(matrix_to_quaternion(away.rotation))
        turned = jax.vmap(lambda w: left_jacobian_inverse(-turn, w), in_axes=1, out_axes=1)(J[:3])
        return jnp.concatenate([turn, away.translation]), jnp.concatenate([turned, away.rotation @ J[3:]])
