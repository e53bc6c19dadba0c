"""Messages about features that MuJoCo simulates and jdyn ignores."""

from collections.abc import Iterable

import numpy as np

from jdyn.io.mjcf_actuators import limits_of_joint, read_actuators, unread_part
from jdyn.io.mjcf_constraints import SOLIMP, SOLREF, is_scaled, is_soft, mocap_of, open_equalities
from jdyn.io.mjcf_elements import without_passive_forces
from jdyn.io.mjcf_sensors import sensor_names, untranslated_sensors
from jdyn.io.mjcf_tendons import side_in_motion
from jdyn.io.mjcf_translation import Translation


def ignored(translation: Translation) -> list[str]:
    """One message for each part of the file that would change the motion in MuJoCo and has no effect on a model."""
    unread = untranslated_sensors(translation)
    read = [name for name in sensor_names(translation) if name not in unread]
    return [
        *_equalities(translation),
        *_tendons(translation),
        *_actuators(translation),
        *_forces(translation),
        *_ignored_anywhere(translation),
        *_nonlinear(translation, range(translation.m.njnt), "; jdyn.load_system has that of hinges and slides"),
        *_some("motion of mocap bodies", _names_of_mocap(translation, range(translation.m.nbody))),
        *_some("sensors", read, "; jdyn.load_system reads them"),
    ]


def ignored_in_scene(translation: Translation) -> list[str]:
    """The same for a model with contact, joint limits, constraints, tendons and actuators."""
    return [
        *ignored_in_constraints(translation),
        *_ignored_of_tendons(translation),
        *_unread_actuators(translation),
        *_ignored_anywhere(translation),
        *_nonlinear(translation, [j for j in range(translation.m.njnt) if not translation.is_screw(j)]),
        *_mocap(translation),
        *_some("velocities and commands of keyframes", _keyframes_of_more(translation), ", of which poses are read"),
    ]


def _keyframes_of_more(t: Translation) -> list[str]:
    """Names of keyframes that say more than poses."""
    numbered = enumerate(attributes for attributes, _ in t.keyframes)
    return [each.get("name") or f"key{k}" for k, each in numbered if {"qvel", "ctrl", "act"} & {*each}]


def _ignored_anywhere(translation):
    parts = (_contacts, _free_joints, _others)
    return [message for part in parts for message in part(translation)]


def on_demand(translation: Translation) -> list[str]:
    """One message for each part of the file that `simulate` has only if it is told."""
    t = translation
    bodies = dict.fromkeys(t.bodies[t.m.geom_bodyid[geom]] for geom in _touching(t))
    stopping = (t.joints[j] for j in _limited(t))
    return [
        *_some("contacts of bodies", bodies, ": jdyn.simulate(..., contact=...), or --contact of commands"),
        *_some("stops of joints", stopping, ": jdyn.simulate(..., joint_limits=...); commands without --no-limits"),
    ]


def ignored_in_constraints(translation: Translation) -> list[str]:
    """One message for each way in which equalities act in MuJoCo and constraints in jdyn do not."""
    t = translation
    translated, others = open_equalities(t)
    soften = (t.name("equality", i) for i in translated if is_soft(t, i))
    weigh = (t.name("equality", i) for i in translated if is_scaled(t, i))
    return [
        *_untranslated(t, others),
        *_some("softness (solref, solimp) of equality constraints", soften, ", which are rigid here"),
        *_some("torquescale of equality constraints", weigh, ", which are rigid here"),
    ]


def _some(what: str, names: Iterable[str], why: str = "") -> list[str]:
    """`what`, the first few names and `why` in one message; no message if there are no names."""
    listed = list(names)
    more = f", and {len(listed) - 5} more" if len(listed) > 5 else ""
    return [f"{what} {', '.join(listed[:5])}{more}{why}"] if listed else []


def _where(condition) -> list[int]:
    return np.flatnonzero(condition).tolist()


def _touching(t: Translation) -> list[int]:
    """Geoms that may touch others."""
    return [] if t.disabled("CONTACT", "CONSTRAINT") else _where(np.any(t.pairs.touching, axis=1))


def _contacts(t: Translation) -> list[str]:
    geoms = _touching(t)
    if not geoms:
        return []
    unlike = ("gap", "surfacevel", "adhesion")
    negative = (t.name("geom", geom) for geom in geoms if t.m.geom_margin[geom] < 0)
    overridden = t.m.opt.enableflags & t.mujoco.mjtEnableBit.mjENBL_OVERRIDE
    return [
        *(message for key in unlike for message in _of_geoms(t, key, 0, geoms)),
        *_some("negative margins of contacts of geoms", negative),
        *_some("override of contacts:", ["o_margin", "o_solref", "o_solimp", "o_friction"] if overridden else []),
        *_of_geoms(t, "solmix", 1, geoms),
        *_of_geoms(t, "solref", SOLREF, geoms),
        *_of_geoms(t, "solimp", SOLIMP, geoms),
        *_some("properties of contact pairs", (t.name("pair", pair) for pair in _peculiar_pairs(t))),
    ]


