"""Conversions of whole-robot quantities between jdyn and a peer, given the conventions of the joints."""

import abc
import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from jdyn.interop.conventions import Convention
from jdyn.model import Model
from jdyn.terminal.messages import enumerated


@dataclasses.dataclass(frozen=True)
class PeerJoint:
    """Position and meaning of the peer's coordinates for one of jdyn's joints.

    Attributes:
        convention: Their relation to jdyn's coordinates.
        q, v: Their start in the peer's configuration and velocity.
    """

    convention: Convention
    q: int
    v: int


class PeerMap(abc.ABC):
    """Converts quantities between jdyn's conventions and those of a peer's model of the same robot.

    Arrays are NumPy arrays in float64 and may have leading axes, such as the instants of a trajectory. Where `q` only
    specifies the configuration for a conversion, it is always jdyn's.

    For most peers, joints that follow another one (mimic) are independent. Then the peer's velocity is the full
    velocity G v, and jdyn reads only the leaders' entries of it. The peer's forces become Gᵀ τ in jdyn; jdyn's forces
    are applied only to the leaders, which is equivalent for every motion that respects the coupling. Jacobians are
    converted to the peer likewise.

    Attributes:
        model: jdyn's model.
        nq, nv: Sizes of the peer's configuration and velocity.
    """

    def __init__(self, model: Model, nq: int, nv: int, joints: Sequence[PeerJoint | None]):
        """`joints` has one entry per body of `model`: `None` if the peer has no coordinates for its joint."""
        self.model = model
        self.nq, self.nv = nq, nv
        self._joints = joints
        self._ratio = np.asarray(model.mimic_ratio, float)
        self._offset = np.asarray(model.mimic_offset, float)
        topology = model.topology
        self._leads = np.zeros((len(topology.independent_v), topology.v_offsets[-1]))
        self._leads[np.arange(model.nv), list(topology.independent_v)] = 1
        self._expansion = self._leads.T.copy()
        for (follower, leader), ratio in zip(topology.mimics, self._ratio, strict=True):
            self._expansion[topology.v_offsets[follower]] = ratio * self._expansion[topology.v_offsets[leader]]

    # Configurations.

    def q_to_peer(self, q) -> Float[np.ndarray, "*batch nq_peer"]:
        """The peer's configuration."""
        full = self._expand(_checked("q", q, self.model.nq))
        peer = np.zeros((*full.shape[:-1], self.nq))
        for body, joint in self._present():
            own = full[..., self.model.topology.q_slice(body)]
            peer[..., joint.q : joint.q + joint.convention.nq] = joint.convention.q_to_peer(own)
        return peer

    def q_from_peer(self, q) -> Float[np.ndarray, "*batch nq"]:
        """jdyn's configuration; angles that the peer stores as (cos, sin) are within ±π."""
        peer, topology = _checked("q", q, self.nq), self.model.topology
        full = np.zeros((*peer.shape[:-1], topology.q_offsets[-1]))
        for body, joint in self._present():
            own = peer[..., joint.q : joint.q + joint.convention.nq]
            full[..., topology.q_slice(body)] = joint.convention.q_from_peer(own)
        return full[..., list(topology.independent_q)]

    def _expand(self, q):
        topology = self.model.topology
        full = np.zeros((*q.shape[:-1], topology.q_offsets[-1]))
        full[..., list(topology.independent_q)] = q
        for (follower, leader), ratio, offset in zip(topology.mimics, self._ratio, self._offset, strict=True):
            full[..., topology.q_offsets[follower]] = ratio * full[..., topology.q_offsets[leader]] + offset
        return full

    def _present(self):
        return ((body, joint) for body, joint in enumerate(self._joints) if joint is not None)

    # Velocities, accelerations and forces.

    def velocity_map(self, q) -> Float[np.ndarray, "*batch nv_peer nv"]:
        """T in v_peer = T v; also τ = Tᵀ τ_peer, M = Tᵀ M_peer T, J = J_peer T."""
        return self._basis(q) @ self._expansion

    def velocity_map_inverse(self, q) -> Float[np.ndarray, "*batch nv nv_peer"]:
        """A left inverse of T."""
        return self._leads @ np.swapaxes(self._basis(q), -1, -2)

    def _basis(self, q):
        full, topology = self._expand(_checked("q", q, self.model.nq)), self.model.topology
        basis = np.zeros((*full.shape[:-1], self.nv, topology.v_offsets[-1]))
        for body, joint in self._present():
            block = joint.convention.basis(full[..., topology.q_slice(body)])
            basis[..., joint.v : joint.v + joint.convention.nv, topology.v_slice(body)] = block
        return basis

    def drift(self, q, v) -> Float[np.ndarray, "*batch nv_peer"]:
        """(dT/dt) v: the peer's acceleration while jdyn's is zero."""
        full, topology = self._expand(_checked("q", q, self.model.nq)), self.model.topology
        v_full = _checked("v", v, self.model.nv) @ self._expansion.T
        drift = np.zeros((*full.shape[:-1], self.nv))
        for body, joint in self._present():
            own = joint.convention.drift(full[..., topology.q_slice(body)], v_full[..., topology.v_slice(body)])
            drift[..., joint.v : joint.v + joint.convention.nv] = own
        return drift

    def v_to_peer(self, q, v) -> Float[np.ndarray, "*batch nv_peer"]:
        """The peer's velocity."""
        return _apply(self.velocity_map(q), _checked("v", v, self.model.nv))

    def v_from_peer(self, q, v) -> Float[np.ndarray, "*batch nv"]:
        """jdyn's velocity."""
        return _apply(self.velocity_map_inverse(q), _checked("v", v, self.nv))

    def a_to_peer(self, q, v, a) -> Float[np.ndarray, "*batch nv_peer"]:
        """The peer's acceleration at jdyn's velocity `v`."""
        return _apply(self.velocity_map(q), _checked("a", a, self.model.nv)) + self.drift(q, v)

    def a_from_peer(self, q, v, a) -> Float[np.ndarray, "*batch nv"]:
        """jdyn's acceleration at jdyn's velocity `v`."""
        return _apply(self.velocity_map_inverse(q), _checked("a", a, self.nv) - self.drift(q, v))

    def tau_to_peer(self, q, tau) -> Float[np.ndarray, "*batch nv_peer"]:
        """The peer's generalized forces."""
        T = np.swapaxes(self.velocity_map_inverse(q), -1, -2)
        return _apply(T, _checked("tau", tau, self.model.nv))

    def tau_from_peer(self, q, tau) -> Float[np.ndarray, "*batch nv"]:
        """jdyn's generalized forces."""
        return _apply(np.swapaxes(self.velocity_map(q), -1, -2), _checked("tau", tau, self.nv))

    def per_velocity(self, x) -> Float[np.ndarray, " nv_peer"]:
        """Joint parameters such as rotor inertias, one per full velocity coordinate, in the peer's order."""
        x = _checked("x", x, self.model.topology.v_offsets[-1])
        return np.abs(self._basis(np.asarray(self.model.neutral()))) @ x

    # Spatial quantities.

    def jacobian_to_peer(self, q, J) -> Float[np.ndarray, "*batch 6 nv_peer"]:
        """A Jacobian for the peer's velocity, linear rows first; its frame is that of `J`."""
        return linear_first(_checked("J", J, 6, self.model.nv)) @ self.velocity_map_inverse(q)

    def jacobian_from_peer(self, q, J) -> Float[np.ndarray, "*batch 6 nv"]:
        """A Jacobian for jdyn's velocity, angular rows first; its frame is that of `J`."""
        return angular_first(_checked("J", J, 6, self.nv)) @ self.velocity_map(q)

    @abc.abstractmethod
    def f_ext_to_peer(self, q, f_ext) -> np.ndarray:
        """External forces in the peer's order, frames and axes."""

    @abc.abstractmethod
    def f_ext_from_peer(self, q, f_ext) -> Float[np.ndarray, "*batch nb 6"]:
        """External forces on jdyn's bodies, from the peer's."""


