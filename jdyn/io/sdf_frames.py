"""Frames of an SDF document: their names in scopes, and their poses relative to each other.

Source: sdformat.org, "Pose frame semantics" and "Composition", of SDFormat 1.7 and later.
"""

import dataclasses
import functools
from collections.abc import Callable

from jdyn.model import pose
from jdyn.spatial import Transform
from jdyn.terminal.messages import short

WORLD = "world"
MODEL = "__model__"


@dataclasses.dataclass(eq=False)
class Place:
    """One frame: a link, a joint, a named frame, a model or the world.

    Attributes:
        where: Its name in messages.
        scope: Where its names are looked up.
        base: The frame that its pose is relative to, or the name of that; None for the world.
        own: Pose in that frame; of its `placement` frame, if it has one.
        carrier: The frame that it moves with, or the name of that; None for links and the world.
        link: Name of the link that it is; `"world"` for the world, None for others.
        placement: For a model, the name in it of the frame whose pose `own` is.
        inside: For a model, its scope.
    """

    where: str
    scope: "Scope"
    base: "Place | str | None"
    own: Transform
    carrier: "Place | str | None" = None
    link: str | None = None
    placement: str | None = None
    inside: "Scope | None" = None


class Scope:
    """The names of a model or of the world.

    Args:
        around: The scope around a model; None for the world.
        prefix: What stands before its names in the names of links and joints.
        static: Whether its links are fixed to the world, as those of models in such models are.
        self_collide: Whether links of it may touch each other, as those of models in such models may.

    Attributes:
        place: The frame of the model or of the world.
        names: Its frames by their names.
        inner: Its models by their names.
        canonical: Name of the link that a model moves with; its first one if left out.
        depth: How many models are around its names.
        robot: The outermost model around its names; the world for names of the world.
    """

    def __init__(
        self, around: "Scope | None" = None, prefix: str = "", *, static: bool = False, self_collide: bool = False
    ):
        self.prefix = prefix
        self.names: dict[str, Place] = {}
        self.inner: dict[str, Scope] = {}
        self.canonical: str | None = None
        self.place = Place(WORLD, self, None, pose(), link=WORLD)
        self.static = static or (around is not None and around.static)
        self.self_collide = self_collide or (around is not None and around.self_collide)
        self.depth = 0 if around is None else around.depth + 1
        self.robot: Scope = self if around is None or around.depth == 0 else around.robot

    def find(self, name: str) -> Place | None:
        """The frame of a name, such as `arm::hand`."""
        scope = self
        while True:
            if name == (WORLD if scope.place.link == WORLD else MODEL):
                return scope.place
            if name in scope.names:
                return scope.names[name]
            head, _, name = name.partition("::")
            if not name or head not in scope.inner:
                return None
            scope = scope.inner[head]

    @functools.cached_property
    def first_link(self) -> Place | None:
        """The first link of a model whose names are complete, or else of the models in it."""
        own = (place for place in self.names.values() if place.link is not None)
        return next(own, None) or next((x for inner in self.inner.values() if (x := inner.first_link)), None)


class Frames:
    """Poses of frames in the world, and the links that carry them.

    Args:
        problem: Records why a document is not valid.
    """

    def __init__(self, problem: Callable[[str], None]):
        self._problem = problem
        self._poses: dict[Place, Transform] = {}
        self._carriers: dict[Place, Place] = {}

    def pose(self, place: Place) -> Transform:
        """The pose of a frame in the world, where all coordinates of joints are zero."""
        chain: dict[Place, None] = {}
        at: Place | None = place
        while at is not None and at not in self._poses:
            if at in chain:
                self._problem(f"{place.where}: its pose is relative to itself, by {at.where}")
                self._poses[at] = pose()
                break
            chain[at] = None
            at = self._base(at)
        for link in reversed(chain):
            if link not in self._poses:
                base = self._base(link)
                own = self._own(link)
                self._poses[link] = own if base is None else self._poses[base] @ own
        return self._poses[place]

    def between(self, place: Place, other: Place) -> Transform:
        """The pose of the second frame in the first."""
        return self.pose(place).inverse() @ self.pose(other)

    def carrier(self, place: Place) -> Place:
        """The link, or the world, that a frame moves with."""
        seen: dict[Place, None] = {}
        at = place
        while at.link is None and at not in self._carriers:
            if at in seen:
                self._problem(f"{place.where}: it is attached to itself, by {at.where}")
                self._carriers[at] = self._world(at)
                break
            seen[at] = None
            at = self._carrier(at)
        found = self._carriers.get(at, at)
        self._carriers.update(dict.fromkeys(seen, found))
        return found

    def _carrier(self, place: Place) -> Place:
        if place.inside is not None:
            scope = place.inside
            if scope.canonical is not None:
                return self._named(place, scope, scope.canonical, "canonical_link")
            return scope.first_link or self._world(place)
        if isinstance(place.carrier, str):
            return self._named(place, place.scope, place.carrier, "the frame that carries it")
        return place.carrier or self._world(place)

    def _base(self, place: Place) -> Place | None:
        if isinstance(place.base, str):
            return self._named(place, place.scope, place.base, "the frame of its pose")
        return place.base

    def _own(self, place: Place) -> Transform:
        """Pose of a frame in its base."""
        if place.placement is None or place.inside is None:
            return place.own
        placed = self._named(place, place.inside, place.placement, "placement_frame")
        return place.own @ self._in_model(placed, place).inverse()

    def _in_model(self, place: Place, model: Place) -> Transform:
        """Pose of a frame in the frame of a model around it."""
        X, seen = pose(), {}
        at: Place | None = place
        while at is not None and at is not model and at not in seen:
            seen[at] = None
            X = self._own(at) @ X
            at = self._base(at)
        return X

    def _named(self, place: Place, scope: Scope, name: str, what: str) -> Place:
        found = scope.find(name)
        if found is None:
            self._problem(f"{place.where}: {what} is {short(name)}, which does not exist in {scope.place.where}")
            return self._world(place)
        return found

    def _world(self, place: Place) -> Place:
        scope = place.scope
        while scope.place.link != WORLD:
            scope = scope.place.scope
        return scope.place
