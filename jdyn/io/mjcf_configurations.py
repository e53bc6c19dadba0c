"""Poses that MuJoCo files name, of the file itself and of keyframes: configurations, and those of mocap bodies."""

import numpy as np

from jdyn.io.mjcf_translation import Translation
from jdyn.model import Free, Model, ModelError
from jdyn.spatial import Transform
from jdyn.terminal.messages import listed


def configurations(translation: Translation, model: Model) -> dict[str, np.ndarray]:
    """Each configuration in the coordinates of a model, `qpos0` first.

    Args:
        translation: The file.
        model: What `load_mjcf` makes of it, with any base.

    Raises:
        ModelError: naming every keyframe that is not a configuration.
        ValueError: if the model has joints that the file lacks.
    """
    found = _by_keyframe(translation, {"qpos": translation.m.qpos0})
    return {name: _in_coordinates(translation, qpos, model) for name, (qpos,) in found.items()}


def mocap_poses(translation: Translation) -> dict[str, dict[str, Transform]]:
    """Pose of each mocap body by its name, in the pose of the file, `qpos0`, and in each keyframe.

    Raises:
        ModelError: naming every keyframe that has no poses of mocap bodies.
    """
    t = translation
    bodies = [int(body) for number in range(t.m.nmocap) for body in np.flatnonzero(t.m.body_mocapid == number)]
    start = {"mpos": t.m.body_pos[bodies].ravel(), "mquat": t.m.body_quat[bodies].ravel()}
    found = {}
    for name, (positions, quaternions) in _by_keyframe(t, start).items():
        rows = zip(bodies, positions.reshape(-1, 3), quaternions.reshape(-1, 4), strict=True)
        found[name] = {t.bodies[body]: t.pose(position, _unit(t, quaternion)) for body, position, quaternion in rows}
    return found


def _by_keyframe(t: Translation, start: dict[str, np.ndarray]) -> dict[str, list[np.ndarray]]:
    """Numbers of some attributes at the start, `qpos0`, and in each keyframe; what it does not say is as at the
    start."""
    found, problems = {"qpos0": list(start.values())}, []
    for number, (attributes, where) in enumerate(t.keyframes):
        name = attributes.get("name") or f"key{number}"
        found[name] = []
        for key, there in start.items():
            numbers = _numbers(attributes[key]) if key in attributes else there
            if numbers is not None and numbers.shape == there.shape:
                found[name].append(numbers)
                continue
            got = attributes[key]
            shown = repr(got if len(got) < 80 else f"{got[:80]}...")
            problems.append(f"{where}: {key} of keyframe {name!r} is {shown}, expected {there.size} finite numbers")
    if problems:
        raise ModelError(listed(t.builder.source, "problem", problems))
    return found


def _numbers(text: str) -> np.ndarray | None:
    """The numbers of an attribute, if all of its words are finite ones."""
    try:
        numbers = np.array(text.split(), float)
    except ValueError:
        return None
    return numbers if np.all(np.isfinite(numbers)) else None


def _in_coordinates(t: Translation, qpos: np.ndarray, model: Model) -> np.ndarray:
    full = [_of_joint(t, qpos, model, body) for body in range(model.nb)]
    return np.concatenate([np.zeros(0), *full])[list(model.topology.independent_q)]


def _of_joint(t: Translation, qpos: np.ndarray, model: Model, body: int) -> np.ndarray:
    """The coordinates of the joint on which a body of the model moves."""
    name, kind = model.joint_names[body], model.topology.kinds[body]
    if name in t.joints:
        start = t.m.jnt_qposadr[t.joints.index(name)]
        q = qpos[start : start + kind.nq].copy()
    elif kind is Free and model.body_names[body] in t.bodies:
        # Freed by `floating_base`: it starts where the file fixes it to the world.
        there = t.bodies.index(model.body_names[body])
        q = np.concatenate([t.m.body_pos[there], t.m.body_quat[there]])
    else:
        raise ValueError(f"{t.builder.source}: model {model.name!r} has a joint {name!r}, which the file lacks")
    if kind.nq != kind.nv:
        q[-4:] = _unit(t, q[-4:])
    return q


def _unit(t: Translation, quaternion: np.ndarray) -> np.ndarray:
    quaternion = quaternion.copy()
    t.mujoco.mju_normalize4(quaternion)
    return quaternion
