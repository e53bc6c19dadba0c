"""SDF files to models: the links, joints, frames and shapes of SDFormat 1.4 to 1.12, with models in models.

Each link becomes a body with the same name and frame, except that

- a joint that turns its child about a point other than the child's origin moves a frame at that point, which is called
  `link/joint`, and the link becomes a frame fixed to it;
- a link that is fixed to another one, or to the world, is lumped into that and becomes a frame. Frames stay frames.

Source: sdformat.org/spec; the defaults are those of libsdformat.
"""

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
from jdyn.io.sdf_declarations import Declarations, Link
from jdyn.io.sdf_frames import WORLD, Frames, Place, Scope
from jdyn.io.sdf_includes import NEWEST, OLDEST, Includes, version_of
from jdyn.io.sdf_joints import CLOSING, KINDS, Edge, Joints
from jdyn.io.sdf_shapes import add_shape
from jdyn.io.sdf_values import Source, Values
from jdyn.io.xml import Element, parse, read
from jdyn.model import (
    Builder,
    Constraint,
    Fixed,
    Free,
    Joint,
    Model,
    ModelError,
    ModelWarning,
    Prismatic,
    pose,
)
from jdyn.model.frames import carrier_of
from jdyn.model.shapes import HULL_VERTICES
from jdyn.spatial import Transform
from jdyn.terminal.messages import enumerated, short

