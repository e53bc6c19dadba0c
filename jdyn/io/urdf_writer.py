"""Models to URDF files."""

import os
import pathlib
import re
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from jdyn.io.urdf import SIZES, planar_x, unused
from jdyn.model import Continuous, Free, Joint, Model, ModelWarning, Planar, Prismatic, Revolute, Shape, checked
from jdyn.model.build import FRICTION_SPEED
from jdyn.model.inertial import central_inertia
from jdyn.model.shapes import counted
from jdyn.model.vary import joint_geometry, joint_numbers
from jdyn.terminal.messages import enumerated

_TYPES: dict[type[Joint], str] = {
    Revolute: "revolute",
    Continuous: "continuous",
    Prismatic: "prismatic",
    Planar: "planar",
    Free: "floating",
}
_ONE_DOF = (Revolute, Continuous, Prismatic)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def save_urdf(model: Model, path: str | os.PathLike) -> None:
    """Write a model as a URDF file that `load_urdf` reads back to the same model.

    Bodies keep their names, frames and order. A link `world` represents the world, frames become links fixed to their
    bodies, and infinite limits are written as the largest double. Shapes keep their links, names and colours; the paths
    of mesh files below the URDF file's folder are relative to it.

    >>> jdyn.save_urdf(jdyn.load("double_pendulum"), "arm.urdf")
    >>> jdyn.load("arm.urdf").body_names
    ('link1', 'link2')

    Args:
        model: A model with concrete (not traced) leaves.
        path: File to write; an existing one is replaced.

    Raises:
        ValueError: if URDF cannot represent the kind of a joint, or a name.

    Warns:
        ModelWarning: once, naming everything that is left out because URDF cannot represent it.
    """
    checked(model)
    path = pathlib.Path(path)
    _check(model)
    host = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=float), model)
    lost, robot = _lost(host), _robot(host, path.absolute().parent)
    ET.indent(robot)
    ET.ElementTree(robot).write(path, encoding="utf-8", xml_declaration=True)
    if lost:
        warnings.warn(f"{path}: URDF cannot represent {'; '.join(lost)}", ModelWarning, stacklevel=2)


def roll_pitch_yaw(rotation: ArrayLike) -> tuple[float, float, float]:
    """Angles [rad] with R = Rz(yaw) Ry(pitch) Rx(roll).

    Roll is computed from Rz(-yaw) R, which is well conditioned even at a pitch of ±90°, where roll and yaw turn about
    the same axis.
    """
    R = np.asarray(rotation)
    yaw = np.arctan2(R[1, 0], R[0, 0])
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    s, c = np.sin(yaw), np.cos(yaw)
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return float(roll), float(pitch), float(yaw)


def _check(model: Model):
    topology = model.topology
    unfit = [
        f"{name!r} ({kind.__name__})"
        for name, kind in zip(topology.joint_names, topology.kinds, strict=True)
        if kind not in _TYPES
    ]
    if unfit:
        raise ValueError(
            f"URDF has no joint type for {enumerated(unfit)}; replace them by chains of revolute and prismatic joints"
        )
    of_shapes = [text for entry in _entries(model) for text in (entry.name, entry.path or entry.name)]
    names = (model.name, *topology.body_names, *topology.joint_names, *topology.frame_names, *of_shapes)
    if bad := [name for name in names if not name.strip() or _NOT_XML.search(name)]:
        raise ValueError(f"URDF cannot represent the names {enumerated([*map(repr, bad)])}; rename them")
    if "world" in (*topology.body_names, *topology.frame_names):
        raise ValueError("in a URDF file 'world' is the fixed world; give the body or frame of that name another one")


# What the file leaves out.


