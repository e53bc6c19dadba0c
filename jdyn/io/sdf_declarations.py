"""All that has a name in an SDF document: links, joints, frames, and models in models."""

import dataclasses

from jdyn.io.mjcf_names import Names
from jdyn.io.sdf_frames import MODEL, WORLD, Place, Scope
from jdyn.io.sdf_includes import MAX_NESTED, Includes
from jdyn.io.sdf_values import Source, Values
from jdyn.io.xml import Element
from jdyn.model import ModelError
from jdyn.terminal.messages import short


@dataclasses.dataclass(eq=False)
class Link:
    """One link: its element and document, its frame, and the model around it."""

    name: str
    element: Element
    source: Source
    place: Place
    scope: Scope
    # The models around it that are in no other model, and whether its shapes touch others of that.
    robot: Scope
    self_collide: bool


class Declarations:
    """Names of a document, and what they stand for.

    Args:
        values: Reads texts.
        includes: Finds included models.

    Attributes:
        world: The frame of the world.
        links: All links by their names in the model.
        joints: The name, the element and the document of each joint, by its frame.
        frames: Named frames with their names in the model.
        places: All frames.
        link_names: Names that links and frames of the model have.
        weightless: Names of links that gravity does not act on.
    """

    def __init__(self, values: Values, includes: Includes):
        self._values, self._builder, self._includes = values, values.builder, includes
        self.world = Scope().place
        self.links: dict[str, Link] = {}
        self.joints: dict[Place, tuple[str, Element, Source]] = {}
        self.frames: list[tuple[str, Place]] = []
        self.places: list[Place] = []
        self.link_names = Names(WORLD)
        self.weightless: list[str] = []

    def read(self, root: Element, source: Source) -> None:
        """Declare all of a document."""
        self._values.examine(source, root, f"<sdf> (line {root.line})")
        worlds, models = root.all("world"), root.all("model")
        if len(worlds) + bool(models) != 1:
            self._builder.problem(
                f"<sdf> (line {root.line}) has {len(worlds)} <world> and {len(models)} <model>; "
                "expected one world, or models and no world"
            )
        world = self.world.scope
        if worlds:
            where = source.where(worlds[0])
            self._builder.gravity = self._values.numbers(where, worlds[0], "gravity", 3, (0, 0, -9.8))
            self._declare(world, worlds[0], source)
        elif len(models) == 1:
            self._model(world, models[0], source, prefix="")
        else:
            for model in models:
                self._model(world, model, source)
        named = worlds or models
        self._builder.name = named[0].attributes.get("name", "") if named else ""
        if not self.links:
            self._builder.problem("there is no link; a robot has at least one")

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
            self._builder.problem(f"<{element.tag}> ({source.label}line {element.line}) has no name")
            name = f"{element.tag} on line {element.line}"
        elif name in (WORLD, MODEL) or (name.startswith("__") and name.endswith("__")):
            self._builder.problem(f"{where}: the name {short(name)} has a meaning of its own; give it another one")
        if name in scope.names:
            # Before 1.7, links and joints had names of their own.
            taken = scope.names[name]
            if source.version >= (1, 7) or (taken.link is not None) == (element.tag == "link"):
                self._builder.problem(f"{where}: the name is taken by {taken.where}")
            return self._unused(scope, name)
        return name

    def _add_place(self, scope: Scope, name: str, place: Place):
        scope.names[name] = place
        self.places.append(place)

    @staticmethod
    def _unused(scope: Scope, name: str) -> str:
        while name in scope.names:
            name += "_"
        return name

    def _link(self, scope: Scope, element: Element, source: Source):
        name, where = self._claim(scope, element, source), source.where(element)
        own, base = self._values.pose(where, element)
        full = self.link_names.claim(scope.prefix + name)
        place = Place(where, scope, base or scope.place, own, link=full)
        self._add_place(scope, name, place)
        self.links[full] = Link(full, element, source, place, scope, scope.robot, self._flag_of(scope, element, where))
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
        self.joints[place] = scope.prefix + element.attributes.get("name", name).strip(), element, source

    def _frame(self, scope: Scope, element: Element, source: Source):
        name, where = self._claim(scope, element, source), source.where(element)
        own, base = self._values.pose(where, element)
        carrier = element.attributes.get("attached_to") or scope.place
        place = Place(where, scope, base or carrier, own, carrier=carrier)
        self._add_place(scope, name, place)
        self.frames.append((scope.prefix + name, place))

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
            raise ModelError(f"{self._builder.source}: models are nested more than {MAX_NESTED} deep")
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
                    self._builder.problem(f"{place.where}: the name is taken by {around.names[key].where}")
                around.names[key] = place
            around.inner.update(inner.inner)

    def _include(self, scope: Scope, element: Element, source: Source):
        uri = self._values.text(element, "uri")
        if not uri:
            self._builder.problem(f"<include> ({source.label}line {element.line}) has no <uri>")
            return
        found = self._includes.model(uri, source)
        if found is None:
            return
        if isinstance(found, str):
            self._builder.problem(f"<include> ({source.label}line {element.line}): {found}")
            return
        model, inner = found
        self._values.examine(inner, model, inner.where(model))
        self._model(scope, model, inner, include=(element, source))
