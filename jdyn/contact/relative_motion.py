"""How the two bodies of each pair of shapes move relative to each other."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array.at_once import at_once
from jdyn.contact.colliders import Colliders
from jdyn.dynamics.kinematics import dof_motions, joint_kinematics, moved_by, poses
from jdyn.model import WORLD, Model
from jdyn.spatial import Transform
from jdyn.spatial.components import cross


class RelativeMotion(NamedTuple):
    """Motion of the second body of each pair as the first one sees it, in world axes, at one configuration.

    Joints that carry both bodies do not enter, whatever they do: nothing cancels by rounding.

    Attributes:
        model: The mechanism.
        poses: Of all bodies in the world.
        origin: Where twists and wrenches are taken [m]: near the mechanism, for float32.
        columns: Twist of each coordinate of all joints at the origin [1, m].
        moved: Entry [pair, coordinate] is 1 where the coordinate moves the second body alone, −1 where it moves the
            first alone.
    """

    model: Model
    poses: Transform
    origin: Float[Array, "3"]
    columns: Float[Array, "nv_full 6"]
    moved: Float[Array, "pairs nv_full"]

    @classmethod
    def at(cls, model: Model, colliders: Colliders, q: Float[Array, " nq"]) -> "RelativeMotion":
        joints = joint_kinematics(model, model.expand(q))
        X = poses(model, joints.X)
        origin = X.translation[0]
        near = Transform(X.rotation, X.translation - origin[None])
        # Nothing moves the world, which comes last.
        table = np.pad(moved_by(model).astype(int), [(0, -WORLD), (0, 0)])
        first, second = (table[np.array(colliders.bodies(side), int)] for side in (0, 1))
        columns = dof_motions(model, joints, near)
        return cls(model, X, origin, columns, jnp.asarray(second - first, columns.dtype))

    def twists(self, v: Float[Array, " nv"]) -> Float[Array, "pairs 6"]:
        """[ω; v] of each pair at the origin, by the velocity of the model."""
        return self.moved @ (self.model.expand_velocity(v)[:, None] * self.columns)

    def twists_at(
        self, points: Float[Array, "rows 3"], pair: np.ndarray, v: Float[Array, " nv"]
    ) -> Float[Array, "rows 6"]:
        """[ω; v] at points of the second bodies; each row belongs to the pair of that number."""
        turning, moving = jnp.split(self.twists(v)[pair], 2, axis=1)
        return jnp.concatenate([turning, moving + jnp.cross(turning, points - self.origin[None])], axis=1)

    def generalized(self, wrenches: Float[Array, "pairs 6"]) -> Float[Array, " nv"]:
        """Generalized forces of wrenches [n; f] at the origin, on the second body of each pair; the first one bears the
        opposite."""
        return self.model.reduce_force(jnp.sum((self.moved.T @ wrenches) * self.columns, axis=1))

    def twist_jacobian(
        self, points: Float[Array, "rows 3"], pair: np.ndarray
    ) -> tuple[Float[Array, "rows 3 nv"], Float[Array, "rows 3 nv"]]:
        """From the velocity of the model to angular velocities of second bodies relative to first ones, and to the
        velocities of their points; each row belongs to the pair of that number."""
        turning, moving = self.columns[:, :3].T, self.columns[:, 3:].T
        arms = tuple((points - self.origin[None]).T[:, :, None])
        across = cross(tuple(turning[:, None]), arms)
        moved = self.moved[pair]
        columns = at_once([moved * (v[None] + u) for v, u in zip(moving, across, strict=True)])
        reduced = jax.vmap(jax.vmap(self.model.reduce_force))
        return reduced(moved[:, None] * turning[None]), reduced(jnp.stack(columns, axis=1))