def _of_geoms(t: Translation, key: str, default: float | np.ndarray, geoms: list[int]) -> list[str]:
    """One message if some of the geoms have an attribute that is not the default."""
    values = getattr(t.m, f"geom_{key}")
    others = np.any((values if values.ndim == 2 else values[:, None]) != default, axis=1)
    return _some(f"{key} of contacts of geoms", (t.name("geom", geom) for geom in geoms if others[geom]))


def _peculiar_pairs(t: Translation) -> list[int]:
    """Pairs that state more than friction."""
    m = t.m
    margins = np.maximum(m.geom_margin, 0)
    as_others = (
        (m.pair_margin == margins[m.pair_geom1] + margins[m.pair_geom2])
        & (m.pair_gap == 0)
        & (m.pair_adhesion == 0)
        & np.all(m.pair_solref == SOLREF, axis=1)
        & np.all(m.pair_solreffriction == 0, axis=1)
        & np.all(m.pair_solimp == SOLIMP, axis=1)
    )
    return _where(~as_others)


def _limited(t: Translation) -> list[int]:
    """Joints that stop."""
    return [] if t.disabled("LIMIT", "CONSTRAINT") else _where(t.m.jnt_limited)


def _equalities(t: Translation) -> list[str]:
    translated, others = open_equalities(t)
    how = "; jdyn.load_constraints reads them, for jdyn.simulate(..., constraints=...)"
    return [*_some("equality constraints", _of_kinds(t, translated), how), *_untranslated(t, others)]


def _untranslated(t: Translation, equalities: list[int]) -> list[str]:
    return _some("equality constraints", _of_kinds(t, equalities))


def _of_kinds(t: Translation, equalities: list[int]) -> list[str]:
    """Names and kinds of equalities."""
    kinds = {int(kind): name.removeprefix("mjEQ_").lower() for name, kind in t.mujoco.mjtEq.__members__.items()}
    return [f"{t.name('equality', i)} ({kinds[int(t.m.eq_type[i])]})" for i in equalities]


def _tendons(t: Translation) -> list[str]:
    return _some("tendons", (t.name("tendon", i) for i in range(t.m.ntendon)), "; jdyn.load_system has them")


def _ignored_of_tendons(t: Translation) -> list[str]:
    """One message for each part of tendons that acts in MuJoCo and not here."""
    m = t.m
    moving = [i for i in range(m.ntendon) if side_in_motion(t, i)]
    kinds = {
        "actuatorfrcrange of tendons": m.tendon_actfrclimited,
        "plastic yield of tendons": m.tendon_springyield,
    }
    return [
        *(message for kind, x in kinds.items() for message in _some(kind, (t.name("tendon", i) for i in _where(x)))),
        *_some("motion of side sites within bodies that carry tendons", (t.name("tendon", i) for i in moving)),
    ]


def _actuators(t: Translation) -> list[str]:
    read, others = ([i for i in which if i not in t.plain_motors] for which in read_actuators(t))
    how = "; jdyn.load_system reads them"
    return [
        *_some("actuators that are not plain motors", (t.name("actuator", i) for i in read), how),
        *_some("actuators", _with_reasons(t, others)),
        *_loads(t),
    ]


def _with_reasons(t: Translation, actuators: list[int]) -> list[str]:
    """Names of actuators that are not read, each with the part of it that is not."""
    return [f"{t.name('actuator', i)} ({unread_part(t, i)})" for i in actuators]


def _unread_actuators(t: Translation) -> list[str]:
    m, (read, others) = t.m, read_actuators(t)
    early = (t.name("actuator", i) for i in read if m.actuator_actearly[i])
    late = (t.name("actuator", i) for i in read if m.actuator_delay[i])
    limited = {int(m.actuator_trnid[i, 0]) for i in read if limits_of_joint(t, i)}
    shared = (t.joints[j] for j in _where(m.jnt_actfrclimited) if j not in limited)
    return [
        *_some("actuators", _with_reasons(t, others)),
        *_some("actearly of actuators", early),
        *_some(
            "delay of actuators",
            late,
            f"; jdyn.control.ZeroOrderHold(..., {_delays(t, read)}) delays commands so, jdyn.actuators.Delay nearly",
        ),
        *_some("limits of the force of all actuators of joints", shared),
        *_loads(t),
    ]


def _delays(t: Translation, read: list[int]) -> str:
    """Period and delay of a controller that holds commands, with which those of some actuators act when they do in
    MuJoCo."""
    m, step = t.m, float(t.m.opt.timestep)
    # Up to rounding. As if histories had samples enough.
    periods = np.ceil(m.actuator_delay[read] / step * (1 - 1e-9)).astype(int)
    periods = periods.repeat(m.actuator_ctrlnum[read]).tolist()
    return f"period={step:g}, delay={periods[0] if len(set(periods)) == 1 else tuple(periods)}"


def _loads(t: Translation) -> list[str]:
    """Armature and damping of actuators that no joint of the model has."""
    m = t.m
    loaded = (m.actuator_armature != 0) | (m.actuator_damping != 0) | np.any(m.actuator_dampingpoly != 0, axis=1)
    unheeded = [i for i in _where(loaded) if not t.moves_screw(i) or np.any(m.actuator_dampingpoly[i])]
    return _some("armature and damping of actuators", (t.name("actuator", i) for i in unheeded))


