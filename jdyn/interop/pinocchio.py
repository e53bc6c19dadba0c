"""Conversions to and from Pinocchio's order and conventions."""

from typing import Any

import numpy as np
from jaxtyping import Float

from jdyn.interop.conventions import Circle, Convention, FreeBodyXYZW, PlanarBody, QuaternionXYZW
from jdyn.interop.peer import PeerJoint, PeerMap, paired
from jdyn.model import Ball, Continuous, Free, Model, Planar
from jdyn.model.vary import joint_geometry

_OWN_CONVENTIONS: dict[type, dict[str, Convention]] = {
    Ball: {"JointModelSpherical": QuaternionXYZW()},
    Free: {"JointModelFreeFlyer": FreeBodyXYZW()},
    Planar: {"JointModelPlanar": PlanarBody()},
}
_COMPOUND = {name for conventions in _OWN_CONVENTIONS.values() for name in conventions}


class PinocchioMap(PeerMap):
    """Converts quantities to and from Pinocchio's order and conventions.

    Joints are paired by name. Pinocchio sorts them depth first and by name, puts linear parts first, stores
    quaternions as xyzw, uses body-frame velocities for free and planar joints, and stores continuous and planar
    angles as (cos, sin).

    Args:
        model: jdyn's model.
        pin_model: `pinocchio.Model` of the same robot. It is only read, and Pinocchio need not be imported.

    Raises:
        ValueError: if the joints of the two models do not match.
    """

    def __init__(self, model: Model, pin_model: Any):
        names = list(pin_model.names)
        roots = [names[i] for i in range(1, pin_model.njoints) if pin_model.parents[i] == 0]
        peers = paired(model, names[1:], roots, "Pinocchio")
        self.joint_ids = tuple(names.index(name) for name in peers)
        self.njoints = int(pin_model.njoints)
        joints = [_peer_joint(model, body, pin_model, i) for body, i in enumerate(self.joint_ids)]
        super().__init__(model, int(pin_model.nq), int(pin_model.nv), joints)

    def f_ext_to_peer(self, q, f_ext) -> Float[np.ndarray, "*batch njoints 6"]:
        """Forces [f; n] on every joint's frame, in that frame; the first row is the universe's.

        Pass `[pinocchio.Force(row) for row in rows]` to Pinocchio.
        """
        f_ext = np.asarray(f_ext, float)
        rows = np.zeros((*f_ext.shape[:-2], self.njoints, 6))
        rows[..., self.joint_ids, :] = np.roll(f_ext, 3, axis=-1)
        return rows

    def f_ext_from_peer(self, q, f_ext) -> Float[np.ndarray, "*batch nb 6"]:
        """Forces [n; f] on every body, from rows in Pinocchio's order."""
        return np.roll(np.asarray(f_ext, float)[..., self.joint_ids, :], 3, axis=-1)


def _peer_joint(model: Model, body: int, pin_model: Any, i: int) -> PeerJoint | None:
    joint, kind = pin_model.joints[i], model.topology.kinds[body]
    if joint.nv == 0 and any(body == follower for follower, _ in model.topology.mimics):
        return None
    return PeerJoint(_convention(model, body, kind, joint), joint.idx_q, joint.idx_v)


def _convention(model, body, kind, joint):
    name = joint.shortname()
    if name in _OWN_CONVENTIONS.get(kind, ()):
        if kind is Planar:
            _check_plane(model, body)
        return _OWN_CONVENTIONS[kind][name]
    if name not in _COMPOUND and joint.nv == kind.nv and kind not in (Ball, Free):
        if joint.nq == kind.nq:
            return Convention(kind.nq, kind.nv)
        if kind is Continuous and joint.nq == 2:
            return Circle()
    raise ValueError(
        f"joint {model.joint_names[body]!r} is {kind.__name__} in jdyn ({kind.nq} and {kind.nv} coordinates) and "
        f"{name} in Pinocchio ({joint.nq} and {joint.nv}); these do not correspond"
    )


def _check_plane(model, body):
    """Check that a planar joint moves along x and y of its joint frame, as Pinocchio's does."""
    plane = joint_geometry(model, body)
    axes = np.asarray(plane["x"]), np.asarray(plane["normal"])
    if not np.allclose(axes, np.eye(3)[[0, 2]], atol=1e-6):
        raise ValueError(
            f"joint {model.joint_names[body]!r}: Pinocchio's planar joint moves along x and y of its frame and turns "
            f"about z; this one has x = {axes[0]} and normal = {axes[1]}. Turn the joint's placement instead"
        )
