"""Actuators of MJCF files."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jdyn.actuators import (
    Activation,
    Actuator,
    AffineActuator,
    Bristles,
    Cogging,
    DCMotor,
    Integrator,
    Lag,
    Motor,
    Muscle,
    MuscleActivation,
    OrientationServo,
    PIDServo,
    PositionServo,
    SlewLimit,
    VelocityServo,
    Winding,
)
from jdyn.io.mjcf_tendons import transmission_of
from jdyn.io.mjcf_translation import Translation
from jdyn.transmissions import (
    Adhesion,
    BallOrientation,
    FrameOrientation,
    Geared,
    GearedFrame,
    GearedJoint,
    SliderCrank,
    Transmission,
)

# MuJoCo's kinds of what is read, without their prefixes.
GAINS, BIASES = ("FIXED", "AFFINE", "MUSCLE", "DCMOTOR", "PID", "SO3"), ("NONE", "AFFINE", "MUSCLE", "DCMOTOR", "SO3")
DYNAMICS = ("NONE", "INTEGRATOR", "FILTER", "FILTEREXACT", "MUSCLE", "DCMOTOR", "PID")
TRANSMISSIONS = ("JOINT", "JOINTINPARENT", "SLIDERCRANK", "SITE", "TENDON", "SO3", "BODY")


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
    if unread := _unread_servo(t, i):
        return unread
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
    common: dict[str, Any] = {
        "name": t.name("actuator", i), "command_range": _command_range(t, i), "force_range": _force_range(t, i),
    }  # fmt: skip
    transmission = _transmission(t, i)
    if gain == "DCMOTOR":
        return _dc_motor(t, i, transmission, common)
    if gain == "SO3":
        largest = common.pop("force_range")
        how = "quaternion" if m.actuator_ctrlspec[i] == t.mujoco.mjtCtrlChart.mjCHART_QUAT else "vector"
        return OrientationServo(
            transmission, g[0], -b[2], largest=None if largest is None else largest[1], command=how, **common
        )
    if gain == "PID":
        return _servo(t, i, transmission, (-b[1], g[0], -b[2]), m.actuator_dynprm[i, :2], common)
    common["activation"] = _activation(t, i)
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
        case "BODY":
            return Adhesion(t.bodies[target])
        case "TENDON":
            tendon = transmission_of(t, target)
            return tendon if gear[0] == 1 else Geared(tendon, gear[0])
        case "SO3":
            if other >= 0:
                return FrameOrientation(t.sites[target], t.sites[other])
            return BallOrientation(t.joints[target])
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


def _inputs(t: Translation, i: int) -> tuple[str, ...]:
    """Commands of a servo, as `PIDServo` calls them; empty for an actuator that is none."""
    known, spec = t.mujoco.mjtCtrlInput, int(t.m.actuator_ctrlspec[i])
    bits = {"position": known.mjINPUT_POS, "velocity": known.mjINPUT_VEL, "force": known.mjINPUT_FF}
    return tuple(what for what, bit in bits.items() if spec & int(bit))


def _unread_servo(t: Translation, i: int) -> str:
    """The part of a servo, or of a motor by direct current, that is not read."""
    m, (gain, bias, dynamics, transmission) = t.m, _kinds(t, i)
    if "SO3" in (gain, bias, transmission):
        if not gain == bias == transmission:
            return f"a gain {gain.lower()} with a bias {bias.lower()} of {transmission.lower()}"
        if dynamics != "NONE":
            return f"an orientation with a state {dynamics.lower()}"
        return "a constant torque of an orientation" if m.actuator_biasprm[i, 0] else ""
    if not {gain, bias, dynamics} & {"PID", "DCMOTOR"}:
        return ""
    if bias != ("AFFINE" if gain == "PID" else "DCMOTOR") or dynamics not in ("NONE", gain):
        return f"a gain {gain.lower()} with a bias {bias.lower()} and a state {dynamics.lower()}"
    if m.actuator_ctrlnum[i] == 0:
        return "no command"
    if m.actuator_actlimited[i]:
        return "limits of its states"
    prm = m.actuator_dynprm[i]
    if gain == "PID":
        return "a constant force of a servo" if m.actuator_biasprm[i, 0] else ""
    if prm[0] > 0 and prm[2] > 0:
        return "the inductance of a winding that heats"
    return "a slew limit of its voltage" if prm[7] > 0 and not _inputs(t, i) else ""


def _servo(
    t: Translation, i: int, transmission: Transmission, gains: Sequence[float], limits: Sequence[float], common: dict
) -> Actuator:
    """A servo with the gains kp, ki and kd, and limits of its integral and of its slew, where they are positive."""
    (kp, ki, kd), (integral, slew), inputs = gains, limits, _inputs(t, i)
    if inputs == ("position",) and ki == 0 and slew <= 0:
        return PositionServo(transmission, kp, kd, **common)
    return PIDServo(
        transmission, kp, ki, kd, inputs=inputs, derivative="length",
        slew=SlewLimit(slew, time_constant=t.m.opt.timestep) if slew > 0 else None,
        integral_range=(-ki * integral, ki * integral) if ki > 0 and integral > 0 else None,
        **common,
    )  # fmt: skip


def _dc_motor(t: Translation, i: int, transmission: Transmission, common: dict) -> DCMotor:
    g, b, d = t.m.actuator_gainprm[i], t.m.actuator_biasprm[i], t.m.actuator_dynprm[i]
    servo = _servo(t, i, transmission, (g[4], g[5], g[6]), (d[8], d[7]), {}) if _inputs(t, i) else None
    return DCMotor(
        transmission, g[0], g[1], inductance=d[0] * g[0] if d[0] > 0 else None, servo=servo,
        winding=Winding(d[3], d[2], ambient=d[4], coefficient=g[2], reference=g[3]) if d[2] > 0 else None,
        voltage_range=(-g[7], g[7]) if g[7] > 0 else None, current_rate=d[1] if d[1] > 0 else None,
        cogging=Cogging(*b[:3]) if b[0] else None,
        bristles=Bristles(b[3], b[4], b[5], stiffness=d[5], damping=d[6]) if d[5] > 0 else None,
        **common,
    )  # fmt: skip


def _command_range(t: Translation, i: int) -> np.ndarray | None:
    m = t.m
    controls = slice(m.actuator_ctrladr[i], m.actuator_ctrladr[i] + m.actuator_ctrlnum[i])
    limited = m.actuator_ctrllimited[controls].astype(bool)
    if t.disabled("CLAMPCTRL") or not np.any(limited):
        return None
    ranges = np.where(limited[:, None], m.actuator_ctrlrange[controls], (-np.inf, np.inf))
    return ranges if len(ranges) > 1 else ranges[0]


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
    # Cogging and friction of a motor come on top of what its own limits are of.
    if not (t.moves_screw(i) and m.jnt_actfrclimited[joint]) or _kinds(t, i)[0] == "DCMOTOR":
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
