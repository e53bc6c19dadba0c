"""Tendons of MuJoCo files as transmissions, and as force elements what resists their lengths."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jdyn.elements import TendonInertia, TendonSpring
from jdyn.io.mjcf_translation import Translation
from jdyn.spatial import Transform
from jdyn.transmissions import FixedTendon, PathPoint, Pulley, SpatialTendon, WrappedCylinder, WrappedSphere

# Frequency of a tendon's inertia on a stop [rad/s], as of joints on the stops that `load_system` gives them.
STOP_FREQUENCY = 100.0


def transmission_of(t: Translation, tendon: int) -> FixedTendon | SpatialTendon:
    """The length of a tendon, by its number.

    Source: MuJoCo's documentation, XML reference, tendon.
    """
    return fixed_tendon(t, tendon) if is_fixed(t, tendon) else SpatialTendon([_part(t, i) for i in _parts(t, tendon)])


def is_fixed(t: Translation, tendon: int) -> bool:
    """Tell whether a tendon adds up coordinates of joints."""
    return int(t.m.wrap_type[t.m.tendon_adr[tendon]]) == t.mujoco.mjtWrap.mjWRAP_JOINT


def fixed_tendon(t: Translation, tendon: int) -> FixedTendon:
    """The length of a tendon that adds up coordinates of joints."""
    m, parts = t.m, _parts(t, tendon)
    return FixedTendon([t.joints[m.wrap_objid[i]] for i in parts], jnp.asarray(m.wrap_prm[parts], float))


def _parts(t: Translation, tendon: int) -> range:
    start = t.m.tendon_adr[tendon]
    return range(start, start + t.m.tendon_num[tendon])


def tendon_elements(t: Translation) -> tuple[TendonSpring | TendonInertia, ...]:
    """Springs, dampers, friction and stops of the tendons that have some, in the order of the file, then inertia of
    those that have armature."""
    found = (_element(t, tendon) for tendon in range(t.m.ntendon))
    heavy = np.flatnonzero(t.m.tendon_armature).tolist()
    inertias = (TendonInertia(transmission_of(t, i), jnp.asarray(t.m.tendon_armature[i], float)) for i in heavy)
    return *(element for element in found if element is not None), *inertias


def side_in_motion(t: Translation, tendon: int) -> bool:
    """Tell whether a side site within a body is on another one, so that it may leave the body."""
    m = t.m
    bodies = (part for part in _parts(t, tendon) if _is_body(t, part) and _is_inside(t, part))
    return any(m.site_bodyid[int(m.wrap_prm[i])] != m.geom_bodyid[m.wrap_objid[i]] for i in bodies)


def _element(t: Translation, tendon: int) -> TendonSpring | None:
    m, length = t.m, transmission_of(t, tendon)
    numbers: dict[str, Any] = {}
    stiffness, damping = m.tendon_stiffness[tendon], m.tendon_damping[tendon]
    stiffening, thickening = m.tendon_stiffnesspoly[tendon], m.tendon_dampingpoly[tendon]
    if (stiffness or np.any(stiffening)) and not t.disabled("SPRING"):
        numbers |= {"stiffness": stiffness, "rest_range": m.tendon_lengthspring[tendon]}
        numbers |= _powers("stiffness_powers", stiffening)
    if (damping or np.any(thickening)) and not t.disabled("DAMPER"):
        numbers |= {"damping": damping} | _powers("damping_powers", thickening)
    if m.tendon_frictionloss[tendon] and not t.disabled("FRICTIONLOSS", "CONSTRAINT"):
        numbers |= {"friction": m.tendon_frictionloss[tendon]}
    if m.tendon_limited[tendon] and not t.disabled("LIMIT", "CONSTRAINT"):
        # MuJoCo's inverse of the inertia that resists the length in the file's pose; zero if nothing moves it.
        inverse = m.tendon_invweight0[tendon]
        stiffness = STOP_FREQUENCY**2 / inverse if inverse > 0 else 0.0
        numbers |= {"range": m.tendon_range[tendon], "stop_stiffness": stiffness}
    numbers = {name: jnp.asarray(x, float) for name, x in numbers.items()}
    return TendonSpring(length, **numbers) if numbers else None


def _powers(name: str, numbers: np.ndarray) -> dict[str, np.ndarray]:
    return {name: numbers} if np.any(numbers) else {}


def joint_elements(t: Translation) -> tuple[TendonSpring, ...]:
    """Springs and dampers of hinges and slides beside those that the model has: what grows with higher powers."""
    m, found = t.m, []
    for joint in [joint for joint in range(m.njnt) if t.is_screw(joint)]:
        numbers: dict[str, Any] = {}
        if not t.disabled("SPRING"):
            numbers |= _powers("stiffness_powers", m.jnt_stiffnesspoly[joint])
        if not t.disabled("DAMPER"):
            numbers |= _powers("damping_powers", m.dof_dampingpoly[m.jnt_dofadr[joint]])
        if numbers:
            rest = m.qpos_spring[m.jnt_qposadr[joint]]
            numbers = {name: jnp.asarray(x, float) for name, x in (numbers | {"rest_range": [rest, rest]}).items()}
            found.append(TendonSpring(FixedTendon([t.joints[joint]], jnp.ones(1)), **numbers))
    return tuple(found)


def _part(t: Translation, part: int) -> PathPoint | Pulley | WrappedSphere | WrappedCylinder:
    m, kinds = t.m, t.mujoco.mjtWrap
    match int(m.wrap_type[part]):
        case kinds.mjWRAP_PULLEY:
            return Pulley(float(m.wrap_prm[part]))
        case kinds.mjWRAP_SITE:
            return PathPoint(t.sites[m.wrap_objid[part]])
    geom, site = m.wrap_objid[part], int(m.wrap_prm[part])
    where, inside = t.pose(m.geom_pos[geom], m.geom_quat[geom]), _is_inside(t, part)
    kind: Any = WrappedSphere if int(m.wrap_type[part]) == kinds.mjWRAP_SPHERE else WrappedCylinder
    return kind(
        t.bodies[m.geom_bodyid[geom]],
        float(m.geom_size[geom, 0]),
        Transform(jnp.asarray(where.rotation, float), jnp.asarray(where.translation, float)),
        side=PathPoint(t.sites[site]) if site >= 0 and not inside else None,
        inside=inside,
    )


def _is_body(t: Translation, part: int) -> bool:
    kinds = t.mujoco.mjtWrap
    return int(t.m.wrap_type[part]) in (kinds.mjWRAP_SPHERE, kinds.mjWRAP_CYLINDER)


def _is_inside(t: Translation, part: int) -> bool:
    """Tell whether the tendon runs through a body, whose side site is within the body in the file's pose."""
    m, geom, site = t.m, t.m.wrap_objid[part], int(t.m.wrap_prm[part])
    if site < 0:
        return False
    data = t.mujoco.MjData(m)
    t.mujoco.mj_kinematics(m, data)
    return bool(np.linalg.norm(data.site_xpos[site] - data.geom_xpos[geom]) < m.geom_size[geom, 0])
