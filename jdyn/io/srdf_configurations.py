"""Configurations that SRDF files name: the states of groups of joints.

Source: MoveIt's SRDF, wiki.ros.org/srdf; what stands for a base that floats as in Pinocchio.
"""

import collections
import os
import warnings

import jax
import numpy as np
from jaxtyping import Array, Float

from jdyn.io.srdf import document
from jdyn.io.xml import Element
from jdyn.model import Free, Model, ModelError, ModelWarning
from jdyn.terminal.messages import enumerated, listed


def load_srdf_configurations(model: Model, source: str | os.PathLike) -> dict[str, Float[Array, " nq"]]:
    """The configurations that an SRDF file names, `<group_state>`, in the coordinates of a model.

    Joints that a state leaves out are where `model.neutral()` has them. Quaternions are x, y, z, w in the file. A free
    base is where the file puts `root_joint`, or a `<virtual_joint>` of the link that floats.

    Args:
        model: The robot.
        source: Path of an SRDF file, or its text.

    Returns:
        Each configuration by the name of its state; by `group/state` where several states have that name.

    Raises:
        ModelError: naming the file and every value that is not a number.

    Warns:
        ModelWarning: once, naming what is ignored: joints that the model lacks, and values that are not of their kind.
    """
    root, label = document(source)
    reader = _Reader(root, model)
    found = {name: reader.configuration(state) for name, state in _named(root.all("group_state")).items()}
    if reader.problems:
        raise ModelError(listed(label, "problem", reader.problems))
    messages = [f"{what}: {enumerated([*names])}" for what, names in reader.notes.items()]
    if messages:
        warnings.warn(listed(label, "warning", messages), ModelWarning, stacklevel=3)
    return {name: jax.device_put(np.asarray(q, model.dtype)) for name, q in found.items()}


def _named(states: list[Element]) -> dict[str, Element]:
    """States by their names; of two of one name and one group, the last one, as in Pinocchio."""
    alone = {(state.attributes.get("group", ""), state.attributes.get("name", "")): state for state in states}
    counts = collections.Counter(name for _, name in alone)
    return {name if counts[name] == 1 else f"{group}/{name}": state for (group, name), state in alone.items()}


class _Reader:
    """Reads states of the joints of a model."""

    def __init__(self, root: Element, model: Model):
        self.problems: list[str] = []
        self.notes: dict[str, dict[str, None]] = {}
        self._model = model
        self._neutral = np.asarray(model.expand(model.neutral()), float)
        self._joints = {name: body for body, name in enumerate(model.joint_names)}
        free = {model.body_names[body]: body for body, kind in enumerate(model.topology.kinds) if kind is Free}
        for virtual in root.all("virtual_joint"):
            if (link := virtual.attributes.get("child_link")) in free:
                self._joints.setdefault(virtual.attributes.get("name", ""), free[link])
        # A base that is fixed has no coordinates to be set.
        self._silent = {"root_joint", *(virtual.attributes.get("name") for virtual in root.all("virtual_joint"))}

    def configuration(self, state: Element) -> np.ndarray:
        """The configuration of the model in a state."""
        full = self._neutral.copy()
        for joint in state.all("joint"):
            self._set(full, joint)
        return full[list(self._model.topology.independent_q)]

    def _set(self, full: np.ndarray, joint: Element):
        name, text = joint.attributes.get("name", ""), joint.attributes.get("value", "")
        try:
            numbers = np.array(text.split(), float)
        except ValueError:
            numbers = np.array([np.nan])
        if not np.all(np.isfinite(numbers)):
            self.problems.append(f"<joint> (line {joint.line}): the value of {name!r} is {text!r}, expected numbers")
        elif name not in self._joints:
            if name not in self._silent:
                self._note("ignored, joints that the robot lacks", name)
        else:
            self._set_coordinates(full, self._joints[name], name, numbers)

    def _set_coordinates(self, full: np.ndarray, body: int, name: str, numbers: np.ndarray):
        kind, where = self._model.topology.kinds[body], self._model.topology.q_slice(body)
        if len(numbers) != kind.nq:
            self._note("ignored, values that are not of their joint's kind", f"{name} ({len(numbers)} for {kind.nq})")
        elif kind.nq == kind.nv:
            full[where] = numbers
        elif not np.any(numbers[-4:]):
            self._note("ignored, quaternions that are zero", name)
        else:
            quaternion = np.roll(numbers[-4:], 1)
            full[where] = [*numbers[:-4], *(quaternion / np.linalg.norm(quaternion))]

    def _note(self, what: str, name: str):
        self.notes.setdefault(what, {})[name] = None
