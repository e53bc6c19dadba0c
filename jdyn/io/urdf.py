"""URDF files to models: a strict reader of everything that matters for dynamics.

Source: the URDF specification, wiki.ros.org/urdf/XML, with the additions of urdfdom for versions 1.1 (capsules,
`quat_xyzw`) and 1.2 (further limits).
"""

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from jdyn.io.meshes import MeshFolders, located
from jdyn.io.notes import Notes
from jdyn.io.rules import color_of, numbers, rule
from jdyn.io.srdf import exclude_pairs
from jdyn.io.xacro_expansion import SUFFIX, expanded, has_xacro, is_xacro
from jdyn.io.xml import Element, parse, read
from jdyn.model import (
    Builder,
    Continuous,
    Fixed,
    Free,
    Joint,
    Mimic,
    Model,
    ModelError,
    Planar,
    Prismatic,
    Revolute,
    pose,
)
from jdyn.model.shapes import HULL_VERTICES
from jdyn.spatial import Transform
from jdyn.terminal.messages import enumerated

# A limit of this size means no limit: URDF cannot express infinity, and exporters write the largest double.
UNLIMITED = 1e300

_OTHER_FORMATS = {
    "sdf": "this is SDF; load it with jdyn.load",
    "mujoco": "this is MJCF; load it with jdyn.load",
    "html": "this is a web page; download the file itself",
    "COLLADA": "this is a mesh, not a robot",
}


_RULES = {
    "robot": rule(
        "name version", many="link joint", foreign="material gazebo transmission ros2_control sensor", named="mujoco"
    ),
    "link": rule(
        "name type",
        once="inertial",
        many="visual collision",
        foreign="sensor self_filter",
        named="contact self_collision_checking collision_checking",
    ),
    "inertial": rule(once="origin mass inertia"),
    "origin": rule("xyz rpy quat_xyzw"),
    "mass": rule("value"),
    "inertia": rule("ixx ixy ixz iyy iyz izz"),
    "visual": rule("name", once="origin geometry", foreign="material"),
    "collision": rule("name", once="origin geometry", foreign="material verbose"),
    "geometry": rule("name", once="mesh box cylinder sphere capsule"),
    "mesh": rule("filename scale"),
    "box": rule("size"),
    "cylinder": rule("radius length"),
    "sphere": rule("radius"),
    "capsule": rule("radius length"),
    "joint": rule(
        "name type dont_collapse",
        once="origin parent child axis limit dynamics mimic calibration safety_controller",
    ),
    "parent": rule("link"),
    "child": rule("link"),
    "axis": rule("xyz"),
    "limit": rule("lower upper effort velocity acceleration deceleration jerk"),
    "dynamics": rule("damping friction"),
    "mimic": rule("joint multiplier offset"),
    "calibration": rule("rising falling reference_position"),
    "safety_controller": rule("soft_lower_limit soft_upper_limit k_position k_velocity"),
}

# Size parameters of each shape: attribute, number of values, default.
SIZES: dict[str, tuple[tuple[str, int, tuple[float, ...] | None], ...]] = {
    "mesh": (("scale", 3, (1.0, 1.0, 1.0)),),
    "box": (("size", 3, None),),
    "cylinder": (("radius", 1, None), ("length", 1, None)),
    "sphere": (("radius", 1, None),),
    "capsule": (("radius", 1, None), ("length", 1, None)),
}

# What only defines words for the rest of an xacro file, and may be left when that is expanded.
_LEFT_OVER = ("property", "arg", "macro")

# Children of <gazebo> that say nothing about motion.
_GAZEBO_FOREIGN = ("material", "visual", "plugin", "sensor", "provideFeedback", "implicitSpringDamper")
# Those that belong to the mechanism, each of which is named; others are about contact.
_GAZEBO_MECHANISM = ("joint", "springStiffness", "springReference", "gravity", "turnGravityOff")

_KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")


