"""Equalities of MuJoCo files as constraints beyond the tree of joints."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.io.mjcf_tendons import fixed_tendon, is_fixed
from jdyn.io.mjcf_translation import Translation
from jdyn.model.constraints import Connect, Constraint, Gear, JointSum, PrescribedJoint, Weld
from jdyn.model.guided import Guided, Still
from jdyn.spatial import Transform

# MuJoCo's defaults.
SOLREF, SOLIMP = np.array([0.02, 1]), np.array([0.9, 0.95, 0.001, 0.5, 2])


class Locked(eqx.Module):
    """Position at which a locked joint stays.

    Attributes:
        position: Coordinate of the joint [rad or m].
    """

    position: Float[Array, ""]

    def __call__(self, t):
        return self.position


def open_equalities(t: Translation) -> tuple[list[int], list[int]]:
    """Active equalities that did not become mimic joints: those that `constraint` translates, and all others. Those
    between mocap bodies hold nothing."""
    if t.disabled("EQUALITY", "CONSTRAINT"):
        return [], []
    active = [i for i in range(t.m.neq) if t.m.eq_active0[i] and i not in t.couplings and not _holds_nothing(t, i)]
    ours = [i for i in active if _is_translated(t, i)]
    return ours, [i for i in active if i not in ours]


def _holds_nothing(t: Translation, equality: int) -> bool:
    ends = bodies_of(t, equality)
    return bool(ends) and all(mocap_of(t, body) is not None for body in ends)


def _is_translated(t: Translation, equality: int) -> bool:
    kinds, kind = t.mujoco.mjtEq, int(t.m.eq_type[equality])
    if kind != kinds.mjEQ_TENDON:
        return kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD, kinds.mjEQ_JOINT)
    # Lengths that add up coordinates, of which one is constant or linear in the other.
    return all(is_fixed(t, tendon) for tendon in _tendons(t, equality)) and not np.any(t.m.eq_data[equality, 2:5])


def constraint(t: Translation, equality: int) -> Constraint:
    """Constraint whose residual is MuJoCo's for an equality; mocap bodies guide it.

    Source: MuJoCo's documentation, XML reference, equality; `mj_instantiateEquality` in its source.
    """
    found = _constraint(t, equality)
    for mocap in dict.fromkeys(mocap_of(t, body) for body in bodies_of(t, equality)):
        if mocap is not None:
            found = _guided(t, equality, mocap, found)
    return found


def _guided(t: Translation, equality: int, mocap: int, found: Constraint) -> Guided:
    """A constraint with frames on a mocap body."""
    name, places = t.bodies[mocap], {}
    for frame, body, own in _ends(t, equality):
        if mocap_of(t, body) == mocap and frame != name:
            places[frame] = _numbers(_pose_below(t, body, mocap) @ own)
    pose = Still(_numbers(t.pose(t.m.body_pos[mocap], t.m.body_quat[mocap])))
    return Guided(found, name, pose, tuple(places), tuple(places.values()))


def _ends(t: Translation, equality: int) -> Iterator[tuple[str, int, Transform]]:
    """Frames of a connect or a weld, the bodies that carry them, and their poses in these."""
    ends, sites = (t.m.eq_obj1id[equality], t.m.eq_obj2id[equality]), _of_sites(t, equality)
    for frame, body, end in zip(_frames(t, equality), bodies_of(t, equality), ends, strict=True):
        own = t.pose(t.m.site_pos[end], t.m.site_quat[end]) if sites else t.pose(np.zeros(3), np.array([1.0, 0, 0, 0]))
        yield frame, body, own


def mocap_of(t: Translation, body: int) -> int | None:
    """The mocap body that carries a body, or is it."""
    while t.m.body_mocapid[body] < 0:
        if body == 0 or t.m.body_jntnum[body]:
            return None
        body = int(t.m.body_parentid[body])
    return body


def _pose_below(t: Translation, body: int, mocap: int) -> Transform:
    """Pose of a body in the mocap body that carries it."""
    if body == mocap:
        return t.pose(np.zeros(3), np.array([1.0, 0, 0, 0]))
    above = _pose_below(t, int(t.m.body_parentid[body]), mocap)
    return above @ t.pose(t.m.body_pos[body], t.m.body_quat[body])


def _numbers(pose: Transform) -> Transform:
    return Transform(jnp.asarray(pose.rotation, float), jnp.asarray(pose.translation, float))


def _constraint(t: Translation, equality: int) -> Constraint:
    match int(t.m.eq_type[equality]):
        case t.mujoco.mjtEq.mjEQ_JOINT:
            return _of_joints(t, equality)
        case t.mujoco.mjtEq.mjEQ_TENDON:
            return _of_tendons(t, equality)
        case t.mujoco.mjtEq.mjEQ_CONNECT:
            # MuJoCo finds the point of the second body where the coordinates are `qpos0`.
            return _connect(t, equality, t.m.eq_data[equality, :3], t.m.eq_data[equality, 3:6])
        case _:
            return _weld(t, equality)


def is_soft(t: Translation, equality: int) -> bool:
    """Tell whether the file asks for another softness than MuJoCo's default."""
    solref, solimp = t.m.eq_solref[equality], t.m.eq_solimp[equality]
    return bool(np.any(solref != SOLREF) or np.any(solimp != SOLIMP))


