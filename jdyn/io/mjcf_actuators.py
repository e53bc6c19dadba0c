"""Actuators of MJCF files."""

import numpy as np

from jdyn.actuators import (
    Activation,
    Actuator,
    AffineActuator,
    Integrator,
    Lag,
    Motor,
    Muscle,
    MuscleActivation,
    PositionServo,
    VelocityServo,
)
from jdyn.io.mjcf_tendons import transmission_of
from jdyn.io.mjcf_translation import Translation
from jdyn.transmissions import Geared, GearedFrame, GearedJoint, SliderCrank, Transmission

# MuJoCo's kinds of what is read, without their prefixes.
GAINS, BIASES = ("FIXED", "AFFINE", "MUSCLE"), ("NONE", "AFFINE", "MUSCLE")
DYNAMICS = ("NONE", "INTEGRATOR", "FILTER", "FILTEREXACT", "MUSCLE")
TRANSMISSIONS = ("JOINT", "JOINTINPARENT", "SLIDERCRANK", "SITE", "TENDON")


def read_actuators(translation: Translation) -> tuple[list[int], list[int]]:
    """Active actuators that are read, and those that are not, by number."""
    active = [i for i in range(translation.m.nactuator) if translation.is_active(i)]
    read = [i for i in active if is_read(translation, i)]
    return read, [i for i in active if i not in read]


def is_read(translation: Translation, i: int) -> bool:
    """Tell whether an actuator is active, and all of it is read."""
    return translation.is_active(i) and not unread_part(translation, i)


def unread_part(translation: Translation, i: int) -> str:
    """The part of an actuator that is not read; empty if all of it is."""
    t, m = translation, translation.m
    kinds = _kinds(t, i)
    for kind, known in zip(kinds, (GAINS, BIASES, DYNAMICS, TRANSMISSIONS), strict=True):
        if kind not in known:
            return kind.lower()
    joint, gear = int(m.actuator_trnid[i, 0]), _gear(t, i)
    if kinds[3] in ("JOINT", "JOINTINPARENT") and _is_free(t, joint):
        if not t.joint_count(m.jnt_bodyid[joint]):
            return "a free joint that is fixed"
        if kinds[3] == "JOINT" and np.any(gear[:3]) and np.any(gear[3:]):
            return "a force along axes of the world with a torque about those of the body"
    if _period(t, i) and m.actuator_biasprm[i, 0]:
        return "a bias beside a set point that repeats"
    if m.actuator_plugin[i] >= 0:
        return "a plugin"
    try:
        _actuator(t, i)
    except ValueError as error:
        return str(error)
    return ""


def actuators(translation: Translation) -> tuple[Actuator, ...]:
    """The actuators of a file that are read, in its order."""
    return tuple(_actuator(translation, i) for i in read_actuators(translation)[0])


def _actuator(t: Translation, i: int) -> Actuator:
    m = t.m
    gain, bias, _, _ = _kinds(t, i)
    g, b = m.actuator_gainprm[i], m.actuator_biasprm[i]
    affine = b[:3] if bias == "AFFINE" else np.zeros(3)
    common = {
        "name": t.name("actuator", i), "command_range": _command_range(t, i), "force_range": _force_range(t, i),
        "activation": _activation(t, i),
    }  # fmt: skip
    transmission = _transmission(t, i)
    if gain == bias == "MUSCLE" and np.array_equal(g, b):
        force = g[2] if g[2] >= 0 else g[3] / m.actuator_acc0[i]
        return Muscle(
            transmission, m.actuator_lengthrange[i], force, operating_range=g[:2], shortest=g[4], longest=g[5],
            fastest=g[6], passive=g[7], eccentric=g[8], **common,
        )  # fmt: skip
    if gain == "FIXED" and not np.any(affine):
        return Motor(transmission, g[0], **common)
    if gain == "FIXED" and np.array_equal(affine[:2], [0, -g[0]]):
        return PositionServo(transmission, g[0], -affine[2], period=_period(t, i) or None, **common)
    if gain == "FIXED" and np.array_equal(affine, [0, 0, -g[0]]):
        return VelocityServo(transmission, g[0], **common)
    gains = g[:3] if gain == "AFFINE" else np.array([g[0], 0, 0])
    return AffineActuator(transmission, gains, affine, **common)


def _kinds(t: Translation, i: int) -> tuple[str, str, str, str]:
    """Kinds of the gain, of the bias, of the dynamics and of the transmission of an actuator."""
    m, mj = t.m, t.mujoco
    numbers = m.actuator_gaintype[i], m.actuator_biastype[i], m.actuator_dyntype[i], m.actuator_trntype[i]
    of_kinds = zip((mj.mjtGain, mj.mjtBias, mj.mjtDyn, mj.mjtTrn), numbers, strict=True)
    return tuple(kind(int(number)).name.split("_", 1)[1] for kind, number in of_kinds)