def load_urdf(source: str | os.PathLike, *, dtype=None, **options: Any) -> Model:
    """Read a robot from a URDF file or text, or from a xacro file, which is expanded first.

    Args:
        source: Path of the file, or the XML text.
        dtype: Floating type of the leaves; JAX's default if left out.
        options: The other arguments of `read_urdf`.

    Raises:
        ModelError: naming the file and every problem found.
        ValueError, ImportError: as `read_urdf`.

    Warns:
        ModelWarning: once, naming everything that is ignored or suspicious.
    """
    builder, _ = read_urdf(source, **options)
    return builder.build(dtype=dtype)


def read_urdf(
    source: str | os.PathLike,
    *,
    floating_base: bool | None = None,
    package_dirs: Iterable[str | os.PathLike] = (),
    srdf: str | os.PathLike | None = None,
    hull_vertices: int = HULL_VERTICES,
    arguments: Mapping[str, Any] | None = None,
) -> tuple[Builder, Element]:
    """Read a URDF file or text, or a xacro file, which is expanded first, into a builder.

    The root link is fixed to the world and becomes one of its frames; a root link called `world` is the world.
    A mimic joint follows its leader exactly. Missing limits are infinite, except that a `<limit>` without `lower` or
    `upper` means 0 there. Axes are scaled to unit length; the x direction of a planar joint is the joint's x axis
    projected onto the plane (its y axis if x is the normal).

    Args:
        source: Path of the file, or the XML text. A file whose name ends in `.xacro` is expanded.
        floating_base: `True` frees the root link (joint `root_joint`), or the link that is fixed to `world`;
            `False` fixes a floating root link; `None` follows the file.
        package_dirs: Folders, besides the file's own, that may contain meshes: packages, or folders of packages.
            Mesh files are never opened.
        srdf: Path of an SRDF file, or its text, which says which links may not touch.
        hull_vertices: How many vertices the hulls have at most as which meshes touch.
        arguments: Values of the `<xacro:arg>` of a xacro file, by name.

    Returns:
        The builder, which still has to report problems and warnings, and the root element of the file.

    Raises:
        ModelError: naming the file, if it is no URDF document.
        ValueError: naming folders of `package_dirs` that do not exist, or arguments that the file has not.
        ImportError: if a xacro file is to be expanded, and xacro is not installed.
    """
    text, label, folder = read(source, "URDF")
    if is_xacro(source) and (arguments or has_xacro(text)):
        text, label = expanded(source, package_dirs, arguments), f"{label}, expanded by xacro"
    elif arguments is not None and not is_xacro(source):
        raise ValueError(f"arguments: expected a file whose name ends in {SUFFIX}, got {label}; leave out arguments")
    root = parse(text, label)
    if root.tag != "robot":
        hint = _OTHER_FORMATS.get(root.tag, "is this a URDF file?")
        raise ModelError(f"{label}: the root element is <{root.tag}>, expected <robot>; {hint}")
    builder = Builder(root.attributes.get("name", ""), source=label, hull_vertices=hull_vertices)
    reader = _Reader(root, builder, MeshFolders(folder, package_dirs))
    reader.read(floating_base)
    if srdf is not None:
        exclude_pairs(builder, srdf, [link.attributes.get("name", "") for link in root.all("link")])
    return builder, root


def planar_x(normal: np.ndarray) -> np.ndarray:
    """Direction of a planar joint's first coordinate in the joint frame, before projection onto the plane."""
    parallel = np.abs(normal[0]) > (1 - 1e-9) * np.linalg.norm(normal)
    return np.array([0.0, 1.0, 0.0]) if parallel else np.array([1.0, 0.0, 0.0])


@dataclasses.dataclass(frozen=True)
class _Joint:
    """One edge of the tree."""

    kind: str
    name: str
    parent: str
    child: str
    element: Element


def place_of(element: Element) -> str:
    """Name of an element in messages, such as `joint 'elbow' (line 12)`."""
    return f"{element.tag} {element.attributes.get('name', '')!r} (line {element.line})"


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:100]}...")


