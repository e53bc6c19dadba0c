"""SDF files to models: the links, joints, frames and shapes of SDFormat 1.4 to 1.12, with models in models.

Each link becomes a body with the same name and frame, except that

- a joint that turns its child about a point other than the child's origin moves a frame at that point, which is called
  `link/joint`, and the link becomes a frame fixed to it;
- a link that is fixed to another one, or to the world, is lumped into that and becomes a frame. Frames stay frames.

Source: sdformat.org/spec; the defaults are those of libsdformat.
"""

import dataclasses
import os
import warnings
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float
from scipy.spatial.transform import Rotation

from jdyn.elements import CarriedWeight
from jdyn.io.mjcf_names import Names
from jdyn.io.scene import Scene
from jdyn.io.sdf_auto_inertia import automatic_inertia
from jdyn.io.sdf_frames import MODEL, WORLD, Frames, Place, Scope
from jdyn.io.sdf_includes import MAX_NESTED, NEWEST, OLDEST, Includes, version_of
from jdyn.io.sdf_shapes import add_shape
from jdyn.io.sdf_values import Source, Values
from jdyn.io.xml import Element, parse, read
from jdyn.model import (
    Ball,
    Builder,
    Connect,
    Constraint,
    Continuous,
    Fixed,
    Free,
    Helical,
    Hinge,
    Joint,
    Mimic,
    Model,
    ModelError,
    ModelWarning,
    Prismatic,
    Revolute,
    Universal,
    Weld,
    pose,
)
from jdyn.model.frames import carrier_of
from jdyn.model.shapes import HULL_VERTICES
from jdyn.spatial import Transform
from jdyn.terminal.messages import enumerated, short

# A limit of this size means no limit, as in libsdformat.
UNLIMITED = 1e16
# Links of one model, of which each pair is told not to touch.
MAX_APART = 1000
# Distance that is what rounding makes of zero, in units of a metre.
_NEAR = 1e-12

_ONE_AXIS = ("revolute", "continuous", "prismatic", "screw")
_TWO_AXES = ("universal", "revolute2")
_KINDS = (*_ONE_AXIS, *_TWO_AXES, "ball", "fixed")
# Joints that jdyn has constraints for.
_CLOSING = ("revolute", "continuous", "ball", "fixed")


def load_sdf(source: str | os.PathLike, *, dtype=None, **options: Any) -> Model:
    """Read the robots of an SDF file or text.

    Args:
        source: Path of the file, or the XML text.
        dtype: Floating type of the leaves; JAX's default if left out.
        options: The other arguments of `SdfFile`.

    Raises:
        ModelError: naming the file and every problem found.
        ValueError: naming folders of `package_dirs` that do not exist.

    Warns:
        ModelWarning: once, naming everything that is ignored or suspicious.
    """
    file = SdfFile(source, **options)
    for what, names in (
        ("closed loops, which jdyn.load_constraints reads", [edge.name for edge in file.closing]),
        ("weight that <gravity> takes from links, for which jdyn.load_system has a force", file.weightless),
    ):
        if names:
            file.builder.warning(f"simulated if asked for: {what}: {enumerated([*map(repr, names)])}")
    return file.builder.build(dtype=dtype)


def load_sdf_constraints(
    source: str | os.PathLike, *, package_dirs: Iterable[str | os.PathLike] = ()
) -> tuple[Constraint, ...]:
    """The joints of an SDF file that close loops, as constraints on what `load_sdf` makes of it. Arguments and errors
    are those of `load_sdf`, which alone warns."""
    return _quietly_checked(source, package_dirs).constraints


def load_sdf_configurations(
    model: Model, source: str | os.PathLike, *, package_dirs: Iterable[str | os.PathLike] = ()
) -> dict[str, Float[Array, " nq"]]:
    """The pose in which an SDF file is written, `"qpos0"`, in coordinates of what `load_sdf` makes of it."""
    return _quietly_checked(source, package_dirs).configurations(model)