def linear_first(x: Float[np.ndarray, "*batch 6 columns"]) -> np.ndarray:
    """Rows [angular; linear] as [linear; angular]."""
    return np.concatenate([x[..., 3:, :], x[..., :3, :]], axis=-2)


# Swapping the halves is its own inverse.
angular_first = linear_first


def _checked(name: str, x, *expected: int) -> np.ndarray:
    x = np.asarray(x, float)
    if x.shape[x.ndim - len(expected) :] != expected:
        shape = "(..., " + ", ".join(map(str, expected)) + ")"
        raise ValueError(f"{name}: expected shape {shape}, got {x.shape}")
    return x


def _apply(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (A @ x[..., None])[..., 0]


def paired(model: Model, peer_joints: Sequence[str], peer_roots: Sequence[str], peer: str) -> list[str]:
    """The peer's name of each of jdyn's joints: the same name, except that one root joint may have another one.

    Args:
        model: jdyn's model.
        peer_joints: All joint names of the peer's model.
        peer_roots: Those attached to the world.
        peer: Name of the peer, for messages.

    Raises:
        ValueError: if some joint has no counterpart.
    """
    names = list(model.joint_names)
    ours = [name for name in names if name not in peer_joints]
    theirs = [name for name in peer_joints if name not in names]
    if len(ours) == len(theirs) == 1 and theirs[0] in peer_roots and _is_root(model, ours[0]):
        return [theirs[0] if name == ours[0] else name for name in names]
    if ours or theirs:
        raise ValueError(
            f"{model.name!r} and the {peer} model are not the same robot: joints only in jdyn's: "
            f"{enumerated(ours) or 'none'}; joints only in {peer}'s: {enumerated(theirs) or 'none'}"
        )
    return names


def _is_root(model, joint):
    return model.topology.parents[model.topology.joint(joint)] < 0
