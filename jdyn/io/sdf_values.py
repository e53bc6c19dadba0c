"""Contents of SDF elements: which are allowed, and the numbers, flags and poses in them."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from jdyn.io.meshes import MeshFolders
from jdyn.io.notes import Notes
from jdyn.io.rules import numbers, rule
from jdyn.io.xml import Element
from jdyn.model import Builder, pose
from jdyn.spatial import Transform
from jdyn.terminal.messages import short

_RULES = {
    "sdf": rule("version", many="model world", foreign="light actor"),
    "world": rule(
        "name",
        once="gravity",
        many="model include frame joint",
        foreign="light gui scene audio road plugin physics magnetic_field atmosphere spherical_coordinates",
        named="wind actor population state",
    ),
    "include": rule("merge", once="uri name pose placement_frame static", named="plugin params"),
    "model": rule(
        "name canonical_link placement_frame",
        once="pose static self_collide",
        many="link joint frame model include",
        foreign="allow_auto_disable",
        named="gripper plugin enable_wind",
    ),
    "frame": rule("name attached_to", once="pose"),
    "link": rule(
        "name",
        once="pose inertial gravity self_collide",
        many="visual collision",
        foreign="audio_source audio_sink light particle_emitter projector battery",
        named="sensor kinematic must_be_base_link enable_wind velocity_decay",
    ),
    "inertial": rule("auto", once="pose mass inertia density", foreign="auto_inertia_params", named="fluid_added_mass"),
    "inertia": rule(once="ixx ixy ixz iyy iyz izz"),
    "pose": rule("relative_to frame rotation_format degrees"),
    "visual": rule(
        "name",
        once="pose geometry",
        foreign="material plugin cast_shadows laser_retro transparency visibility_flags meta",
    ),
    "collision": rule(
        "name", once="pose geometry surface density", foreign="max_contacts laser_retro auto_inertia_params"
    ),
    "surface": rule(once="friction contact", named="bounce soft_contact"),
    "friction": rule(once="ode bullet", named="torsional"),
    "ode": rule(once="mu mu2", foreign="fdir1", named="slip1 slip2"),
    "bullet": rule(once="friction friction2", foreign="fdir1", named="rolling_friction"),
    "contact": rule(
        once="collide_bitmask",
        foreign="ode bullet category_bitmask poissons_ratio elastic_modulus",
        named="collide_without_contact collide_without_contact_bitmask",
    ),
    "geometry": rule(
        once="box sphere cylinder capsule ellipsoid plane mesh",
        foreign="empty",
        named="cone heightmap image polyline",
    ),
    "box": rule(once="size"),
    "sphere": rule(once="radius"),
    "cylinder": rule(once="radius length"),
    "capsule": rule(once="radius length"),
    "ellipsoid": rule(once="radii"),
    "plane": rule(once="normal size"),
    "mesh": rule(
        "optimization", once="uri scale", foreign="convex_decomposition", named="submesh"
    ),
    "joint": rule(
        "name type",
        once="parent child pose axis axis2 thread_pitch screw_thread_pitch",
        foreign="physics",
        named="sensor gearbox_ratio gearbox_reference_body",
    ),
    "axis": rule(once="xyz use_parent_model_frame dynamics limit mimic", named="initial_position"),
    "axis2": rule(once="xyz use_parent_model_frame dynamics limit mimic", named="initial_position"),
    "xyz": rule("expressed_in"),
    "dynamics": rule(once="damping friction spring_reference spring_stiffness"),
    "limit": rule(once="lower upper effort velocity", named="stiffness dissipation"),
    "mimic": rule("joint axis", once="multiplier offset reference"),
}  # fmt: skip
# Elements with texts and nothing else.
_TEXT = rule()
# What messages are about.
_PARTS = ("world", "include", "model", "frame", "link", "joint", "visual", "collision")
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclasses.dataclass(frozen=True)
class Source:
    """One document.

    Attributes:
        label: What stands before the numbers of its lines.
        version: Of the format.
        meshes: The folders that it may refer to.
        models: The models around it, each the folder or the file that it was included from.
    """

    label: str
    version: tuple[int, ...]
    meshes: MeshFolders
    models: tuple[str, ...] = ()

    def where(self, element: Element) -> str:
        """Name of an element in messages, such as `joint 'elbow' (line 12)`."""
        return f"{element.tag} {short(element.attributes.get('name', ''))} ({self.label}line {element.line})"


class Values:
    """Reads texts of elements; records what is wrong with them.

    Args:
        builder: Reports problems and, at the end, notes.
    """

    def __init__(self, builder: Builder):
        self.builder = builder
        self.notes = Notes()

    def examine(self, source: Source, element: Element, where: str) -> None:
        """Check an element and those below it for unexpected contents."""
        allowed = _RULES.get(element.tag, _TEXT)
        for key in element.attributes:
            if key not in allowed.attributes:
                self.notes.add("ignored, unknown to jdyn", f"attribute {key} of <{element.tag}>")
        if element.text and (allowed.once or allowed.many):
            self.notes.add("ignored, stray text", f"{short(element.text)} in <{element.tag}> (line {element.line})")
        for tag in allowed.once:
            if len(element.all(tag)) > 1:
                self.builder.problem(f"{where}: <{element.tag}> has {len(element.all(tag))} <{tag}>, expected one")
        for child in element.children:
            of = f" of {where}" if element.tag in _PARTS else ""
            if child.namespace == element.namespace and child.tag in allowed.once + allowed.many:
                self.examine(source, child, source.where(child) if child.tag in _PARTS else where)
            elif child.tag in allowed.named:
                self.notes.add("ignored", f"<{child.tag}>{of}")
            elif child.tag not in allowed.foreign:
                self.notes.add("ignored, unknown to jdyn", f"<{child.tag}> in <{element.tag}>")

    def text(self, element: Element | None, tag: str) -> str | None:
        """The text of a child, if it has one."""
        child = None if element is None else element.first(tag)
        return None if child is None else child.text.strip()

    def numbers(
        self, where: str, element: Element | None, tag: str, count: int, default: Sequence[float] | None = None
    ) -> np.ndarray:
        """The numbers of a child; if there are not `count` numbers, record a problem and return zeros."""
        expected = "a number" if count == 1 else f"{count} numbers"
        text = self.text(element, tag)
        if text is None:
            if default is None:
                self.builder.problem(
                    f"{where}: <{element.tag if element else tag}> has no <{tag}>, expected {expected}"
                )
            return np.zeros(count) if default is None else np.array(default, float)
        if (values := numbers(text, count)) is not None:
            return values
        self.builder.problem(f"{where}: <{tag}> is {short(text)}, expected {expected}")
        return np.zeros(count)

    def number(self, where: str, element: Element | None, tag: str, default: float | None = None) -> float:
        """The number of a child."""
        return float(self.numbers(where, element, tag, 1, None if default is None else (default,))[0])

    def limit(self, where: str, element: Element | None, tag: str, default: float) -> float:
        """A limit, which may be infinite."""
        text = self.text(element, tag)
        if text is not None and text.lower().lstrip("+-") in ("inf", "infinity"):
            return -np.inf if text.startswith("-") else np.inf
        return self.number(where, element, tag, default)

    def flag(self, where: str, element: Element, tag: str, default: bool) -> bool:
        """The truth value of a child."""
        text = self.text(element, tag)
        if text is None:
            return default
        if text.lower() not in _FLAGS:
            self.builder.problem(f"{where}: <{tag}> is {short(text)}, expected true or false")
        return _FLAGS.get(text.lower(), default)

    def pose(self, where: str, element: Element) -> tuple[Transform, str | None]:
        """The pose of an element, and the name of the frame that it is relative to."""
        child = element.first("pose")
        if child is None:
            return pose(), None
        if child.attributes.get("frame"):
            self.notes.add("ignored, without a meaning in SDFormat", "attribute frame of <pose>")
        base = child.attributes.get("relative_to") or None
        form = child.attributes.get("rotation_format", "euler_rpy")
        if not child.text:
            return pose(), base
        if form == "quat_xyzw":
            values = self.numbers(where, element, "pose", 7)
            if np.linalg.norm(values[3:]) < 1e-10:
                self.builder.problem(f"{where}: the quaternion of <pose> is zero")
                return pose(), base
            return Transform(Rotation.from_quat(values[3:]).as_matrix(), values[:3]), base  # type: ignore[arg-type]
        if form != "euler_rpy":
            self.builder.problem(f"{where}: rotation_format is {short(form)}, expected euler_rpy or quat_xyzw")
            return pose(), base
        values = self.numbers(where, element, "pose", 6)
        degrees = child.attributes.get("degrees", "false").lower()
        if degrees not in _FLAGS:
            self.builder.problem(f"{where}: degrees is {short(degrees)}, expected true or false")
        angles = np.deg2rad(values[3:]) if _FLAGS.get(degrees) else values[3:]
        return pose(values[:3], angles), base