def _lost(model: Model) -> list[str]:
    """Everything that URDF cannot represent, in words."""
    lost: dict[str, list[str]] = {}
    for body, name in enumerate(model.joint_names):
        for what in _lost_of_joint(model, body):
            lost.setdefault(what, []).append(repr(name))
    for entry in _entries(model):
        if not _written(entry):
            what = "meshes without a file" if entry.kind == "mesh" else f"{entry.kind} shapes"
            lost.setdefault(what, []).append(repr(entry.link))
    for row, entry in enumerate(_entries(model)):
        for what in _lost_of_contact(model.shapes, row) if entry.role == "collision" else ():
            lost.setdefault(what, []).append(repr(entry.link))
    gravity = [] if np.allclose(model.gravity, (0, 0, -9.81), atol=1e-6) else [f"gravity {model.gravity.tolist()}"]
    return gravity + [f"{what} of {enumerated([*dict.fromkeys(names)])}" for what, names in lost.items()]


def _entries(model: Model) -> tuple[Shape, ...]:
    return () if model.shapes is None else model.shapes.entries


def _written(entry: Shape) -> bool:
    """Tell whether URDF has such a shape."""
    return entry.path is not None if entry.kind == "mesh" else entry.kind in SIZES


def _lost_of_contact(shapes: Any, row: int) -> Iterator[str]:
    entry, default = shapes.entries[row], Shape._field_defaults
    # Those that count in contacts of such shapes.
    coefficients = np.where(counted(entry.condim), shapes.friction[row], 0)
    if not np.array_equal(coefficients, (1, 0, 0)):
        yield "contact friction"
    if entry.priority != default["priority"]:
        yield "priority of contact friction"
    if shapes.margins is not None and shapes.margins[row] != 0:
        yield "contact margin"
    if any(getattr(entry, key) != default[key] for key in ("contype", "conaffinity")):
        yield "contype and conaffinity"
    if any(entry.link in pair for pair in shapes.excluded):
        yield "excluded pairs"
    if any(entry.name in pair for pair in shapes.included):
        yield "included pairs"


def _lost_of_joint(model: Model, body: int) -> Iterator[str]:
    kind, values = model.topology.kinds[body], joint_numbers(model, body)
    neutral = np.eye(7)[3] if kind is Free else np.zeros(kind.nq)
    for key in ("armature", "stiffness"):
        if np.any(values[key]):
            yield key
    if not np.allclose(values["rest"], neutral, rtol=0, atol=1e-12):
        yield "the rest position"
    if not np.allclose(values["friction_speed"], FRICTION_SPEED, atol=0):
        yield "friction_speed"
    if kind not in _ONE_DOF and (np.any(values["damping"]) or np.any(values["friction"])):
        yield "damping and friction"
    bounds = {Revolute: (), Prismatic: (), Continuous: ("lower", "upper")}
    if any(np.any(np.isfinite(values[key])) for key in bounds.get(kind, ("lower", "upper", "velocity", "effort"))):
        yield "limits"
    if kind is Planar:
        plane = joint_geometry(model, body)
        x = planar_x(plane["normal"])
        x = x - (plane["normal"] @ x) * plane["normal"]
        if np.linalg.norm(plane["x"] - x / np.linalg.norm(x)) > 1e-6:
            yield "the direction of the first coordinate"


# The document.


def _robot(model: Model, folder: pathlib.Path) -> ET.Element:
    topology = model.topology
    robot = ET.Element("robot", name=model.name)
    if any(entry.kind == "capsule" for entry in _entries(model)):
        robot.set("version", "1.1")
    names = ("world", *topology.body_names)
    everything = (*names, *topology.frame_names)
    # The reader collects shapes link by link, so links with shapes come first, in the order of their shapes.
    shaped = [entry.link for entry in _entries(model)]
    links = {name: ET.SubElement(robot, "link", name=name) for name in dict.fromkeys((*shaped, *everything))}
    for body, name in enumerate(topology.body_names):
        _add_inertial(links[name], *(leaf[body] for leaf in jax.tree.leaves(model.inertias)))
    for row, entry in enumerate(_entries(model)):
        if _written(entry):
            _add_shape(links[entry.link], model, row, folder)
    for body, name in enumerate(topology.body_names):
        joint = _add_joint(
            robot, topology.joint_names[body], _TYPES[topology.kinds[body]], names[topology.parents[body] + 1], name
        )
        _add_origin(joint, model.placements.rotation[body], model.placements.translation[body])
        _describe_joint(joint, model, body)
    taken = set(topology.joint_names)
    for frame, (name, body) in enumerate(zip(topology.frame_names, topology.frame_bodies, strict=True)):
        joint_name = unused(f"{name}_fixed", taken)
        taken.add(joint_name)
        joint = _add_joint(robot, joint_name, "fixed", names[body + 1], name)
        _add_origin(joint, model.frames.rotation[frame], model.frames.translation[frame])
    return robot