class _Reader:
    """Transfers the contents of one document to a `Builder`."""

    def __init__(self, root: Element, builder: Builder, meshes: MeshFolders):
        self.root = root
        self.builder = builder
        self.meshes = meshes
        self.notes = Notes()
        self.materials = self._materials()

    def read(self, floating_base: bool | None):
        self._examine(self.root, place_of(self.root))
        if not self.root.attributes.get("name"):
            self.builder.problem(f"<robot> (line {self.root.line}) has no name")
        if (version := self.root.attributes.get("version", "1.0")) not in ("1", "1.0", "1.1", "1.2"):
            self.notes.add("read as 1.2, unknown URDF version", _short(version))
        links = self._links()
        if not links:
            self.builder.problem("there is no link; a robot has at least one")
        for joint in self._rooted(list(links), self._joints(links), floating_base):
            if joint.child != "world":
                self._add(joint, links[joint.child])
        for link in links.values():
            self._add_shapes(link)
        self._note_gazebo()
        self.notes.report(self.builder)

    # The document.

    def _examine(self, element: Element, where: str):
        """Check an element and those below it for unexpected contents."""
        rule = _RULES[element.tag]
        for key, value in element.attributes.items():
            if key not in rule.attributes:
                self.notes.add("ignored, unknown to jdyn", f"attribute {key} of <{element.tag}>")
            if "${" in value or "$(" in value:
                self._refuse_xacro(element.line, f"{key}={_short(value)}")
        if element.text:
            self.notes.add("ignored, stray text", f"{_short(element.text)} in <{element.tag}> (line {element.line})")
        for tag in rule.once:
            if len(element.all(tag)) > 1:
                self.builder.problem(f"{where}: <{element.tag}> has {len(element.all(tag))} <{tag}>, expected one")
        for child in element.children:
            if "xacro" in child.namespace:
                if child.tag not in _LEFT_OVER:
                    self._refuse_xacro(child.line, f"<xacro:{child.tag}>")
                self.notes.add("ignored, left over from xacro", f"<xacro:{child.tag}>")
            elif child.namespace == element.namespace and child.tag in rule.once + rule.many:
                self._examine(child, place_of(child) if child.tag in ("link", "joint") else where)
            elif child.tag in rule.named and child.namespace == element.namespace:
                self.notes.add("ignored", f"<{child.tag}>" + ("" if element is self.root else f" of {where}"))
            elif child.tag not in rule.foreign:
                self.notes.add("ignored, unknown to jdyn", f"<{child.tag}> in <{element.tag}>")

    def _note_gazebo(self):
        """Name what <gazebo> says of joints that close loops, springs, gravity and contact."""
        for gazebo in self.root.all("gazebo"):
            for child in gazebo.children:
                name = gazebo.attributes.get("reference") or child.attributes.get("name")
                of = f" of {name!r}" if name and child.tag in _GAZEBO_MECHANISM else ""
                if child.tag not in _GAZEBO_FOREIGN:
                    self.notes.add("ignored, in <gazebo>", f"<{child.tag}>{of}")

    def _refuse_xacro(self, line: int, what: str):
        raise ModelError(
            f"{self.builder.source}: line {line} has {what}, which is xacro; load it from a file whose name ends in "
            f"{SUFFIX}, or run xacro first: xacro robot.urdf.xacro > robot.urdf"
        )

    def _name(self, element: Element) -> str | None:
        name = element.attributes.get("name", "")
        if not name.strip():
            self.builder.problem(f"<{element.tag}> (line {element.line}) has no name")
            return None
        return name

    def _links(self) -> dict[str, Element]:
        links: dict[str, Element] = {}
        for element in self.root.all("link"):
            name = self._name(element)
            if name in links:
                self.builder.problem(f"{place_of(element)}: the name is taken by the link on line {links[name].line}")
            elif name is not None:
                links[name] = element
        return links

    def _joints(self, links: dict[str, Element]) -> list[_Joint]:
        joints: dict[str, _Joint] = {}
        for element in self.root.all("joint"):
            name = self._name(element) or f"joint on line {element.line}"
            parent, child = (self._end(element, end, links) for end in ("parent", "child"))
            kind = element.attributes.get("type")
            if kind not in _KINDS:
                got = "missing" if kind is None else _short(kind)
                self.builder.problem(f"{place_of(element)}: type is {got}, expected one of {', '.join(_KINDS)}")
                kind = "continuous"
            if child in joints:
                self.builder.problem(
                    f"{place_of(element)}: link {child!r} is already the child of joint {joints[child].name!r}"
                )
            elif child is not None:
                joints[child] = _Joint(kind, name, parent or "world", child, element)
        return list(joints.values())

    def _end(self, element: Element, end: str, links: dict[str, Element]) -> str | None:
        """The link at one end of a joint."""
        found = element.first(end)
        link = None if found is None else found.attributes.get("link")
        if link is None:
            self.builder.problem(f"{place_of(element)}: has no {end} link")
        elif link not in links:
            declare = '; add <link name="world"/>' if link == "world" else ""
            self.builder.problem(f"{place_of(element)}: {end} link {link!r} does not exist{declare}")
            link = None
        return link

    # The tree.

    def _rooted(self, links: list[str], joints: list[_Joint], floating_base: bool | None) -> list[_Joint]:
        """The joints, and one more that connects the root link to the world."""
        children = {joint.child for joint in joints}
        roots = [name for name in links if name not in children]
        if len(roots) > 1:
            names = enumerated([repr(name) for name in roots])
            self.builder.problem(f"links {names} have no parent joint; expected one root link, connect the parts")
        if "world" in children:
            self.builder.problem("link 'world' is the fixed world and can only be the root; give it another name")
        added = unused("root_joint", {joint.name for joint in joints})
        below = [i for i, joint in enumerate(joints) if joint.parent in roots]
        bolt = joints[below[0]] if len(below) == 1 else None
        if floating_base is False and bolt is not None and bolt.kind == "floating":
            joints[below[0]] = dataclasses.replace(bolt, kind="fixed")
        if not floating_base or len(roots) != 1 or (bolt is not None and bolt.kind == "floating"):
            return [_added("fixed", f"{added}{i or ''}", name) for i, name in enumerate(roots)] + joints
        if roots != ["world"]:
            return [_added("floating", added, roots[0]), *joints]
        if bolt is not None and bolt.kind == "fixed":
            joints[below[0]] = _added("floating", added, bolt.child, bolt.element)
        else:
            self.builder.problem(
                "floating_base=True, but the root link is 'world' and does not carry exactly one link, fixed to it; "
                "give the root link another name if it is part of the robot"
            )
        return joints

    def _add(self, joint: _Joint, link: Element):
        where = place_of(joint.element)
        kind, properties = self._motion(where, joint)
        self.builder.add_link(
            joint.child,
            kind,
            parent=joint.parent,
            placement=self._pose(where, joint.element),
            joint_name=joint.name,
            **self._inertial(place_of(link), link),
            **properties,
        )

    def _motion(self, where: str, joint: _Joint) -> tuple[Joint | Fixed, dict]:
        """The joint and its properties, in the form that the builder expects."""
        if joint.kind == "fixed":
            return Fixed(), {}
        properties: dict = {"mimic": self._mimic(where, joint.element)}
        if joint.kind in ("floating", "planar"):
            if joint.element.first("limit") or joint.element.first("dynamics"):
                self.notes.add(
                    f"ignored, no meaning for a {joint.kind} joint", f"<limit> and <dynamics> of {joint.name!r}"
                )
            if joint.kind == "floating":
                return Free(), properties
        axis = joint.element.first("axis")
        direction = np.array([1.0, 0.0, 0.0]) if axis is None else self._numbers(where, axis, "xyz", 3)
        if joint.kind == "planar":
            return Planar(direction, planar_x(direction)), properties  # type: ignore[arg-type]
        properties |= self._limits(where, joint) | self._dynamics(where, joint.element)
        kind = {"revolute": Revolute, "continuous": Continuous, "prismatic": Prismatic}[joint.kind]
        return kind(direction), properties

    def _mimic(self, where: str, element: Element) -> Mimic | None:
        mimic = element.first("mimic")
        if mimic is None:
            return None
        if "joint" not in mimic.attributes:
            self.builder.problem(f"{where}: <mimic> names no joint")
            return None
        ratio = self._number(where, mimic, "multiplier", 1.0)
        return Mimic(mimic.attributes["joint"], ratio, self._number(where, mimic, "offset", 0.0))

    def _limits(self, where: str, joint: _Joint) -> dict[str, float]:
        limit = joint.element.first("limit")
        if limit is None:
            if joint.kind != "continuous":
                self.notes.add("no <limit>, taken as unlimited", repr(joint.name))
            return {}
        range_given = [key for key in ("lower", "upper") if key in limit.attributes]
        keys = [key for key in ("effort", "velocity") if key in limit.attributes]
        if len(keys) < 2:
            self.notes.add("no effort or velocity in <limit>, taken as unlimited", repr(joint.name))
        if joint.kind != "continuous":
            keys += ["lower", "upper"]
            if not range_given:
                self.notes.add("no lower and upper in <limit>, which means the range [0, 0]", repr(joint.name))
        elif range_given:
            self.notes.add("ignored, no meaning for a continuous joint", f"lower and upper of {joint.name!r}")
        values = {key: self._number(where, limit, key, 0.0) for key in keys}
        for key in ("effort", "velocity"):
            if values.get(key) == 0:
                self.notes.add(f"{key} of 0 in <limit>, kept; leave it out where there is no limit", repr(joint.name))
        return {key: x if abs(x) < UNLIMITED else float(np.copysign(np.inf, x)) for key, x in values.items()}

    def _dynamics(self, where: str, element: Element) -> dict[str, float]:
        dynamics = element.first("dynamics")
        if dynamics is None:
            return {}
        return {key: self._number(where, dynamics, key, 0.0) for key in ("damping", "friction")}

    def _inertial(self, where: str, link: Element) -> dict:
        inertial = link.first("inertial")
        if inertial is None:
            return {}
        mass, inertia = inertial.first("mass"), inertial.first("inertia")
        if mass is None or inertia is None:
            missing = " and ".join(f"<{tag}>" for tag in ("mass", "inertia") if inertial.first(tag) is None)
            self.builder.problem(f"{where}: <inertial> has no {missing}")
            return {}
        X = self._pose(where, inertial)
        xx, xy, xz, yy, yz, zz = (
            self._number(where, inertia, key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        moments = X.rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ X.rotation.T
        return {"mass": self._number(where, mass, "value"), "com": X.translation, "inertia": moments}

    # Shapes.

    def _add_shapes(self, link: Element):
        for element in link.children:
            if element.tag in ("visual", "collision") and element.namespace == link.namespace:
                self._add_shape(place_of(link), link.attributes["name"], element)

    def _add_shape(self, where: str, name: str, element: Element):
        geometry = element.first("geometry")
        shapes = [] if geometry is None else [shape for tag in SIZES for shape in geometry.all(tag)]
        if len(shapes) > 1:
            self.builder.problem(f"{where}: a <{element.tag}> has {len(shapes)} shapes, expected one")
        if not shapes:
            self.notes.add("ignored, without a shape", f"<{element.tag}> of link {name!r}")
            return
        X, shape, path = self._pose(where, element), shapes[0], None
        size = np.concatenate([self._numbers(where, shape, *parameter) for parameter in SIZES[shape.tag]])
        if shape.tag == "mesh":
            path = self._mesh(where, shape)
        elif np.any(size < 0):
            self.builder.problem(f"{where}: a <{shape.tag}> has a negative size")
            return
        self.builder.add_shape(
            name, shape.tag, size, placement=X, role=element.tag, path=path,  # type: ignore[arg-type]
            name=element.attributes.get("name") or None, color=self._color(name, element),
        )  # fmt: skip

    def _materials(self) -> dict[str, Element]:
        """Materials with a colour by their names: those of the robot, then those that shapes define. The first one of a
        name counts for all, as in urdfdom, which RViz reads with."""
        visuals = (visual for link in self.root.all("link") for visual in link.all("visual"))
        found: dict[str, Element] = {}
        for owner in (self.root, *visuals):
            for material in owner.all("material"):
                if material.first("color") is not None:
                    found.setdefault(material.attributes.get("name", ""), material)
        found.pop("", None)
        return found

    def _color(self, name: str, element: Element) -> tuple[float, ...] | None:
        """The colour of a shape's material; it does not matter to the mechanism, so that a bad one is only named."""
        material = element.first("material")
        if material is not None:
            material = self.materials.get(material.attributes.get("name", ""), material)
        color = None if material is None else material.first("color")
        if color is None:
            return None
        if (rgba := color_of(color.attributes.get("rgba", ""))) is None:
            self.notes.add("ignored, colours that are not four numbers from 0 to 1", f"of link {name!r}")
        return rgba

    def _mesh(self, where: str, mesh: Element) -> str | None:
        name = mesh.attributes.get("filename")
        if name is None:
            self.builder.problem(f"{where}: <mesh> has no filename")
            return None
        return located(self.meshes, name, _short(name), self.notes, "in packages")

    # Numbers.

    def _pose(self, where: str, element: Element) -> Transform:
        origin = element.first("origin")
        if origin is None:
            return pose()
        xyz = self._numbers(where, origin, "xyz", 3, (0, 0, 0)).tolist()
        if "quat_xyzw" not in origin.attributes:
            return pose(xyz, self._numbers(where, origin, "rpy", 3, (0, 0, 0)).tolist())
        quaternion = self._numbers(where, origin, "quat_xyzw", 4)
        if "rpy" in origin.attributes or np.linalg.norm(quaternion) < 1e-10:
            self.builder.problem(f"{where}: <origin> needs either rpy or a nonzero quat_xyzw")
            return pose(xyz)
        return Transform(Rotation.from_quat(quaternion).as_matrix(), np.array(xyz))  # type: ignore[arg-type]

    def _number(self, where: str, element: Element, key: str, default: float | None = None) -> float:
        return float(self._numbers(where, element, key, 1, None if default is None else (default,))[0])

    def _numbers(
        self, where: str, element: Element, key: str, count: int, default: Sequence[float] | None = None
    ) -> np.ndarray:
        """The numbers in an attribute; if there are not `count` numbers, record a problem and return zeros."""
        expected = "a number" if count == 1 else f"{count} numbers"
        text = element.attributes.get(key)
        if text is None:
            if default is None:
                self.builder.problem(f"{where}: <{element.tag}> has no {key}, expected {expected}")
            return np.zeros(count) if default is None else np.array(default, dtype=float)
        if (values := numbers(text, count)) is not None:
            return values
        self.builder.problem(f"{where}: {key} of <{element.tag}> is {_short(text)}, expected {expected}")
        return np.zeros(count)


def _added(kind: str, name: str, child: str, at: Element | None = None) -> _Joint:
    """A joint to the world that is not in the file; it has the origin of the file's joint `at`."""
    line, origin = (0, []) if at is None else (at.line, at.all("origin"))
    return _Joint(kind, name, "world", child, Element("joint", "", {"name": name}, line, children=origin))


def unused(name: str, taken: set[str]) -> str:
    """`name`, with underscores appended until it is unused."""
    while name in taken:
        name += "_"
    return name
