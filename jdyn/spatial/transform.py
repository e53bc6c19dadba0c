"""Rigid transforms: the pose of one frame in another."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.array.dot import short_dot
from jdyn.array.structure import Structure
from jdyn.spatial.rotation import skew
from jdyn.spatial.vector import Force6, Motion6


class Transform(Structure):
    """The pose `X_pc` of a child frame in a parent frame.

    >>> X = jdyn.Transform(jnp.eye(3), jnp.array([0.0, 0.0, 1.0]))
    >>> print((X @ X).translation, X.inverse().point_to_parent(jnp.array([0.0, 0.0, 1.0])))
    [0. 0. 2.] [0. 0. 0.]

    Attributes:
        rotation: Columns are the child's axes in the parent's coordinates.
        translation: The child's origin in the parent's coordinates [m].

    Method names give the quantity and the target frame. Rotations are inverted by transposition, so each motion map
    is the exact transpose of the matching force map, whatever rounding error `rotation` has.
    """

    rotation: Float[Array, "*batch 3 3"]
    translation: Float[Array, "*batch 3"]

    @staticmethod
    def identity(dtype=None) -> "Transform":
        """The pose of a frame in itself."""
        return Transform(jnp.array(np.eye(3), dtype), jnp.zeros(3, dtype))

    def __matmul__(self, other: "Transform") -> "Transform":
        """`X_ac = X_ab @ X_bc`."""
        # Not written out: in chains of poses XLA would compute each of them again for all that follow it.
        return Transform(self.rotation @ other.rotation, self.point_to_parent(other.translation))

    def inverse(self) -> "Transform":
        """`X_cp`: the pose of the parent in the child."""
        return Transform(self.rotation.T, -short_dot(self.rotation.T, self.translation))

    def point_to_parent(self, x: Float[Array, "3"]) -> Float[Array, "3"]:
        """Coordinates in the parent of the point with coordinates `x` in the child [m]."""
        return short_dot(self.rotation, x) + self.translation

    def point_to_child(self, x: Float[Array, "3"]) -> Float[Array, "3"]:
        """Coordinates in the child of the point with coordinates `x` in the parent [m]."""
        return short_dot(self.rotation.T, x - self.translation)

    def motion_to_parent(self, m: Motion6) -> Motion6:
        """Transform a motion vector from the child to the parent frame."""
        w = short_dot(self.rotation, m[:3])
        return jnp.concatenate([w, short_dot(self.rotation, m[3:]) + jnp.cross(self.translation, w)])

    def motion_to_child(self, m: Motion6) -> Motion6:
        """Transform a motion vector from the parent to the child frame."""
        v = m[3:] - jnp.cross(self.translation, m[:3])
        return jnp.concatenate([short_dot(self.rotation.T, m[:3]), short_dot(self.rotation.T, v)])

    def force_to_parent(self, f: Force6) -> Force6:
        """Transform a force vector from the child to the parent frame: the transpose of `motion_to_child`."""
        linear = short_dot(self.rotation, f[3:])
        return jnp.concatenate([short_dot(self.rotation, f[:3]) + jnp.cross(self.translation, linear), linear])

    def force_to_child(self, f: Force6) -> Force6:
        """Transform a force vector from the parent to the child frame: the transpose of `motion_to_parent`."""
        n = f[:3] - jnp.cross(self.translation, f[3:])
        return jnp.concatenate([short_dot(self.rotation.T, n), short_dot(self.rotation.T, f[3:])])

    def motion_matrix(self) -> Float[Array, "6 6"]:
        """The matrix of `motion_to_child`."""
        R_T = self.rotation.T
        return jnp.block([[R_T, jnp.zeros_like(R_T)], [-R_T @ skew(self.translation), R_T]])