def _forces(t: Translation) -> list[str]:
    if without_passive_forces(t):
        return []
    m = t.m
    compensated = [] if t.disabled("GRAVITY") else _where(m.body_gravcomp)
    fluid = [name for name in ("density", "viscosity") if getattr(m.opt, name)]
    wind = ["wind"] if fluid and np.any(m.opt.wind) else []
    how = "; jdyn.load_system has them"
    return [
        *_some("gravity compensation of bodies", (t.bodies[body] for body in compensated), how),
        *_some("forces of the medium:", [*fluid, *wind], how),
    ]


def _nonlinear(t: Translation, joints: Iterable[int], how: str = "") -> list[str]:
    """Messages about forces of some joints that are not linear."""
    m, joints = t.m, list(joints)
    dofs = {j: slice(m.jnt_dofadr[j], (*m.jnt_dofadr[1:], m.nv)[j]) for j in joints}
    damped = [] if t.disabled("DAMPER") else [j for j in joints if np.any(m.dof_dampingpoly[dofs[j]])]
    sprung = [] if t.disabled("SPRING") else [j for j in joints if np.any(m.jnt_stiffnesspoly[j])]
    return [
        *_some("nonlinear damping of joints", (t.joints[j] for j in damped), how),
        *_some("nonlinear stiffness of joints", (t.joints[j] for j in sprung), how),
    ]


def _free_joints(t: Translation) -> list[str]:
    """Armature and friction of linear coordinates, which act along world axes in MuJoCo but body axes in jdyn."""
    m = t.m
    free = [j for j in range(m.njnt) if int(m.jnt_type[j]) == t.mujoco.mjtJoint.mjJNT_FREE]
    linear = {j: slice(m.jnt_dofadr[j], m.jnt_dofadr[j] + 3) for j in free}
    loaded = (j for j in free if np.any(m.dof_armature[linear[j]]) or np.any(m.dof_frictionloss[linear[j]]))
    return _some("the world axes of armature or friction loss of free joints", (t.joints[j] for j in loaded))


def _mocap(t: Translation) -> list[str]:
    """One message for each kind of things that move with mocap bodies in MuJoCo, and here do not: all but what
    equalities hold."""
    m, wraps, kinds = t.m, t.mujoco.mjtWrap, t.mujoco.mjtObj
    carriers = {
        kinds.mjOBJ_BODY: range(m.nbody), kinds.mjOBJ_XBODY: range(m.nbody), kinds.mjOBJ_GEOM: m.geom_bodyid,
        kinds.mjOBJ_SITE: m.site_bodyid, kinds.mjOBJ_CAMERA: m.cam_bodyid,
    }  # fmt: skip
    kind_of_wrap = {wraps.mjWRAP_SITE: kinds.mjOBJ_SITE, wraps.mjWRAP_SPHERE: kinds.mjOBJ_GEOM}
    kind_of_wrap[wraps.mjWRAP_CYLINDER] = kinds.mjOBJ_GEOM
    wrapped = [(kind_of_wrap.get(int(kind)), i) for kind, i in zip(m.wrap_type, m.wrap_objid, strict=True)]
    seen = [*zip(m.sensor_objtype, m.sensor_objid, strict=True), *zip(m.sensor_reftype, m.sensor_refid, strict=True)]
    parts = {
        "shapes": [m.geom_bodyid[geom] for geom in _touching(t)],
        "joints": [m.body_parentid[body] for body in _where(m.body_jntnum)],
        "tendons": [carriers[kind][i] for kind, i in wrapped if kind in carriers],
        "sensors": [carriers[int(kind)][i] for kind, i in seen if int(kind) in carriers and i >= 0],
    }
    how = ", which are fixed here: jdyn.constraints.guide moves what equalities hold"
    return [
        message
        for part, bodies in parts.items()
        for message in _some(f"motion of {part} on mocap bodies", _names_of_mocap(t, bodies), how)
    ]


def _names_of_mocap(t: Translation, bodies: Iterable[int]) -> list[str]:
    """Names of the mocap bodies among some bodies, or that carry them, each once."""
    carriers = (mocap_of(t, int(body)) for body in bodies)
    return list(dict.fromkeys(t.bodies[body] for body in carriers if body is not None))


def _others(t: Translation) -> list[str]:
    return [
        *_some("plastic yield of joints", (t.joints[j] for j in _where(t.m.jnt_springyield))),
        *_some("deformable bodies", (t.name("flex", i) for i in range(t.m.nflex))),
        *_some("shapes", (t.name("geom", i) for i in t.shapeless), ": meshes without a file or sheared"),
        *_some("plugins", (t.name("plugin", i) for i in range(t.m.nplugin))),
        *_some("sensors", [*untranslated_sensors(t), *t.unread["sensors"]]),
        *(message for section, names in t.unread.items() if section != "sensors" for message in _some(section, names)),
    ]
