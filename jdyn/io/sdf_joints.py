"""Joints of SDF documents: their kinds, axes and numbers, and the constraints that close loops."""

import dataclasses
from typing import Any

import numpy as np

from jdyn.io.sdf_frames import Frames, Place
from jdyn.io.sdf_values import Source, Values
from jdyn.io.xml import Element
from jdyn.model import (
    Ball,
    Connect,
    Constraint,
    Continuous,
    Fixed,
    Helical,
    Hinge,
    Joint,
    Mimic,
    Prismatic,
    Revolute,
    Universal,
    Weld,
)
from jdyn.terminal.messages import short

# A limit of this size means no limit, as in libsdformat.
UNLIMITED = 1e16

_TWO_AXES = ("universal", "revolute2")
KINDS = ("revolute", "continuous", "prismatic", "screw", *_TWO_AXES, "ball", "fixed")
# Joints that jdyn has constraints for.
CLOSING = ("revolute", "continuous", "ball", "fixed")


@dataclasses.dataclass(eq=False)
class Edge:
    """One joint, with the links or the world at its ends."""

    name: str
    kind: str
    element: Element
    source: Source
    place: Place
    parent: str
    child: str


class Joints:
    """Joints in the form that the builder expects.

    Args:
        values: Reads texts.
        frames: Poses of frames.
        names: Name of each joint in the model, by its frame.
    """

    def __init__(self, values: Values, frames: Frames, names: dict[Place, str]):
        self._values, self._builder, self._frames, self._names = values, values.builder, frames, names

    def _axis(self, edge: Edge, axis: Element | None, link: Place, default: tuple[float, ...]) -> np.ndarray:
        """Direction of an axis in the axes of a link."""
        where, xyz = edge.place.where, None if axis is None else axis.first("xyz")
        if axis is None:
            self._builder.problem(
                f"{where}: a {edge.kind} joint needs {'two axes' if edge.kind in _TWO_AXES else 'an axis'}"
            )
            return np.array([1.0, 0.0, 0.0])
        direction = self._values.numbers(where, axis, "xyz", 3, default)
        frame, name = edge.place, None if xyz is None else xyz.attributes.get("expressed_in")
        in_model = edge.source.version < (1, 5)
        if edge.source.version < (1, 7):
            in_model = self._values.flag(where, axis, "use_parent_model_frame", in_model)
        elif axis.first("use_parent_model_frame") is not None:
            self._values.notes.add("ignored, of versions before 1.7", f"<use_parent_model_frame> of {edge.name!r}")
        if name:
            found = edge.place.scope.find(name)
            if found is None:
                self._builder.problem(f"{where}: expressed_in is {short(name)}, which does not exist")
            frame = found or frame
        elif in_model:
            frame = edge.place.scope.place
        return self._frames.between(link, frame).rotation @ direction  # type: ignore[return-value]

    def motion(self, edge: Edge, link: Place) -> tuple[Joint | Fixed, dict]:
        """The joint and its properties, in the form that the builder expects."""
        where, axes = edge.place.where, [edge.element.first("axis"), edge.element.first("axis2")]
        if edge.kind == "fixed":
            return Fixed(), {}
        if edge.kind == "ball":
            if any(axis is not None for axis in axes):
                self._values.notes.add("ignored, no meaning for a ball joint", f"axes of {edge.name!r}")
            return Ball(), {}
        first = self._axis(edge, axes[0], link, (0, 0, 1))
        if edge.kind in _TWO_AXES:
            second = self._axis(edge, axes[1], link, (0, 0, 1))
            each = [self._properties(edge, axis, turns=True) for axis in axes]
            return Universal(first, second), {key: [each[0][key], each[1][key]] for key in each[0]}  # type: ignore[arg-type]
        properties = self._properties(edge, axes[0], turns=edge.kind == "continuous")
        properties["mimic"] = self._mimic(edge, axes[0])
        if edge.kind == "screw":
            pitch = self._values.number(where, edge.element, "screw_thread_pitch", np.nan)
            if np.isnan(pitch):
                # Radians per metre, of left-handed threads, as older versions have it.
                turns = self._values.number(where, edge.element, "thread_pitch", -2 * np.pi)
                if turns == 0:
                    self._builder.problem(f"{where}: <thread_pitch> is 0, expected another number")
                pitch = -2 * np.pi / (turns or 1.0)
            return Helical(first, pitch / (2 * np.pi)), properties  # type: ignore[arg-type]
        kind = {"revolute": Revolute, "continuous": Continuous, "prismatic": Prismatic}[edge.kind]
        return kind(first), properties

    def _properties(self, edge: Edge, axis: Element | None, *, turns: bool) -> dict[str, Any]:
        """Limits, dampers, friction and springs of an axis."""
        where, values = edge.place.where, self._values
        limit, dynamics = (None if axis is None else axis.first(tag) for tag in ("limit", "dynamics"))
        found: dict[str, Any] = {}
        for key, default in (("lower", -np.inf), ("upper", np.inf), ("effort", np.inf), ("velocity", np.inf)):
            value = values.limit(where, limit, key, default)
            if key in ("effort", "velocity"):
                # A negative number means none.
                value = np.inf if value < 0 else value
            found[key] = value if abs(value) < UNLIMITED else float(np.copysign(np.inf, value))
        if turns and edge.kind == "continuous" and np.any(np.isfinite([found["lower"], found["upper"]])):
            values.notes.add("ignored, no meaning for a continuous joint", f"<lower> and <upper> of {edge.name!r}")
            found |= {"lower": -np.inf, "upper": np.inf}
        names = (("damping", "damping"), ("friction", "friction"), ("stiffness", "spring_stiffness"))
        found |= {key: values.number(where, dynamics, tag, 0.0) for key, tag in (*names, ("rest", "spring_reference"))}
        return found

    def _mimic(self, edge: Edge, axis: Element | None) -> Mimic | None:
        mimic = None if axis is None else axis.first("mimic")
        if mimic is None:
            return None
        where, leader = edge.place.where, mimic.attributes.get("joint", "")
        found = edge.place.scope.find(leader)
        if found is None or found not in self._names:
            self._builder.problem(f"{where}: it mimics joint {short(leader)}, which does not exist")
            return None
        ratio, offset, reference = (
            self._values.number(where, mimic, tag, default)
            for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        )
        return Mimic(self._names[found], ratio, offset - ratio * reference)

    def constraint(self, edge: Edge, first: Place, second: Place) -> Constraint:
        """The constraint that a joint is which closes a loop."""
        dynamics = [axis.first(tag) for axis in edge.element.all("axis") for tag in ("limit", "dynamics")]
        if any(part is not None for part in dynamics):
            self._values.notes.add("ignored, of joints that close loops", f"<limit> and <dynamics> of {edge.name!r}")
        frames = edge.parent, edge.child
        points = [self._frames.between(place, edge.place).translation for place in (first, second)]
        if edge.kind == "fixed":
            return Weld(*frames, pose=self._frames.between(first, second))
        if edge.kind == "ball":
            return Connect(*frames, *points)
        axis = edge.element.first("axis")
        axes = [self._axis(edge, axis, place, (0, 0, 1)) for place in (first, second)]
        return Hinge(*frames, *axes, *points)
