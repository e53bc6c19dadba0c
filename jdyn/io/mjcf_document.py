"""The mechanism of a scene as an MJCF document."""

import os
import pathlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from jdyn.actuators import Motor
from jdyn.io.mjcf_names import Names
from jdyn.io.mjcf_source import MAX_DEPTH
from jdyn.io.notes import Notes
from jdyn.io.scene import Scene
from jdyn.model import (
    WORLD,
    Ball,
    Continuous,
    Free,
    Joint,
    Model,
    Planar,
    Prismatic,
    Revolute,
    Shape,
    Universal,
    pose,
)
from jdyn.model.build import FRICTION_SPEED
from jdyn.model.inertial import central_inertia
from jdyn.model.shapes import by_direction
from jdyn.model.vary import joint_geometry, joint_numbers
from jdyn.spatial import Transform
from jdyn.terminal.messages import enumerated
from jdyn.transmissions import GearedJoint

# MuJoCo refuses bodies that move with less than 1e-15 kg or kg m².
LIGHTEST = 2e-15
# Files of meshes that MuJoCo reads.
_MESHES = (".stl", ".obj", ".msh")
_NO_XML = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Elements around bodies in a document.
_AROUND = 8
_TYPES: dict[type[Joint], tuple[str, ...]] = {
    Revolute: ("hinge",),
    Continuous: ("hinge",),
    Prismatic: ("slide",),
    Universal: ("hinge", "hinge"),
    Planar: ("slide", "slide", "hinge"),
    Ball: ("ball",),
    Free: ("free",),
}


def words(numbers: Any) -> str:
    """Numbers that read back exactly."""
    return " ".join(repr(x) for x in np.ravel(np.asarray(numbers, float)).tolist())