def _is_ball(t: Translation, joint: int) -> bool:
    return int(t.m.jnt_type[joint]) == t.mujoco.mjtJoint.mjJNT_BALL


def _is_free(t: Translation, joint: int) -> bool:
    return int(t.m.jnt_type[joint]) == t.mujoco.mjtJoint.mjJNT_FREE


def _gear(t: Translation, i: int) -> np.ndarray:
    return t.m.actuator_gear[t.m.actuator_outadr[i]]


def _transmission(t: Translation, i: int) -> Transmission:
    (target, other), gear, kind = t.m.actuator_trnid[i].tolist(), _gear(t, i), _kinds(t, i)[3]
    match kind:
        case "SITE":
            return GearedFrame(t.sites[target], np.roll(gear, 3), reference=t.sites[other] if other >= 0 else None)
        case "SLIDERCRANK":
            slider = SliderCrank(t.sites[target], t.sites[other], t.m.actuator_cranklength[i])
            return slider if gear[0] == 1 else Geared(slider, gear[0])
        case "TENDON":
            tendon = transmission_of(t, target)
            return tendon if gear[0] == 1 else Geared(tendon, gear[0])
    in_parent = kind == "JOINTINPARENT"
    if _is_free(t, target):
        # MuJoCo pushes along axes of the world, and turns about those of the body.
        return GearedJoint(t.joints[target], np.roll(gear, 3), in_parent=in_parent or not np.any(gear[3:]))
    if _is_ball(t, target):
        return GearedJoint(t.joints[target], gear[:3], in_parent=in_parent)
    return GearedJoint(t.joints[target], gear[0])


def _period(t: Translation, i: int) -> float:
    """Turn after which the length of a servo is the same again, with the nearest one of its set points; zero if it has
    none."""
    m, gear, (target, other) = t.m, _gear(t, i), t.m.actuator_trnid[i].tolist()
    gain, bias, dynamics, transmission = _kinds(t, i)
    holds = gain == "FIXED" and bias == "AFFINE" and m.actuator_gainprm[i, 0] == -m.actuator_biasprm[i, 1]
    if not holds or dynamics not in ("NONE", "INTEGRATOR"):
        return 0.0
    if transmission == "SITE" and other >= 0 and not np.any(gear[:3]):
        return 2 * np.pi * float(np.linalg.norm(gear[3:]))
    turns = transmission in ("JOINT", "JOINTINPARENT") and _is_ball(t, target)
    return 2 * np.pi * float(np.linalg.norm(gear[:3])) if turns else 0.0


def _command_range(t: Translation, i: int) -> np.ndarray | None:
    control = t.m.actuator_ctrladr[i]
    limited = t.m.actuator_ctrllimited[control] and not t.disabled("CLAMPCTRL")
    return t.m.actuator_ctrlrange[control] if limited else None


def _force_range(t: Translation, i: int) -> np.ndarray | None:
    """Limits of the force: its own, and those of the joint, if it alone acts on that. MuJoCo's sensors show the force
    without those of the joint."""
    m, gear = t.m, t.m.actuator_gear[t.m.actuator_outadr[i], 0]
    own = m.actuator_forcerange[i] if m.actuator_forcelimited[i] else None
    if not limits_of_joint(t, i) or gear == 0:
        return own
    of_joint = np.sort(m.jnt_actfrcrange[m.actuator_trnid[i, 0]] / gear)
    return of_joint if own is None else np.clip(of_joint, *own)


def limits_of_joint(t: Translation, i: int) -> bool:
    """Tell whether the joint of an actuator limits the force of all actuators, of which this is the only one."""
    m, joint = t.m, int(t.m.actuator_trnid[i, 0])
    if not (t.moves_screw(i) and m.jnt_actfrclimited[joint]):
        return False
    return [other for other in range(m.nactuator) if t.is_active(other) and _may_move(t, other, joint)] == [i]


def _may_move(t: Translation, i: int, joint: int) -> bool:
    """Tell whether an actuator may act on a joint; those of tendons are not looked at."""
    m, target = t.m, int(t.m.actuator_trnid[i, 0])
    kind = _kinds(t, i)[3]
    if kind in ("JOINT", "JOINTINPARENT"):
        return target == joint
    if kind != "SITE":
        return True
    body = m.site_bodyid[target]
    while body not in (0, m.jnt_bodyid[joint]):
        body = m.body_parentid[body]
    return body != 0


def _activation(t: Translation, i: int) -> Activation | None:
    m, prm = t.m, t.m.actuator_dynprm[i]
    limits = {"range": m.actuator_actrange[i] if m.actuator_actlimited[i] else None}
    match _kinds(t, i)[2]:
        case "NONE":
            return None
        case "INTEGRATOR":
            return Integrator(**limits)
        case "MUSCLE":
            return MuscleActivation(prm[0], prm[1], prm[2], **limits)
        case _:
            return Lag(prm[0], **limits)
