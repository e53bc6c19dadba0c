"""Conversions to and from MuJoCo's order and conventions."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jdyn.dynamics import forward_kinematics
from jdyn.dynamics.kinematics import carrier
from jdyn.interop.conventions import Convention, FreeBodyWorld
from jdyn.interop.peer import PeerJoint, PeerMap, paired
from jdyn.io.mjcf_names import Names, body_names, joint_names
from jdyn.model import Ball, Continuous, Free, Model, Prismatic, Revolute
from jdyn.terminal.messages import enumerated

_FREE, _BALL, _SLIDE, _HINGE = range(4)
_CONVENTIONS: dict[tuple[type, int], Convention] = {
    (Free, _FREE): FreeBodyWorld(),
    (Ball, _BALL): Convention(4, 3),
    (Prismatic, _SLIDE): Convention(1, 1),
    (Revolute, _HINGE): Convention(1, 1),
    (Continuous, _HINGE): Convention(1, 1),
}


class MujocoMap(PeerMap):
    """Converts quantities to and from MuJoCo's order and conventions.

    Joints are paired by the names that `jdyn.load` gives them. In MuJoCo, the first three velocity coordinates of a
    free joint are linear and in world axes, so its accelerations also differ by ω × v.

    Args:
        model: jdyn's model.
        mj_model: `mujoco.MjModel` of the same robot. It is only read, and MuJoCo need not be imported.

    Attributes:
        body_ids: For each of jdyn's bodies, the MuJoCo body whose joint moves it.
        takes_force: Mask of jdyn's bodies that are whole MuJoCo bodies; external forces can act only on these.

    Raises:
        ValueError: if the joints or bodies of the two models do not match.
    """

    def __init__(self, model: Model, mj_model: Any):
        links, names = _names(mj_model)
        bodies = mj_model.jnt_bodyid
        roots = [name for name, body in zip(names, bodies, strict=True) if mj_model.body_parentid[body] == 0]
        ids = [names.index(name) for name in paired(model, names, roots, "MuJoCo")]
        joints = [_peer_joint(model, body, mj_model, i) for body, i in enumerate(ids)]
        super().__init__(model, int(mj_model.nq), int(mj_model.nv), joints)
        self.nbody = int(mj_model.nbody)
        self.body_ids = tuple(int(bodies[i]) for i in ids)
        last = mj_model.body_jntadr + mj_model.body_jntnum - 1
        self.takes_force = np.array([last[bodies[i]] == i for i in ids])
        self._poses = [_pose_in_carrier(model, links[b]) for b in self.body_ids]
        self._centers = np.array(
            [R @ mj_model.body_ipos[b] + p for b, (R, p) in zip(self.body_ids, self._poses, strict=True)]
        )

    def body_pose(self, body: int) -> tuple[np.ndarray, np.ndarray]:
        """Rotation and translation of the MuJoCo body in the frame of jdyn's body that carries it."""
        return self._poses[body]

    def f_ext_to_peer(self, q, f_ext) -> Float[np.ndarray, "*batch nbody 6"]:
        """`xfrc_applied`: [f; n] in world axes at the centre of mass of every MuJoCo body.

        Raises:
            ValueError: if a force acts on a body between two joints of one MuJoCo body.
        """
        f_ext = np.asarray(f_ext, float)
        if np.any(f_ext[..., ~self.takes_force, :]):
            between = [name for name, whole in zip(self.model.body_names, self.takes_force, strict=True) if not whole]
            raise ValueError(
                f"f_ext: MuJoCo has no bodies that correspond to {enumerated([*between])}, so no forces can act there"
            )
        n, f = f_ext[..., :3], f_ext[..., 3:]
        wrench = np.concatenate([f, n - np.cross(self._centers, f)], axis=-1)
        xfrc = np.zeros((*f_ext.shape[:-2], self.nbody, 6))
        ids = np.array(self.body_ids)[self.takes_force]
        xfrc[..., ids, :] = _rotated(self._rotations(q), wrench)[..., self.takes_force, :]
        return xfrc

    def f_ext_from_peer(self, q, f_ext) -> Float[np.ndarray, "*batch nb 6"]:
        """Forces on jdyn's bodies from `xfrc_applied`; forces on bodies that cannot move are left out."""
        xfrc = np.asarray(f_ext, float)[..., self.body_ids, :] * self.takes_force[:, None]
        wrench = _rotated(np.swapaxes(self._rotations(q), -1, -2), xfrc)
        f, n = wrench[..., :3], wrench[..., 3:]
        return np.concatenate([n + np.cross(self._centers, f), f], axis=-1)

    def _rotations(self, q):
        """World rotations of jdyn's bodies, by jdyn's own kinematics."""
        q = np.asarray(q, float)
        flat = jnp.asarray(q.reshape(-1, q.shape[-1]), self.model.dtype)
        rotations = _body_rotations(self.model.without_shapes(), flat)
        return np.asarray(rotations, float).reshape(*q.shape[:-1], self.model.nb, 3, 3)


@eqx.filter_jit
def _body_rotations(model, qs):
    return jax.vmap(lambda q: forward_kinematics(model, q).rotation)(qs)


def _rotated(R, x):
    """6-vectors with both halves rotated by R."""
    return np.concatenate([(R @ half[..., None])[..., 0] for half in (x[..., :3], x[..., 3:])], axis=-1)


def _names(mj_model) -> tuple[list[str], list[str]]:
    """The names that `jdyn.load` gives to MuJoCo's bodies and joints."""
    bodies = body_names(Names("world"), _given(mj_model, mj_model.name_bodyadr))
    return bodies, joint_names(Names(), mj_model, _given(mj_model, mj_model.name_jntadr), bodies)


def _given(mj_model, addresses) -> list[str]:
    """Names in the file; empty where there is none."""
    return [mj_model.names[address:].split(b"\0")[0].decode() for address in addresses]


def _peer_joint(model: Model, body: int, mj_model: Any, joint: int) -> PeerJoint:
    kind, name = model.topology.kinds[body], model.joint_names[body]
    convention = _CONVENTIONS.get((kind, int(mj_model.jnt_type[joint])))
    if convention is None:
        theirs = ("free", "ball", "slide", "hinge")[mj_model.jnt_type[joint]]
        raise ValueError(f"joint {name!r} is {kind.__name__} in jdyn and {theirs} in MuJoCo")
    if kind is Free:
        R, p = np.asarray(model.placements.rotation[body]), np.asarray(model.placements.translation[body])
        if model.topology.parents[body] >= 0 or np.any(R != np.eye(3)) or np.any(p):
            raise ValueError(
                f"joint {name!r}: MuJoCo's free joints are placed at the origin of the world; place this one there"
            )
    return PeerJoint(convention, int(mj_model.jnt_qposadr[joint]), int(mj_model.jnt_dofadr[joint]))


def _pose_in_carrier(model, name) -> tuple[np.ndarray, np.ndarray]:
    """Pose of a MuJoCo body in the frame of jdyn's body that carries it."""
    try:
        _, frame = carrier(model, name)
    except ValueError as error:
        raise ValueError(f"MuJoCo's body {name!r} is missing in jdyn's model: {error}") from None
    if frame < 0:
        return np.eye(3), np.zeros(3)
    return np.asarray(model.frames.rotation[frame], float), np.asarray(model.frames.translation[frame], float)