def _add_joint(robot: ET.Element, name: str, kind: str, parent: str, child: str) -> ET.Element:
    joint = ET.SubElement(robot, "joint", name=name, type=kind)
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    return joint


def _describe_joint(joint: ET.Element, model: Model, body: int):
    """Add axis, limits, dynamics and mimic to a moving joint."""
    topology, kind, values = model.topology, model.topology.kinds[body], joint_numbers(model, body)
    directions = joint_geometry(model, body)
    if kind is not Free:
        ET.SubElement(joint, "axis", xyz=_text(directions["normal" if kind is Planar else "axis"]))
    if kind in _ONE_DOF:
        keys = ("effort", "velocity") if kind is Continuous else ("lower", "upper", "effort", "velocity")
        ET.SubElement(joint, "limit", {key: _text(values[key]) for key in keys})
        if values["damping"] or values["friction"]:
            ET.SubElement(joint, "dynamics", {key: _text(values[key]) for key in ("damping", "friction")})
    for number, (follower, leader) in enumerate(topology.mimics):
        if follower == body:
            ratio, offset = _text(model.mimic_ratio[number]), _text(model.mimic_offset[number])
            ET.SubElement(joint, "mimic", joint=topology.joint_names[leader], multiplier=ratio, offset=offset)


def _add_inertial(link: ET.Element, mass: np.ndarray, first_moment: np.ndarray, rotational: np.ndarray):
    if not (mass or np.any(first_moment) or np.any(rotational)):
        return
    com, moments = central_inertia(float(mass), first_moment, rotational)
    inertial = ET.SubElement(link, "inertial")
    _add_origin(inertial, np.eye(3), com)
    ET.SubElement(inertial, "mass", value=_text(mass))
    entries = ((a, b) for a in range(3) for b in range(a, 3))
    ET.SubElement(inertial, "inertia", {f"i{'xyz'[a]}{'xyz'[b]}": _text(moments[a, b]) for a, b in entries})


def _add_origin(element: ET.Element, rotation: ArrayLike, translation: ArrayLike):
    ET.SubElement(element, "origin", xyz=_text(translation), rpy=_text(roll_pitch_yaw(rotation)))


def _add_shape(link: ET.Element, model: Model, row: int, folder: pathlib.Path):
    shapes: Any = model.shapes
    entry = shapes.entries[row]
    element = ET.SubElement(link, entry.role, name=entry.name)
    rotation, translation = shapes.placements.rotation[row], shapes.placements.translation[row]
    if entry.link in model.frame_names:
        # From the body's frame to the link's.
        frame = model.frame_names.index(entry.link)
        to_link = model.frames.rotation[frame].T
        rotation, translation = to_link @ rotation, to_link @ (translation - model.frames.translation[frame])
    _add_origin(element, rotation, translation)
    shape = ET.SubElement(ET.SubElement(element, "geometry"), entry.kind)
    if entry.path is not None:
        path = pathlib.Path(entry.path)
        shape.set("filename", str(path.relative_to(folder)) if path.is_relative_to(folder) else entry.path)
    start = 0
    for key, count, _ in SIZES[entry.kind]:
        shape.set(key, _text(shapes.sizes[row, start : start + count]))
        start += count
    if entry.color is not None:
        rgba = _text(entry.color)
        # Readers look materials up by their names, so that one name has to be one colour.
        material = ET.SubElement(element, "material", name=f"rgba {rgba}")
        ET.SubElement(material, "color", rgba=rgba)


def _text(numbers: ArrayLike) -> str:
    """Numbers that read back exactly; infinity becomes the largest double."""
    largest = sys.float_info.max
    return " ".join(repr(x) for x in np.clip(np.ravel(numbers), -largest, largest).tolist())