def is_scaled(t: Translation, equality: int) -> bool:
    """Tell whether the file weighs the rotation of a weld against its translation."""
    return int(t.m.eq_type[equality]) == t.mujoco.mjtEq.mjEQ_WELD and _torque_scale(t, equality) not in (0, 1)


def bodies_of(t: Translation, equality: int) -> list[int]:
    """MuJoCo's numbers of the bodies that a connect or a weld holds together."""
    if int(t.m.eq_type[equality]) in (t.mujoco.mjtEq.mjEQ_JOINT, t.mujoco.mjtEq.mjEQ_TENDON):
        return []
    ends = t.m.eq_obj1id[equality], t.m.eq_obj2id[equality]
    return [int(t.m.site_bodyid[end] if _of_sites(t, equality) else end) for end in ends]


def _torque_scale(t: Translation, equality: int) -> float:
    return float(t.m.eq_data[equality, 10])


def _of_sites(t: Translation, equality: int) -> bool:
    return int(t.m.eq_objtype[equality]) == t.mujoco.mjtObj.mjOBJ_SITE


def _frames(t: Translation, equality: int) -> tuple[str, str]:
    names = t.sites if _of_sites(t, equality) else t.bodies
    return names[t.m.eq_obj1id[equality]], names[t.m.eq_obj2id[equality]]


def _connect(t: Translation, equality: int, point_a: Any, point_b: Any) -> Connect:
    a, b = _frames(t, equality)
    return Connect(a, b) if _of_sites(t, equality) else Connect(a, b, point_a=point_a, point_b=point_b)


def _weld(t: Translation, equality: int) -> Constraint:
    data = t.m.eq_data[equality]
    anchor, place, turn = data[:3], data[3:6], data[6:10]
    if _torque_scale(t, equality) == 0:
        return _connect(t, equality, place, anchor)
    if _of_sites(t, equality):
        return Weld(*_frames(t, equality))
    where = t.pose(place, turn)
    rotation, translation = where.rotation, where.point_to_parent(-anchor)
    return Weld(*_frames(t, equality), pose=_numbers(Transform(rotation, translation)))


def _of_joints(t: Translation, equality: int) -> Constraint:
    m = t.m
    follower, leader = m.eq_obj1id[equality], m.eq_obj2id[equality]
    of_deviations = np.polynomial.Polynomial(m.eq_data[equality, :5])
    here = m.qpos0[m.jnt_qposadr[follower]]
    if leader < 0:
        return PrescribedJoint(t.joints[follower], Locked(jnp.asarray(here + of_deviations.coef[0], float)))
    deviation = np.polynomial.Polynomial([-m.qpos0[m.jnt_qposadr[leader]], 1])
    return Gear(t.joints[follower], t.joints[leader], (of_deviations(deviation) + here).coef)


def _tendons(t: Translation, equality: int) -> list[int]:
    """Numbers of the tendon whose length an equality gives, and of the one by which, if there is one."""
    return [int(i) for i in (t.m.eq_obj1id[equality], t.m.eq_obj2id[equality]) if i >= 0]


def _of_tendons(t: Translation, equality: int) -> JointSum:
    m, (constant, ratio) = t.m, t.m.eq_data[equality, :2]
    total, weights = constant, dict[str, float]()
    for tendon, factor in zip(_tendons(t, equality), (1.0, -ratio), strict=False):
        # Deviations from the lengths in the file's pose.
        total += factor * m.tendon_length0[tendon]
        lengths = fixed_tendon(t, tendon)
        for joint, coefficient in zip(lengths.joints, np.asarray(lengths.coefficients), strict=True):
            weights[joint] = weights.get(joint, 0.0) + factor * float(coefficient)
    return JointSum(tuple(weights), list(weights.values()), total)
