"""Relations between the coordinates of one joint in jdyn and in a peer, another program.

NumPy in float64; arrays may have leading axes. Velocities are related by v_peer = B(q) v with B orthogonal;
consequently, generalized forces by τ_peer = B τ, and accelerations by a_peer = B a + (dB/dt) v.
"""

import dataclasses

import numpy as np
from jaxtyping import Float
from scipy.spatial.transform import Rotation

XYZW = [1, 2, 3, 0]
WXYZ = [3, 0, 1, 2]


@dataclasses.dataclass(frozen=True)
class Convention:
    """A joint with the same coordinates in both programs.

    Attributes:
        nq: Number of the peer's configuration coordinates.
        nv: Number of velocity coordinates.
    """

    nq: int
    nv: int

    def q_to_peer(self, q: Float[np.ndarray, "*batch nq"]) -> Float[np.ndarray, "*batch nq_peer"]:
        """The peer's configuration coordinates."""
        return q

    def q_from_peer(self, q: Float[np.ndarray, "*batch nq_peer"]) -> Float[np.ndarray, "*batch nq"]:
        """jdyn's configuration coordinates."""
        return q

    def basis(self, q: Float[np.ndarray, "*batch nq"]) -> Float[np.ndarray, "*batch nv nv"]:
        """B in v_peer = B v; orthogonal."""
        return np.broadcast_to(np.eye(self.nv), (*q.shape[:-1], self.nv, self.nv))

    def drift(
        self, q: Float[np.ndarray, "*batch nq"], v: Float[np.ndarray, "*batch nv"]
    ) -> Float[np.ndarray, "*batch nv"]:
        """(dB/dt) v: the peer's acceleration while v is constant."""
        return np.zeros_like(v)


@dataclasses.dataclass(frozen=True)
class Circle(Convention):
    """A peer that stores an angle as (cos, sin). Angles from the peer are within ±π."""

    nq: int = 2
    nv: int = 1

    def q_to_peer(self, q):
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1)

    def q_from_peer(self, q):
        return np.arctan2(q[..., 1:], q[..., :1])


@dataclasses.dataclass(frozen=True)
class QuaternionXYZW(Convention):
    """A ball joint of a peer that stores quaternions with the scalar part last."""

    nq: int = 4
    nv: int = 3

    def q_to_peer(self, q):
        return q[..., XYZW]

    def q_from_peer(self, q):
        return q[..., WXYZ]


@dataclasses.dataclass(frozen=True)
class FreeBodyXYZW(Convention):
    """A free joint of a peer with body-frame velocities [v; ω] and quaternions xyzw: Pinocchio's."""

    nq: int = 7
    nv: int = 6

    def q_to_peer(self, q):
        return np.concatenate([q[..., :3], q[..., 3:][..., XYZW]], axis=-1)

    def q_from_peer(self, q):
        return np.concatenate([q[..., :3], q[..., 3:][..., WXYZ]], axis=-1)

    def basis(self, q):
        return np.broadcast_to(np.roll(np.eye(6), 3, axis=0), (*q.shape[:-1], 6, 6))


@dataclasses.dataclass(frozen=True)
class PlanarBody(Convention):
    """A planar joint of a peer with body-frame velocities and the angle as (cos, sin): Pinocchio's."""

    nq: int = 4
    nv: int = 3

    def q_to_peer(self, q):
        return np.concatenate([q[..., :2], np.cos(q[..., 2:]), np.sin(q[..., 2:])], axis=-1)

    def q_from_peer(self, q):
        return np.concatenate([q[..., :2], np.arctan2(q[..., 3:], q[..., 2:3])], axis=-1)

    def basis(self, q):
        c, s = np.cos(q[..., 2]), np.sin(q[..., 2])
        B = np.zeros((*q.shape[:-1], 3, 3))
        B[..., 0, 0] = B[..., 1, 1] = c
        B[..., 0, 1], B[..., 1, 0] = s, -s
        B[..., 2, 2] = 1
        return B

    def drift(self, q, v):
        body = (self.basis(q) @ v[..., None])[..., 0]
        omega = v[..., 2]
        return np.stack([omega * body[..., 1], -omega * body[..., 0], np.zeros_like(omega)], axis=-1)


@dataclasses.dataclass(frozen=True)
class FreeBodyWorld(Convention):
    """A free joint of a peer with linear velocity in world axes and angular velocity in body axes: MuJoCo's.

    The peer's linear acceleration is therefore that of the body's origin in the world, R (v̇ + ω × v).
    """

    nq: int = 7
    nv: int = 6

    def basis(self, q):
        B = np.zeros((*q.shape[:-1], 6, 6))
        B[..., :3, 3:] = rotation_matrix(q[..., 3:])
        B[..., 3:, :3] = np.eye(3)
        return B

    def drift(self, q, v):
        centripetal = np.cross(v[..., :3], v[..., 3:])
        linear = (rotation_matrix(q[..., 3:]) @ centripetal[..., None])[..., 0]
        return np.concatenate([linear, np.zeros_like(linear)], axis=-1)


def rotation_matrix(q: Float[np.ndarray, "*batch 4"]) -> Float[np.ndarray, "*batch 3 3"]:
    """The rotation matrix of a unit quaternion wxyz."""
    flat = Rotation.from_quat(q.reshape(-1, 4), scalar_first=True)
    return flat.as_matrix().reshape(*q.shape[:-1], 3, 3)