# Links of one model, of which each pair is told not to touch.
MAX_APART = 1000
# Distance that is what rounding makes of zero, in units of a metre.
_NEAR = 1e-12


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
        includes = Includes(package_dirs)
        self._frames = Frames(self.builder.problem)
        self._names = Declarations(self._values, includes)
        path = () if folder is None else (str(source),)
        self._names.read(root, Source("", self._version(root), includes.folders(folder), path))
        self._links, self.weightless = self._names.links, self._names.weightless
        names = {place: name for place, (name, _, _) in self._names.joints.items()}
        self._joints = Joints(self._values, self._frames, names)
        self.closing: list[Edge] = []
        self.constraints: tuple[Constraint, ...] = ()
        self._build(floating_base)
        self._values.notes.report(self.builder)

    def _version(self, root: Element) -> tuple[int, ...]:
        version, text = version_of(root), root.attributes.get("version")
        if version is None or version < OLDEST:
            got = "missing" if text is None else short(text)
            self.builder.problem(f"<sdf> (line {root.line}): version is {got}, expected 1.4 to 1.12")
        elif version > NEWEST:
            self._values.notes.add("read as 1.12, unknown SDF version", short(text))
        return NEWEST if version is None else version

    # The tree.

    def _build(self, floating_base: bool | None):
        for place in self._names.joints:
            # Which `_end` refuses.
            for end in ("base", "carrier"):
                if (
                    isinstance(name := getattr(place, end), str)
                    and name == self._child(place)
                    and not place.scope.find(name)
                ):
                    setattr(place, end, place.scope.place)
        for place in self._names.places:
            self._frames.pose(place)
            self._frames.carrier(place)
        edges = self._edges()
        below = self._tree(edges)
        kept = set(below.values())
        self.closing = [edge for edge in edges if edge not in kept]
        self._joint_names = Names(*(edge.name for edge in edges))
        free = [name for name, link in self._links.items() if name not in below and not link.scope.static]
        fixed = self._changed_bases(floating_base, free, below)
        for link in self._links.values():
            edge = below.get(link.name)
            if link.name in fixed or link.scope.static:
                self._add(link, Fixed(), WORLD, self._frames.pose(link.place), self._joint_names.claim(link.name), {})
            elif edge is None:
                self._add(link, Free(), WORLD, pose(), self._joint_names.claim(link.name), {})
            else:
                self._add_moved(link, edge)
        for name, place in self._names.frames:
            carrier = self._frames.carrier(place)
            self.builder.add_frame(
                self._names.link_names.claim(name), carrier.link or WORLD, self._frames.between(carrier, place)
            )
        for link in self._links.values():
            self._add_shapes(link)
        self._keep_apart()
        self.constraints = tuple(
            self._joints.constraint(edge, self._place(edge.parent), self._place(edge.child)) for edge in self.closing
        )

    def _edges(self) -> list[Edge]:
        """The joints that have two ends."""
        edges = []
        for place, (name, element, source) in self._names.joints.items():
            where, scope, kind = place.where, place.scope, element.attributes.get("type")
            if kind == "gearbox":
                self._values.notes.add("ignored, no such joint in jdyn", f"gearbox {name!r}")
                continue
            if kind not in KINDS:
                got = "missing" if kind is None else short(kind)
                self.builder.problem(f"{where}: type is {got}, expected one of {', '.join(KINDS)}")
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
                edges.append(Edge(name, kind, element, source, place, str(parent.link), str(child.link)))
        return edges

    def _child(self, place: Place) -> str:
        """Name of the child of a joint, as the file has it."""
        return self._values.text(self._names.joints[place][1], "child") or ""

    def _end(self, element: Element, tag: str, where: str, scope: Scope) -> Place | None:
        """The link, or the world, at one end of a joint."""
        name = self._values.text(element, tag)
        if not name:
            self.builder.problem(f"{where}: it has no <{tag}>")
            return None
        place = scope.find(name)
        if place is None and name == WORLD:
            place = self._names.world
        if place is None:
            self.builder.problem(f"{where}: its {tag} {short(name)} does not exist")
            return None
        return self._frames.carrier(place)

    def _tree(self, edges: list[Edge]) -> dict[str, Edge]:
        """The joint that carries each link in the tree. Others close loops; those that cannot are in the tree, if there
        is a way."""
        below: dict[str, Edge] = {}
        for edge in edges:
            other = below.get(edge.child)
            if other is None or (other.kind in CLOSING and edge.kind not in CLOSING):
                below[edge.child] = edge
            elif edge.kind not in CLOSING:
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
                ways = [link for link in around if below[link].kind in CLOSING]
                if not ways:
                    self._refuse_loop(below[name], below[around[-1]])
                del below[min(ways or around, key=order.__getitem__)]
            done.update(path)
        return below

    def _refuse_loop(self, edge: Edge, other: Edge):
        self.builder.problem(
            f"{edge.place.where}: it closes a loop with {other.place.where}; jdyn closes loops by revolute, "
            "continuous, ball and fixed joints"
        )

    def _changed_bases(self, floating: bool | None, free: list[str], below: dict[str, Edge]) -> set[str]:
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

    def _add(self, link: Link, joint: Joint | Fixed, parent: str, placement: Transform, name: str, properties: dict):
        self.builder.add_link(
            link.name, joint, parent=parent, placement=placement, joint_name=name, **self._inertial(link), **properties
        )

    def _add_moved(self, link: Link, edge: Edge):
        """Add a link that a joint moves, and a frame at the point about which it turns, if that is elsewhere."""
        kind, properties = self._joints.motion(edge, link.place)
        parent = edge.parent
        where = self._frames.between(self._place(parent), link.place)
        anchor = np.asarray(self._frames.between(link.place, edge.place).translation)
        if isinstance(kind, Fixed | Prismatic) or np.max(np.abs(anchor)) < _NEAR:
            self._add(link, kind, parent, where, edge.name, properties)
            return
        moved = self._names.link_names.claim(f"{link.name}/{edge.name}")
        self.builder.add_link(
            moved, kind, parent=parent, placement=where @ pose(anchor), joint_name=edge.name, **properties
        )
        self._add(link, Fixed(), moved, pose(-anchor), self._joint_names.claim(link.name), {})

    def _place(self, link: str) -> Place:
        return self._names.world if link == WORLD else self._links[link].place

    def _inertial(self, link: Link) -> dict:
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

    def _add_shapes(self, link: Link):
        for element in link.element.children:
            if element.tag in ("visual", "collision") and element.namespace == link.element.namespace:
                add_shape(self._values, link.source, link.name, element, self._placed(link, element))

    def _placed(self, link: Link, element: Element) -> Transform:
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
        robots: dict[Scope, list[Link]] = {}
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
            body, X = carrier_of(model, name, pose(inertial["com"]))
            if body >= 0 and inertial["mass"]:
                carried.append(model.body_names[body])
                masses.append(inertial["mass"])
                points.append(np.asarray(X.translation, float))
        return (CarriedWeight(tuple(carried), np.array(masses), np.stack(points)),) if carried else ()
