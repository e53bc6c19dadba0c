"""Places of constraints' frames and joints, and how the coordinates of the tree move them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.constraints.groups import ConstraintGroup
from jdyn.dynamics.kinematics import carrier, joint_bias, joint_kinematics, poses_and_velocities
from jdyn.dynamics.paths import Paths, bodies_before, paths_between
from jdyn.dynamics.relative_motion import columns_at
from jdyn.model import WORLD, Model
from jdyn.model.constraints import Moving, Placed
from jdyn.spatial import Transform
from jdyn.terminal.messages import unknown


class TreeMotion(NamedTuple):
    """The mechanism's motion, in the world's axes and at the world's origin. The world comes last.

    Attributes:
        poses: Of bodies.
        columns: Motion of each coordinate of all joints.
        bias: Acceleration that each joint adds where those of all coordinates are zero.
    """

    model: Model
    q: Float[Array, " nq_full"]
    v: Float[Array, " nv_full"]
    poses: Transform
    columns: Float[Array, "nv_full 6"]
    bias: Float[Array, "bodies 6"]

    @classmethod
    def at(cls, model: Model, q: Array, v: Array) -> "TreeMotion":
        q, v = model.expand(q), model.expand_velocity(v)
        joints, one = joint_kinematics(model, q), Transform.identity(q.dtype)
        X, V = poses_and_velocities(model, joints, v)
        bias = jax.vmap(Transform.motion_to_parent)(X, joint_bias(model, q, v, V))
        world = jax.tree.map(lambda x, one: jnp.concatenate([x, one[None]]), X, one)
        return cls(model, q, v, world, columns_at(model, joints, X, jnp.zeros_like(one.translation)), bias)

    def placed(self, group: ConstraintGroup, t: Scalar) -> Placed:
        count = len(group.frames)
        frames = tuple(map(self._poses, zip(*group.frames, strict=True)))
        joints = tuple(self.q[self._joints(names, "q")] for names in zip(*group.joints, strict=True))
        return Placed(jnp.broadcast_to(t, (count,)), frames, joints)

    def moving(self, group: ConstraintGroup) -> Moving:
        """Velocities of frames and joints."""
        frames = tuple(paths.twists(self.columns, self.v) for paths in self._paths(group))
        return Moving(frames, tuple(self.v[place] for place in self._places(group)))

    def jacobian(self, group: ConstraintGroup, A: Moving) -> Float[Array, "constraints rows nv_full"]:
        """Jacobian of rows that depend on the motion of frames and joints by A."""
        J = jnp.zeros((), self.v.dtype)
        for a, paths in zip(A.frames, self._paths(group), strict=True):
            J = J + paths.jacobian(self.columns, a)
        for a, place in zip(A.joints, self._places(group), strict=True):
            J = J + a[..., None] * np.eye(len(self.v), dtype=a.dtype)[place][:, None]
        rows = jax.tree.leaves(A)[0].shape[:2]
        return jnp.broadcast_to(J, (*rows, len(self.v)))

    def biases(self, group: ConstraintGroup) -> Moving:
        """Accelerations of frames and joints where those of all coordinates are zero."""
        before = bodies_before(self.model)
        frames = tuple(jnp.asarray(before[bodies], self.bias.dtype) @ self.bias for bodies in self._bodies(group))
        none = jnp.zeros(len(group.frames), self.v.dtype)
        return Moving(frames, tuple(none for _ in group.first.joints))

    def body(self, name: str) -> int:
        """Number of the body that carries a frame, -1 for the world."""
        return int(self._carriers([name])[0][0])

    def _paths(self, group: ConstraintGroup) -> list[Paths]:
        """Paths from the world to each of the frames."""
        return [paths_between(self.model, np.full_like(bodies, WORLD), bodies) for bodies in self._bodies(group)]

    def _bodies(self, group: ConstraintGroup) -> list[np.ndarray]:
        """Bodies that carry each of the frames."""
        return [self._carriers(names)[0] for names in zip(*group.frames, strict=True)]

    def _places(self, group: ConstraintGroup) -> list[np.ndarray]:
        return [self._joints(names, "v") for names in zip(*group.joints, strict=True)]

    def _poses(self, names: Sequence[str]) -> Transform:
        bodies, frames = self._carriers(names)
        X = jax.tree.map(lambda x: x[bodies], self.poses)
        if np.all(frames < 0):
            return X
        one = Transform.identity(self.q.dtype)
        Y = jax.tree.map(lambda x, one: jnp.concatenate([x, one[None]])[frames], self.model.frames, one)
        return jax.vmap(Transform.__matmul__)(X, Y)

    def _carriers(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Bodies and frames by number; -1 for the world and for a body's own frame."""
        places = [(-1, -1) if name == "world" else carrier(self.model, name) for name in names]
        bodies, frames = np.array(places).T
        return bodies, frames

    def _joints(self, names: Sequence[str], which: str) -> np.ndarray:
        topology = self.model.topology
        for name in names:
            if name not in topology.joint_names:
                raise ValueError(unknown("joint", name, topology.joint_names))
            kind = topology.kinds[topology.joint(name)]
            if (kind.nq, kind.nv) != (1, 1):
                raise ValueError(
                    f"joint {name!r}: a constraint needs a joint with one coordinate, got a {kind.__name__}"
                )
        offsets = topology.q_offsets if which == "q" else topology.v_offsets
        return np.array([offsets[topology.joint(name)] for name in names])