def load_sdf_scene(source: str | os.PathLike, *, dtype=None, **options: Any) -> Scene:
    """Load all of an SDF file that can be simulated, with one warning about the rest. Arguments and errors are those of
    `load_sdf`."""
    file = SdfFile(source, **options)
    model = file.builder.build(dtype=dtype)
    return Scene(model, file.constraints, file.configurations(model), touches=True, elements=file.elements(model))


def _quietly_checked(source: str | os.PathLike, package_dirs: Iterable[str | os.PathLike]) -> "SdfFile":
    """A file in which there are no problems."""
    file = SdfFile(source, package_dirs=package_dirs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        file.builder.build()
    return file


@dataclasses.dataclass(eq=False)
class _Link:
    """One link: its element and document, its frame, and the model around it."""

    name: str
    element: Element
    source: Source
    place: Place
    scope: Scope
    # The models around it that are in no other model, and whether its shapes touch others of that.
    robot: Scope
    self_collide: bool


@dataclasses.dataclass(eq=False)
class _Edge:
    """One joint, with the links or the world at its ends."""

    name: str
    kind: str
    element: Element
    source: Source
    place: Place
    parent: str
    child: str


class SdfFile:
    """An SDF file or text, read into a builder.

    Args:
        source: Path of the file, or the XML text.
        floating_base: `True` frees the single link that is fixed to the world, if no link is free; `False` fixes every
            free link at its pose in the file; `None` follows the file.
        package_dirs: Folders, besides the file's own, that may contain included models and meshes: models, or folders
            of models. Mesh files are never opened.
        hull_vertices: How many vertices the hulls have at most as which meshes touch.

    Attributes:
        builder: It still has to report problems and warnings.
        closing: Joints that close loops.
        weightless: Names of links that gravity does not act on.
        constraints: What the joints that close loops are.
    """

    def __init__(
        self,
        source: str | os.PathLike,
        *,
        floating_base: bool | None = None,
        package_dirs: Iterable[str | os.PathLike] = (),
        hull_vertices: int = HULL_VERTICES,
    ):
        text, label, folder = read(source, "SDF")
        root = parse(text, label)
        if root.tag != "sdf":
            raise ModelError(f"{label}: the root element is <{root.tag}>, expected <sdf>")
        self.builder = Builder("", source=label, hull_vertices=hull_vertices)
        self._values = Values(self.builder)
        self._includes = Includes(package_dirs)
        self._frames = Frames(self.builder.problem)
        self._links: dict[str, _Link] = {}
        self._joints: dict[Place, tuple[str, Element, Source]] = {}
        self._places: list[Place] = []
        self._named_frames: list[tuple[str, Place]] = []
        self._link_names = Names(WORLD)
        self._world = Scope().place
        self.closing: list[_Edge] = []
        self.weightless: list[str] = []
        self.constraints: tuple[Constraint, ...] = ()
        path = () if folder is None else (str(source),)
        self._read(root, Source("", self._version(root), self._includes.folders(folder), path), floating_base)
        self._values.notes.report(self.builder)

    def _version(self, root: Element) -> tuple[int, ...]:
        version, text = version_of(root), root.attributes.get("version")
        if version is None or version < OLDEST:
            got = "missing" if text is None else short(text)
            self.builder.problem(f"<sdf> (line {root.line}): version is {got}, expected 1.4 to 1.12")
        elif version > NEWEST:
            self._values.notes.add("read as 1.12, unknown SDF version", short(text))
        return NEWEST if version is None else version

    def _read(self, root: Element, source: Source, floating_base: bool | None):
        self._values.examine(source, root, f"<sdf> (line {root.line})")
        worlds, models = root.all("world"), root.all("model")
        if len(worlds) + bool(models) != 1:
            self.builder.problem(
                f"<sdf> (line {root.line}) has {len(worlds)} <world> and {len(models)} <model>; "
                "expected one world, or models and no world"
            )
        world = self._world.scope
        if worlds:
            where = source.where(worlds[0])
            self.builder.gravity = self._values.numbers(where, worlds[0], "gravity", 3, (0, 0, -9.8))
            self._declare(world, worlds[0], source)
        elif len(models) == 1:
            self._model(world, models[0], source, prefix="")
        else:
            for model in models:
                self._model(world, model, source)
        named = worlds or models
        self.builder.name = named[0].attributes.get("name", "") if named else ""
        if not self._links:
            self.builder.problem("there is no link; a robot has at least one")
        self._build(floating_base)

    # Declaration of all that has a name.

    def _declare(self, scope: Scope, element: Element, source: Source):
        children = [child for child in element.children if child.namespace == element.namespace]
        if source.version < (1, 7):
            # There a joint may have the name of a link, which is then that of the link.
            children.sort(key=lambda child: child.tag != "link")
        for child in children:
            match child.tag:
                case "link":
                    self._link(scope, child, source)
                case "joint":
                    self._joint(scope, child, source)
                case "frame":
                    self._frame(scope, child, source)
                case "model":
                    self._model(scope, child, source)
                case "include":
                    self._include(scope, child, source)

    def _claim(self, scope: Scope, element: Element, source: Source, name: str | None = None) -> str:
        """The name of an element in its scope; records a problem if it has none, or another one's."""
        name = name or element.attributes.get("name", "").strip()
        where = source.where(element)
        if not name:
            self.builder.problem(f"<{element.tag}> ({source.label}line {element.line}) has no name")
            name = f"{element.tag} on line {element.line}"
        elif name in (WORLD, MODEL) or (name.startswith("__") and name.endswith("__")):
            self.builder.problem(f"{where}: the name {short(name)} has a meaning of its own; give it another one")
        if name in scope.names:
            # Before 1.7, links and joints had names of their own.
            taken = scope.names[name]
            if source.version >= (1, 7) or (taken.link is not None) == (element.tag == "link"):
                self.builder.problem(f"{where}: the name is taken by {taken.where}")
            return self._unused(scope, name)
        return name

    def _add_place(self, scope: Scope, name: str, place: Place):
        scope.names[name] = place
        self._places.append(place)

    @staticmethod
    def _unused(scope: Scope, name: str) -> str:
        while name in scope.names:
            name += "_"
        return name

    def _link(self, scope: Scope, element: Element, source: Source):
        name, where = self._claim(scope, element, source), source.where(element)
        own, base = self._values.pose(where, element)
        full = self._link_names.claim(scope.prefix + name)
        place = Place(where, scope, base or scope.place, own, link=full)
        self._add_place(scope, name, place)
        self._links[full] = _Link(
            full, element, source, place, scope, scope.robot, self._flag_of(scope, element, where)
        )
        if not self._values.flag(where, element, "gravity", True):
            self.weightless.append(full)

    def _flag_of(self, scope: Scope, element: Element, where: str) -> bool:
        return self._values.flag(where, element, "self_collide", scope.self_collide)

    def _joint(self, scope: Scope, element: Element, source: Source):
        name, where = self._claim(scope, element, source), source.where(element)
        own, base = self._values.pose(where, element)
        child = self._values.text(element, "child") or ""
        place = Place(where, scope, base or child or scope.place, own, carrier=child or scope.place)
        self._add_place(scope, name, place)
        self._joints[place] = scope.prefix + element.attributes.get("name", name).strip(), element, source

    def _frame(self, scope: Scope, element: Element, source: Source):
        name, where = self._claim(scope, element, source), source.where(element)
        own, base = self._values.pose(where, element)
        carrier = element.attributes.get("attached_to") or scope.place
        place = Place(where, scope, base or carrier, own, carrier=carrier)
        self._add_place(scope, name, place)
        self._named_frames.append((scope.prefix + name, place))

    def _model(
        self,
        around: Scope,
        element: Element,
        source: Source,
        include: tuple[Element, Source] | None = None,
        prefix: str | None = None,
    ):
        """Declare a model, which may be included by an element."""
        if around.depth >= MAX_NESTED:
            raise ModelError(f"{self.builder.source}: models are nested more than {MAX_NESTED} deep")
        by, by_source = include or (element, source)
        where, by_where = source.where(element), by_source.where(by)
        merged = include is not None and by.attributes.get("merge", "false").lower() in ("true", "1")
        given = None if include is None else self._values.text(by, "name")
        name = (
            self._unused(around, f"_merged__{given or element.attributes.get('name', '')}__model__")
            if merged
            else (self._claim(around, element, source, given))
        )
        own, base = self._values.pose(where, element)
        placement = element.attributes.get("placement_frame") or None
        static = self._values.flag(where, element, "static", False)
        if include is not None:
            if by.first("pose") is not None:
                own, base = self._values.pose(by_where, by)
            placement = self._values.text(by, "placement_frame") or placement
            static = self._values.flag(by_where, by, "static", static)
        if prefix is None:
            prefix = around.prefix if merged else f"{around.prefix}{name}::"
        self_collide = self._values.flag(where, element, "self_collide", False)
        inner = Scope(around, prefix, static=static, self_collide=self_collide)
        inner.canonical = element.attributes.get("canonical_link") or None
        inner.place = Place(by_where, around, base or around.place, own, placement=placement, inside=inner)
        self._add_place(around, name, inner.place)
        around.inner[name] = inner
        self._declare(inner, element, source)
        if merged:
            for key, place in inner.names.items():
                if key in around.names:
                    self.builder.problem(f"{place.where}: the name is taken by {around.names[key].where}")
                around.names[key] = place
            around.inner.update(inner.inner)

    def _include(self, scope: Scope, element: Element, source: Source):
        uri = self._values.text(element, "uri")
        if not uri:
            self.builder.problem(f"<include> ({source.label}line {element.line}) has no <uri>")
            return
        found = self._includes.model(uri, source)
        if found is None:
            return
        if isinstance(found, str):
            self.builder.problem(f"<include> ({source.label}line {element.line}): {found}")
            return
        model, inner = found
        self._values.examine(inner, model, inner.where(model))
        self._model(scope, model, inner, include=(element, source))

    # The tree.

    def _build(self, floating_base: bool | None):
        for place in self._joints:
            # Which `_end` refuses.
            for end in ("base", "carrier"):
                if (
                    isinstance(name := getattr(place, end), str)
                    and name == self._child(place)
                    and not place.scope.find(name)
                ):
                    setattr(place, end, place.scope.place)
        for place in self._places:
            self._frames.pose(place)
            self._frames.carrier(place)
        edges = self._edges()
        below = self._tree(edges)
        kept = set(below.values())
        self.closing = [edge for edge in edges if edge not in kept]
        names = Names(*(edge.name for edge in edges))
        free = [name for name, link in self._links.items() if name not in below and not link.scope.static]
        fixed = self._changed_bases(floating_base, free, below)
        for link in self._links.values():
            edge = below.get(link.name)
            if link.name in fixed or link.scope.static:
                self._add(link, Fixed(), WORLD, self._frames.pose(link.place), names.claim(link.name), {})
            elif edge is None:
                self._add(link, Free(), WORLD, pose(), names.claim(link.name), {})
            else:
                self._add_moved(link, edge)
        for name, place in self._named_frames:
            carrier = self._frames.carrier(place)
            self.builder.add_frame(
                self._link_names.claim(name), carrier.link or WORLD, self._frames.between(carrier, place)
            )
        for link in self._links.values():
            self._add_shapes(link)
        self._keep_apart()
        self.constraints = tuple(map(self._closed, self.closing))

    def _edges(self) -> list[_Edge]:
        """The joints that have two ends."""
        edges = []
        for place, (name, element, source) in self._joints.items():
            where, scope, kind = place.where, place.scope, element.attributes.get("type")
            if kind == "gearbox":
                self._values.notes.add("ignored, no such joint in jdyn", f"gearbox {name!r}")
                continue
            if kind not in _KINDS:
                got = "missing" if kind is None else short(kind)
                self.builder.problem(f"{where}: type is {got}, expected one of {', '.join(_KINDS)}")
                continue
            parent, child = (self._end(element, tag, where, scope) for tag in ("parent", "child"))
            if parent is None or child is None:
                continue
            if child.link == WORLD:
                self.builder.problem(f"{where}: its child is the world; make the world the parent")
            elif parent is child:
                self.builder.problem(f"{where}: its parent and its child are both link {short(child.link or '')}")
            elif self._links[str(child.link)].scope.static:
                self._values.notes.add("ignored, joints of static models", repr(name))
            else:
                edges.append(_Edge(name, kind, element, source, place, str(parent.link), str(child.link)))
        return edges

    def _child(self, place: Place) -> str:
        """What a joint names as its child."""
        return self._values.text(self._joints[place][1], "child") or ""

    def _end(self, element: Element, tag: str, where: str, scope: Scope) -> Place | None:
        """The link, or the world, at one end of a joint."""
        name = self._values.text(element, tag)
        if not name:
            self.builder.problem(f"{where}: it has no <{tag}>")
            return None
        place = scope.find(name)
        if place is None and name == WORLD:
            place = self._world
        if place is None:
            self.builder.problem(f"{where}: its {tag} {short(name)} does not exist")
            return None
        return self._frames.carrier(place)

    def _tree(self, edges: list[_Edge]) -> dict[str, _Edge]:
        """The joint that carries each link in the tree. Others close loops; those that cannot are in the tree, if there
        is a way."""
        below: dict[str, _Edge] = {}
        for edge in edges:
            other = below.get(edge.child)
            if other is None or (other.kind in _CLOSING and edge.kind not in _CLOSING):
                below[edge.child] = edge
            elif edge.kind not in _CLOSING:
                self._refuse_loop(edge, other)
        done, order = set(), {name: number for number, name in enumerate(self._links)}
        for start in self._links:
            path: dict[str, None] = {}
            name = start
            while name in below and name not in done and name not in path:
                path[name] = None
                name = below[name].parent
            if name in path:
                around = [*path][[*path].index(name) :]
                ways = [link for link in around if below[link].kind in _CLOSING]
                if not ways:
                    self._refuse_loop(below[name], below[around[-1]])
                del below[min(ways or around, key=order.__getitem__)]
            done.update(path)
        return below

    def _refuse_loop(self, edge: _Edge, other: _Edge):
        self.builder.problem(
            f"{edge.place.where}: it closes a loop with {other.place.where}; jdyn closes loops by revolute, "
            "continuous, ball and fixed joints"
        )

    def _changed_bases(self, floating: bool | None, free: list[str], below: dict[str, _Edge]) -> set[str]:
        """Links that are fixed though the file frees them; links that are freed leave `below`."""
        if floating is False:
            return set(free)
        if floating and not free:
            bolts = [edge for edge in below.values() if edge.parent == WORLD and edge.kind == "fixed"]
            if len(bolts) == 1:
                del below[bolts[0].child]
            else:
                got = enumerated([repr(edge.child) for edge in bolts]) or "none"
                self.builder.problem(f"floating_base=True needs one link that is fixed to the world; got {got}")
        return set()

    # Links and joints.

    def _add(self, link: _Link, joint: Joint | Fixed, parent: str, placement: Transform, name: str, properties: dict):
        self.builder.add_link(
            link.name, joint, parent=parent, placement=placement, joint_name=name, **self._inertial(link), **properties
        )

    def _add_moved(self, link: _Link, edge: _Edge):
        """Add a link that a joint moves, and a frame at the point about which it turns, if that is elsewhere."""
        kind, properties = self._motion(edge, link)
        parent = edge.parent
        where = self._frames.between(self._place(parent), link.place)
        anchor = np.asarray(self._frames.between(link.place, edge.place).translation)
        if isinstance(kind, Fixed | Prismatic) or np.max(np.abs(anchor)) < _NEAR:
            self._add(link, kind, parent, where, edge.name, properties)
            return
        moved = self._link_names.claim(f"{link.name}/{edge.name}")
        self.builder.add_link(
            moved, kind, parent=parent, placement=where @ _shift(anchor), joint_name=edge.name, **properties
        )
        self._add(link, Fixed(), moved, _shift(-anchor), f"{moved}_fixed", {})

    def _place(self, link: str) -> Place:
        return self._world if link == WORLD else self._links[link].place

    def _axis(self, edge: _Edge, axis: Element | None, link: Place, default: tuple[float, ...]) -> np.ndarray:
        """Direction of an axis in the axes of a link."""
        where, xyz = edge.place.where, None if axis is None else axis.first("xyz")
        if axis is None:
            self.builder.problem(
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
                self.builder.problem(f"{where}: expressed_in is {short(name)}, which does not exist")
            frame = found or frame
        elif in_model:
            frame = edge.place.scope.place
        return self._frames.between(link, frame).rotation @ direction  # type: ignore[return-value]

    def _motion(self, edge: _Edge, link: _Link) -> tuple[Joint | Fixed, dict]:
        """The joint and its properties, in the form that the builder expects."""
        where, axes = edge.place.where, [edge.element.first("axis"), edge.element.first("axis2")]
        if edge.kind == "fixed":
            return Fixed(), {}
        if edge.kind == "ball":
            if any(axis is not None for axis in axes):
                self._values.notes.add("ignored, no meaning for a ball joint", f"axes of {edge.name!r}")
            return Ball(), {}
        first = self._axis(edge, axes[0], link.place, (0, 0, 1))
        if edge.kind in _TWO_AXES:
            second = self._axis(edge, axes[1], link.place, (0, 0, 1))
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
                    self.builder.problem(f"{where}: <thread_pitch> is 0, expected another number")
                pitch = -2 * np.pi / (turns or 1.0)
            return Helical(first, pitch / (2 * np.pi)), properties  # type: ignore[arg-type]
        kind = {"revolute": Revolute, "continuous": Continuous, "prismatic": Prismatic}[edge.kind]
        return kind(first), properties

    def _properties(self, edge: _Edge, axis: Element | None, *, turns: bool) -> dict[str, Any]:
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

    def _mimic(self, edge: _Edge, axis: Element | None) -> Mimic | None:
        mimic = None if axis is None else axis.first("mimic")
        if mimic is None:
            return None
        where, leader = edge.place.where, mimic.attributes.get("joint", "")
        found = edge.place.scope.find(leader)
        if found is None or found not in self._joints:
            self.builder.problem(f"{where}: it mimics joint {short(leader)}, which does not exist")
            return None
        ratio, offset, reference = (
            self._values.number(where, mimic, tag, default)
            for tag, default in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        )
        return Mimic(self._joints[found][0], ratio, offset - ratio * reference)

    def _inertial(self, link: _Link) -> dict:
        where, inertial, values = link.place.where, link.element.first("inertial"), self._values
        if inertial is None:
            if not link.scope.static:
                values.notes.add("no <inertial>, which means 1 kg and 1 kg m² about each axis", repr(link.name))
        elif inertial.attributes.get("auto", "false").lower() in ("true", "1"):
            places = {number: self._placed(link, each) for number, each in enumerate(link.element.all("collision"))}
            found = automatic_inertia(values, link.source, link.element, places)
            return {} if found is None else dict(zip(("mass", "com", "inertia"), found, strict=True))
        inertia = None if inertial is None else inertial.first("inertia")
        X, base = (pose(), None) if inertial is None else values.pose(where, inertial)
        if base is not None:
            values.notes.add("ignored, without a meaning in SDFormat", "relative_to of the <pose> of <inertial>")
        xx, xy, xz, yy, yz, zz = (
            values.number(where, inertia, f"i{key}", float(key[0] == key[1]))
            for key in ("xx", "xy", "xz", "yy", "yz", "zz")
        )
        moments = X.rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ X.rotation.T
        return {"mass": values.number(where, inertial, "mass", 1.0), "com": X.translation, "inertia": moments}

    # Shapes.

    def _add_shapes(self, link: _Link):
        for element in link.element.children:
            if element.tag in ("visual", "collision") and element.namespace == link.element.namespace:
                add_shape(self._values, link.source, link.name, element, self._placed(link, element))

    def _placed(self, link: _Link, element: Element) -> Transform:
        """The pose of a shape in its link."""
        where = link.source.where(element)
        own, base = self._values.pose(where, element)
        if base is None:
            return own
        found = link.scope.find(base)
        if found is None:
            self.builder.problem(f"{where}: the frame of its pose is {short(base)}, which does not exist")
        return self._frames.between(link.place, found or link.place) @ own

    def _keep_apart(self):
        """Keep links of one robot from touching each other, where the file does not say that they do."""
        robots: dict[Scope, list[_Link]] = {}
        for link in self._links.values():
            if not link.self_collide and link.element.first("collision") is not None:
                robots.setdefault(link.robot, []).append(link)
        for robot, links in robots.items():
            if len(links) > MAX_APART:
                self.builder.problem(
                    f"{robot.place.where}: it has {len(links)} links that do not touch each other, expected at most "
                    f"{MAX_APART}; add <self_collide>true</self_collide>"
                )
                continue
            for i, link in enumerate(links):
                for other in links[:i]:
                    self.builder.exclude(other.name, link.name)

    # All but the mechanism.

    def _closed(self, edge: _Edge) -> Constraint:
        """The constraint that a joint is which closes a loop."""
        dynamics = [axis.first(tag) for axis in edge.element.all("axis") for tag in ("limit", "dynamics")]
        if any(part is not None for part in dynamics):
            self._values.notes.add("ignored, of joints that close loops", f"<limit> and <dynamics> of {edge.name!r}")
        first, second = self._place(edge.parent), self._place(edge.child)
        frames = edge.parent, edge.child
        points = [self._frames.between(place, edge.place).translation for place in (first, second)]
        if edge.kind == "fixed":
            return Weld(*frames, pose=self._frames.between(first, second))
        if edge.kind == "ball":
            return Connect(*frames, *points)
        axis = edge.element.first("axis")
        axes = [self._axis(edge, axis, place, (0, 0, 1)) for place in (first, second)]
        return Hinge(*frames, *axes, *points)

    def configurations(self, model: Model) -> dict[str, Float[Array, " nq"]]:
        """The pose in which the file is written, in coordinates of a model."""
        q = np.array(model.expand(model.neutral()), float)
        for body, name in enumerate(model.body_names):
            if model.topology.kinds[body] is Free and name in self._links:
                X = self._frames.pose(self._links[name].place)
                x, y, z, w = Rotation.from_matrix(X.rotation).as_quat()
                start = model.topology.q_slice(body).start
                q[start : start + 7] = (*X.translation, w, x, y, z)
        return {"qpos0": jax.device_put(q[np.array(model.topology.independent_q, int)].astype(model.dtype))}

    def elements(self, model: Model) -> tuple[CarriedWeight, ...]:
        """Forces that carry the links which gravity does not act on."""
        carried, masses, points = [], [], []
        for name in self.weightless:
            inertial = self._inertial(self._links[name])
            body, X = carrier_of(model, name, Transform(np.eye(3), inertial["com"]))  # type: ignore[arg-type]
            if body >= 0 and inertial["mass"]:
                carried.append(model.body_names[body])
                masses.append(inertial["mass"])
                points.append(np.asarray(X.translation, float))
        return (CarriedWeight(tuple(carried), np.array(masses), np.stack(points)),) if carried else ()


def _shift(translation: np.ndarray) -> Transform:
    return Transform(np.eye(3), translation)  # type: ignore[arg-type]