class MjcfDocument:
    """A document with the mechanism of a scene.

    Args:
        scene: Its contents, with leaves of NumPy.
        folder: Folder of the file; paths of meshes below are relative to it.
        limited: Whether joints stop at their limits.
        eps: Rounding of the numbers, relative to them.

    Attributes:
        root: The document.
        model: The mechanism.
        lost: What it leaves out.
        joints: For each body, the names of the joints that move it, one a coordinate unless it is a ball or free.
        light: Names of bodies that have a mass in the file alone.
        geom_names: Names that geoms have or will have.
    """

    def __init__(self, scene: Scene, folder: pathlib.Path, *, limited: bool, eps: float):
        self.model, self.lost, self._folder, self._eps = scene.model, Notes(), folder, eps
        self._check()
        model, topology = self.model, self.model.topology
        self.root = ET.Element("mujoco", model=model.name)
        ET.SubElement(self.root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        self.option = ET.SubElement(self.root, "option", gravity=words(model.gravity))
        off = {"contact": not scene.touches, "limit": not limited}
        if any(off.values()):
            ET.SubElement(self.option, "flag", {key: "disable" for key, is_off in off.items() if is_off})
        self._sections: dict[str, ET.Element] = {}
        self._start = self._starts(scene)
        self._driven = _driven(scene)
        names = topology.joint_names
        self.joints = [
            (name,) if len(_TYPES[kind]) == 1 else tuple(f"{name}[{i}]" for i in range(len(_TYPES[kind])))
            for name, kind in zip(names, topology.kinds, strict=True)
        ]
        self.light: list[str] = []
        entries = () if model.shapes is None else model.shapes.entries
        self.geom_names = Names(*(entry.name for entry in entries if entry.role == "collision"))
        self._elements: dict[str, ET.Element] = {"world": self.section("worldbody")}
        self._sites: dict[str, str] = {}
        self._site_names = Names(*topology.frame_names)
        self._kept = _named_frames(scene)
        self._add_bodies()
        self._add_frames()
        self._add_shapes()
        self._add_mimics()

    def section(self, tag: str) -> ET.Element:
        """A part of the document."""
        if tag not in self._sections:
            self._sections[tag] = ET.SubElement(self.root, tag)
        return self._sections[tag]

    def site(self, frame: str, where: Transform | None = None) -> str:
        """Name of a site: that of a frame, or a new one with a pose in a body or a frame."""
        at = pose() if where is None else where
        still = np.allclose(at.rotation, np.eye(3), rtol=0, atol=0) and not np.any(at.translation)
        if still and frame in self._sites:
            return self._sites[frame]
        name = self._site_names.claim(f"{frame}_site")
        element, X = self.carrier(frame, at)
        _place(ET.SubElement(element, "site", name=name), X)
        if still:
            self._sites[frame] = name
        return name

    def carrier(self, frame: str, where: Transform) -> tuple[ET.Element, Transform]:
        """The element of the body that carries what has a pose in a frame, and the pose in that."""
        if frame in self._elements:
            return self._elements[frame], where
        number = self.model.frame_names.index(frame)
        X = jax.tree.map(lambda x: x[number], self.model.frames) @ where
        return self._elements[self._body_name(self.model.topology.frame_bodies[number])], X

    def have_geoms(self, names: Iterable[str]) -> bool:
        """Tell whether all collision shapes of these names are in the document."""
        found = {geom.get("name") for geom in self.section("worldbody").iter("geom") if geom.get("friction")}
        return set(names) <= found

    def body(self, name: str) -> ET.Element:
        """The element of a body, of a frame with shapes, or of the world."""
        return self._elements[name]

    def order(self) -> list[str]:
        """Names of the model's joints in the order of MuJoCo's coordinates."""
        of = {name: joint for joint, names in zip(self.model.joint_names, self.joints, strict=True) for name in names}
        found = (of[name] for joint in self.section("worldbody").iter("joint") if (name := joint.get("name")))
        return list(dict.fromkeys(found))

    # What is refused.

    def _check(self):
        topology = self.model.topology
        kinds = zip(topology.joint_names, topology.kinds, strict=True)
        if unfit := [f"{name!r} ({kind.__name__})" for name, kind in kinds if kind not in _TYPES]:
            raise ValueError(
                f"MJCF has no joint type for {enumerated(unfit)}; replace them by chains of revolute and prismatic "
                "joints"
            )
        pairs = zip(topology.joint_names, topology.kinds, topology.parents, strict=True)
        if carried := [repr(name) for name, kind, parent in pairs if kind is Free and parent != WORLD]:
            raise ValueError(f"free joints of MJCF are on the world, not on other bodies as {enumerated(carried)}")
        entries = () if self.model.shapes is None else self.model.shapes.entries
        of_shapes = [text for entry in entries for text in (entry.name, entry.path or entry.name)]
        names = (self.model.name, *topology.body_names, *topology.joint_names, *topology.frame_names, *of_shapes)
        if bad := [name for name in names if not name.strip() or _NO_XML.search(name)]:
            raise ValueError(f"MJCF cannot represent the names {enumerated([*map(repr, bad)])}; rename them")
        if "world" in (*topology.body_names, *topology.frame_names):
            raise ValueError(
                "in an MJCF file 'world' is the fixed world; give the body or frame of that name another one"
            )
        deepest = 0
        depth: list[int] = []
        for parent in topology.parents:
            depth.append(1 if parent == WORLD else depth[parent] + 1)
            deepest = max(deepest, depth[-1])
        if deepest > MAX_DEPTH - _AROUND:
            raise ValueError(f"MJCF has at most {MAX_DEPTH - _AROUND} bodies one on another, got {deepest}")

    def _starts(self, scene: Scene) -> dict[int, Transform]:
        """Poses of free bodies in the file: those of the configuration `qpos0`, or where their springs rest."""
        model, start = self.model, scene.configurations.get("qpos0")
        q = model.rest if start is None else np.asarray(model.expand(start), float)
        found = {}
        for body, kind in enumerate(model.topology.kinds):
            if kind is Free:
                x, y, z, *wxyz = q[model.topology.q_slice(body)]
                R = Rotation.from_quat(np.roll(wxyz, -1)).as_matrix()
                placement = jax.tree.map(lambda leaf, body=body: leaf[body], model.placements)
                found[body] = placement @ Transform(R, np.array([x, y, z]))  # type: ignore[arg-type]
                if not (np.array_equal(placement.rotation, np.eye(3)) and not np.any(placement.translation)):
                    self.lost.add("coordinates that are not the pose in the world", repr(model.joint_names[body]))
        return found

    # Bodies and joints.

    def _body_name(self, body: int) -> str:
        return "world" if body == WORLD else self.model.body_names[body]

    def _is_merged(self, body: int) -> bool:
        """Tell whether a body has nothing but a joint for the one body on it, so that it is a joint of that."""
        model, topology = self.model, self.model.topology
        children = [child for child, parent in enumerate(topology.parents) if parent == body]
        shapes = () if model.shapes is None else model.shapes.entries
        inertia = np.concatenate([np.ravel(leaf[body]) for leaf in jax.tree.leaves(model.inertias)])
        return (
            len(children) == 1
            and not np.any(inertia)
            and body not in topology.frame_bodies
            and all(entry.body != body for entry in shapes)
            and self.model.body_names[body] not in self._kept
            and not issubclass(topology.kinds[body], Free | Ball)
        )

    def _add_bodies(self):
        model, topology = self.model, self.model.topology
        # Bodies that are joints of the next one, in order, with the placement of that one's body in the first's parent.
        pending: dict[int, tuple[list[int], Transform]] = {}
        for body, name in enumerate(topology.body_names):
            parent = topology.parents[body]
            X: Any = self._start.get(body, jax.tree.map(lambda leaf, body=body: leaf[body], model.placements))
            before, base = pending.get(parent, ([], pose()))
            where = base @ X
            if self._is_merged(body):
                pending[body] = [*before, body], where
                continue
            carrier = topology.parents[before[0]] if before else parent
            element = ET.SubElement(self._elements[self._body_name(carrier)], "body", name=name)
            _place(element, where)
            for other in before:
                _, placed = pending[other]
                self._add_joints(element, other, where.inverse() @ placed)
            self._add_joints(element, body, pose())
            self._add_inertial(element, body)
            self._elements[name] = element

    def _add_joints(self, element: ET.Element, body: int, where: Transform):
        """Add the joints of a body, whose frame has a pose in that of the element."""
        model, kind = self.model, self.model.topology.kinds[body]
        values, geometry = joint_numbers(model, body), joint_geometry(model, body)
        if kind is Planar:
            axes = [geometry["x"], np.cross(geometry["normal"], geometry["x"]), geometry["normal"]]
        else:
            axes = list(geometry.values())
        shown = repr(model.joint_names[body])
        if np.any(np.isfinite(values["velocity"])):
            self.lost.add("limits of velocity", shown)
        if np.any(values["friction"]) and not np.allclose(values["friction_speed"], FRICTION_SPEED, atol=0):
            self.lost.add("friction_speed", shown)
        for number, (type_, name) in enumerate(zip(_TYPES[kind], self.joints[body], strict=True)):
            joint = ET.SubElement(element, "joint", name=name, type=type_)
            if type_ in ("hinge", "slide"):
                joint.set("axis", words(where.rotation @ axes[number]))
                if type_ == "hinge" and np.any(where.translation):
                    joint.set("pos", words(where.translation))
                self._describe(joint, shown, {key: value[number] for key, value in values.items()}, body)
            else:
                self._describe_together(joint, shown, values, body)

    def _describe(self, joint: ET.Element, shown: str, values: dict[str, Any], body: int):
        """Add the numbers of one coordinate."""
        for key, attribute in (("armature",) * 2, ("damping",) * 2, ("friction", "frictionloss"), ("stiffness",) * 2):
            if values[key]:
                joint.set(attribute, words(values[key]))
        if values["rest"]:
            joint.set("springref", words(values["rest"]))
        lower, upper, effort = values["lower"], values["upper"], values["effort"]
        if lower == upper:
            self.lost.add("limits with both ends at one place", shown)
        elif np.isfinite(lower) or np.isfinite(upper):
            joint.set("range", words([lower, upper]))
        of_actuators = self._driven.get(self.model.joint_names[body], np.nan)
        if effort == 0:
            self.lost.add("limits of effort of zero", shown)
        elif np.isfinite(effort) and np.isnan(of_actuators):
            joint.set("actuatorfrcrange", words([-effort, effort]))
        elif np.isfinite(effort) and not np.isclose(effort, of_actuators, rtol=1e-6):
            self.lost.add("limits of effort, other than those of actuators,", shown)

    def _describe_together(self, joint: ET.Element, shown: str, values: dict[str, Any], body: int):
        """Add the numbers of a ball or free joint, one for all coordinates."""
        for key, attribute in (("armature",) * 2, ("damping",) * 2, ("friction", "frictionloss"), ("stiffness",) * 2):
            if np.any(values[key] != values[key][0]):
                self.lost.add(f"{key} that differs between coordinates", shown)
            elif values[key][0]:
                joint.set(attribute, words(values[key][0]))
        rest = self._start.get(body, pose())
        neutral = np.array([*rest.translation, *_quaternion(rest.rotation)])[-len(values["rest"]) :]
        if np.any(values["stiffness"]) and not np.allclose(values["rest"], neutral, rtol=0, atol=1e-12):
            self.lost.add("the rest position", shown)
        if any(np.any(np.isfinite(values[key])) for key in ("lower", "upper", "effort")):
            self.lost.add("limits", shown)

    def _add_inertial(self, element: ET.Element, body: int):
        name, (mass, com, moments) = self.model.body_names[body], inertial_of(self.model, body)
        if mass < LIGHTEST:
            self.lost.add("bodies without mass, which have 2e-15 kg there: those", repr(name))
            self.light.append(name)
        along, axes = principal(moments)
        # Moments about the centre of mass are differences of those about the origin.
        rounding = 30 * self._eps * (np.max(np.abs(along)) + mass * (com @ com))
        a, b, c = np.sort(along)
        if a < -rounding or a + b < c - rounding:
            raise ValueError(
                f"MuJoCo refuses body {name!r}, whose moments {along.tolist()} are impossible for a rigid body"
            )
        # Rounding may have left one moment below zero, or above the sum of others.
        along = np.maximum(along, LIGHTEST)
        largest = int(np.argmax(along))
        along[largest] = min(along[largest], np.sum(np.delete(along, largest)))
        inertial = ET.SubElement(element, "inertial", pos=words(com), mass=words(max(mass, LIGHTEST)))
        inertial.set("diaginertia", words(along))
        if not np.array_equal(axes, np.eye(3)):
            inertial.set("quat", words(_quaternion(axes)))

    # Frames, shapes and couplings.

    def _add_frames(self):
        """Add frames as sites; those with shapes of their own as bodies without joints."""
        model, shapes = self.model, self.model.shapes
        links = set() if shapes is None else {entry.link for entry in shapes.entries}
        for number, name in enumerate(model.frame_names):
            body = model.topology.frame_bodies[number]
            tag = "body" if name in links else "site"
            element = ET.SubElement(self._elements[self._body_name(body)], tag, name=name)
            _place(element, jax.tree.map(lambda leaf, number=number: leaf[number], model.frames))
            if tag == "body":
                self._elements[name] = element
            else:
                self._sites[name] = name

    def _add_shapes(self):
        shapes = self.model.shapes
        if shapes is None:
            return
        margins = np.zeros(len(shapes)) if shapes.margins is None else np.asarray(shapes.margins, float)
        of_names = {shapes.entries[row].name: margins[row] for row in shapes.rows("collision")}
        for row, entry in enumerate(shapes.entries):
            about = self._geom(row)
            if about is None:
                self.lost.add("meshes without a file that MuJoCo reads", repr(entry.link))
                continue
            twin = self._twin(row)
            if entry.role == "visual" and twin is not None:
                # The other one, which also touches, is drawn.
                continue
            geom = ET.SubElement(self._elements[entry.link], "geom", about)
            drawn = entry.role == "visual" or self._twin(row) is not None
            geom.set("group", "0" if drawn else "3")
            if entry.role == "visual":
                geom.attrib.update(name=self.geom_names.claim(entry.name), contype="0", conaffinity="0")
            else:
                bits = {key: str(getattr(entry, key)) for key in ("contype", "conaffinity", "condim")}
                geom.attrib.update(bits, name=entry.name, friction=words(shapes.friction[row]))
                if entry.priority:
                    geom.set("priority", str(entry.priority))
                if margins[row]:
                    geom.set("margin", words(margins[row]))
        for pair in shapes.excluded:
            self._exclude(*pair)
        stated = (
            {}
            if shapes.stated_friction is None
            else dict(zip(map(frozenset, shapes.stated), shapes.stated_friction, strict=True))
        )
        for pair in shapes.included:
            element = ET.SubElement(self.section("contact"), "pair", geom1=pair[0], geom2=pair[1])
            if margin := sum(of_names[name] for name in pair):
                element.set("margin", words(margin))
            if (own := stated.get(frozenset(pair))) is not None:
                # All of them count.
                element.attrib.update(condim="6", friction=words(by_direction(own)))
        self._exclude_neighbours()

    def _twin(self, row: int) -> int | None:
        """The same shape in the other role."""
        shapes: Any = self.model.shapes
        entry = shapes.entries[row]
        for other, found in enumerate(shapes.entries):
            same = (found.kind, found.link, found.name, found.path) == (entry.kind, entry.link, entry.name, entry.path)
            if same and found.role != entry.role and found.color == entry.color:
                leaves = (shapes.sizes, shapes.placements.rotation, shapes.placements.translation)
                if all(np.array_equal(leaf[row], leaf[other]) for leaf in leaves) and entry.kind != "height field":
                    return other
        return None

    def _geom(self, row: int) -> dict[str, str] | None:
        """Attributes of a shape's geom; None if there is none."""
        shapes: Any = self.model.shapes
        entry, size = shapes.entries[row], shapes.size(row)
        X = jax.tree.map(lambda leaf: leaf[row], shapes.placements)
        if entry.link in self.model.frame_names:
            number = self.model.frame_names.index(entry.link)
            X = jax.tree.map(lambda leaf: leaf[number], self.model.frames).inverse() @ X
        about = {"type": entry.kind}
        match entry.kind:
            case "sphere" | "ellipsoid":
                about["size"] = words(size)
            case "box":
                about["size"] = words(size / 2)
            case "capsule" | "cylinder":
                about["size"] = words([size[0], size[1] / 2])
            case "plane":
                about["size"] = words([*(size / 2), 1.0])
            case "mesh":
                if (mesh := self._mesh(entry, size)) is None:
                    return None
                about["mesh"] = mesh
            case _:
                name, lowest = self._height_field(entry, size, shapes.heights_of(row))
                about |= {"type": "hfield", "hfield": name}
                X = X @ pose((0.0, 0.0, lowest))
        if entry.color is not None:
            about["rgba"] = words(entry.color)
        return about | pose_words(X)

    def _mesh(self, entry: Shape, scale: np.ndarray) -> str | None:
        """Name of a mesh asset, which shapes with the same file and scales share."""
        if (
            entry.path is None
            or not os.path.isfile(entry.path)
            or pathlib.Path(entry.path).suffix.lower() not in _MESHES
        ):
            return None
        path = pathlib.Path(entry.path)
        file = str(path.relative_to(self._folder)) if path.is_relative_to(self._folder) else entry.path
        for mesh in self.section("asset").iter("mesh"):
            if (mesh.get("file"), mesh.get("scale")) == (file, words(scale)):
                return mesh.get("name")
        name = f"mesh{len(self.section('asset'))}"
        ET.SubElement(self.section("asset"), "mesh", name=name, file=file, scale=words(scale))
        return name

    def _height_field(self, entry: Shape, sides: np.ndarray, heights: np.ndarray) -> tuple[str, float]:
        """Name of a new height field, and its lowest height, from which MuJoCo counts."""
        lowest, span = float(np.min(heights)), max(float(np.ptp(heights)), 1e-12)
        name = f"heights{len(self.section('asset'))}"
        rows, columns = heights.shape
        ET.SubElement(
            self.section("asset"), "hfield", name=name, nrow=str(rows), ncol=str(columns),
            # The first row of the file is that of the largest y.
            elevation=words((heights[::-1] - lowest) / span),
            size=words([*(sides / 2), span, 1e-3]),
        )  # fmt: skip
        return name, lowest

    def _exclude(self, first: str, second: str):
        if first in self._elements and second in self._elements:
            ET.SubElement(self.section("contact"), "exclude", body1=first, body2=second)

    def _exclude_neighbours(self):
        """Keep bodies from touching what is fixed to the world and bears their joints, which MuJoCo does not."""
        shapes: Any = self.model.shapes
        topology = self.model.topology
        collisions = [entry for entry in shapes.entries if entry.role == "collision"]
        still = {entry.link for entry in collisions if entry.body == WORLD and entry.link != "world"}
        moved = {
            entry.link
            for entry in collisions
            if entry.body != WORLD and topology.parents[entry.body] == WORLD and topology.kinds[entry.body] is not Free
        }
        stated = {frozenset(pair) for pair in shapes.excluded}
        for pair in ((a, b) for a in sorted(still) for b in sorted(moved)):
            if frozenset(pair) not in stated:
                self._exclude(*pair)

    def _add_mimics(self):
        model, names = self.model, self.model.joint_names
        for number, (follower, leader) in enumerate(model.topology.mimics):
            coefficients = [model.mimic_offset[number], model.mimic_ratio[number], 0, 0, 0]
            ET.SubElement(
                self.section("equality"), "joint", joint1=names[follower], joint2=names[leader],
                polycoef=words(coefficients),
            )  # fmt: skip


def _driven(scene: Scene) -> dict[str, float]:
    """Largest forces of the plain motors that act on a joint each, which are limits of effort of such joints; infinite
    for joints that other actuators move."""
    found: dict[str, float] = {}
    for actuator in scene.actuators:
        if not isinstance(actuator.transmission, GearedJoint):
            continue
        joint, gear, force = actuator.transmission.joint, actuator.transmission.gear, np.inf
        if isinstance(actuator, Motor) and actuator.activation is None:
            if actuator.command_range is not None:
                force = abs(actuator.strength) * np.max(np.abs(actuator.command_range))
            if actuator.force_range is not None:
                force = min(force, np.max(np.abs(actuator.force_range)))
            others = found.get(joint, np.inf)
            found[joint] = float(force * np.max(np.abs(gear))) + (others if np.isfinite(others) else 0.0)
        else:
            found.setdefault(joint, np.inf)
    return found


def _named_frames(scene: Scene) -> set[str]:
    """Names that anything beside the model speaks of."""
    parts = scene.constraints, scene.actuators, scene.sensors, scene.elements
    return {text for text in _texts(parts)}


def _texts(x: Any) -> Iterable[str]:
    if isinstance(x, str):
        yield x
    elif isinstance(x, tuple | list):
        for each in x:
            yield from _texts(each)
    elif isinstance(x, eqx.Module):
        for each in vars(x).values():
            yield from _texts(each)


def inertial_of(model: Model, body: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and moments of inertia about it, of a model with leaves of NumPy."""
    mass, first, rotational = (leaf[body] for leaf in jax.tree.leaves(model.inertias))
    return float(mass), *central_inertia(float(mass), first, rotational)


def principal(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal moments of inertia and their axes; those of the body, if these are principal axes."""
    if not np.any(moments - np.diag(np.diag(moments))):
        return np.diag(moments).copy(), np.eye(3)
    along, axes = np.linalg.eigh(moments)
    return along, axes * np.sign(np.linalg.det(axes))


def _quaternion(rotation: ArrayLike) -> np.ndarray:
    return np.roll(Rotation.from_matrix(np.asarray(rotation)).as_quat(), 1)


def pose_words(X: Transform) -> dict[str, str]:
    """Attributes of a pose."""
    found = {}
    if np.any(X.translation):
        found["pos"] = words(X.translation)
    if not np.array_equal(X.rotation, np.eye(3)):
        found["quat"] = words(_quaternion(X.rotation))
    return found


def _place(element: ET.Element, X: Transform):
    element.attrib.update(pose_words(X))
