"""Configurations that MuJoCo files name: the pose of the file and its keyframes."""

import numpy as np

from jdyn.io.mjcf_translation import Translation
from jdyn.model import Free, Model, ModelError
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
    t = translation
    found, problems = {"qpos0": t.m.qpos0}, []
    for number, (attributes, where) in enumerate(t.keyframes):
        name = attributes.get("name") or f"key{number}"
        numbers = _numbers(attributes["qpos"]) if "qpos" in attributes else t.m.qpos0
        if numbers is None or numbers.shape != (t.m.nq,):
            got = attributes["qpos"]
            shown = repr(got if len(got) < 80 else f"{got[:80]}...")
            problems.append(f"{where}: qpos of keyframe {name!r} is {shown}, expected {t.m.nq} finite numbers")
        else:
            found[name] = numbers
    if problems:
        raise ModelError(listed(t.builder.source, "problem", problems))
    return {name: _in_coordinates(t, qpos, model) for name, qpos in found.items()}


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
        t.mujoco.mju_normalize4(q[-4:])
    return q
