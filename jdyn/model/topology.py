"""The static part of a model, which determines the compiled program: hashable, and without arrays."""

import abc
import dataclasses
import functools
import itertools

import numpy as np

from jdyn.model.joints import Free, Joint
from jdyn.terminal.messages import unknown

WORLD = -1


@dataclasses.dataclass(frozen=True)
class JointGroup:
    """All joints of one kind, with their indices in the whole model.

    Attributes:
        kind: The joint class.
        bodies: Child body of each joint.
        q: Indices of the joints' coordinates in the full configuration, one row per joint.
        v: Indices of the joints' coordinates in the full velocity, one row per joint.
    """

    kind: type[Joint]
    bodies: tuple[int, ...]
    q: tuple[tuple[int, ...], ...]
    v: tuple[tuple[int, ...], ...]

    def rows(self, which: str) -> np.ndarray:
        """`bodies`, or `q` or `v` with a row for each joint, also where there is none."""
        width = {"bodies": (), "q": (self.kind.nq,), "v": (self.kind.nv,)}[which]
        return np.array(getattr(self, which), int).reshape(len(self.bodies), *width)


class Tree(abc.ABC):
    """Tree of the bodies that a recursion visits.

    Attributes:
        parents: Parent of each body, which has a lower number; -1 for the world. Where trees stand on several roots,
            these are -1, -2, ...
    """

    parents: tuple[int, ...]

    @functools.cached_property
    @abc.abstractmethod
    def v_offsets(self) -> tuple[int, ...]:
        """Places where the degrees of freedom of each body's joint start; the last entry is their number."""

    @property
    def nb(self) -> int:
        """Number of bodies."""
        return len(self.parents)

    @property
    def roots(self) -> int:
        """Number of what trees stand on: the world alone, unless something moves in its place."""
        return 1

    @functools.cached_property
    def supports(self) -> tuple[tuple[int, ...], ...]:
        """For each body, the bodies on its path to the world, itself first."""
        paths: list[tuple[int, ...]] = []
        for body, parent in enumerate(self.parents):
            paths.append((body, *(paths[parent] if parent > WORLD else ())))
        return tuple(paths)


@dataclasses.dataclass(frozen=True)
class Topology(Tree):
    """Names and connections of a mechanism.

    Bodies are numbered parents first; joint `i` moves body `i`; the world is -1. The *full* coordinates include
    every joint; the model's own coordinates leave out joints that follow another one.

    Attributes:
        name: Name of the robot.
        body_names: One per body.
        joint_names: One per body.
        parents: Parent body of each body.
        kinds: Joint class of each body.
        frame_names: Frames fixed to bodies, in addition to the body frames.
        frame_bodies: The body that carries each frame.
        mimics: Pairs (follower, leader) of bodies whose joints are coupled; no leader is a follower.
    """

    name: str
    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    parents: tuple[int, ...]
    kinds: tuple[type[Joint], ...]
    frame_names: tuple[str, ...] = ()
    frame_bodies: tuple[int, ...] = ()
    mimics: tuple[tuple[int, int], ...] = ()

    @functools.cached_property
    def q_offsets(self) -> tuple[int, ...]:
        """Places where each joint's coordinates start in the full configuration; the last entry is its size."""
        return tuple(itertools.accumulate((kind.nq for kind in self.kinds), initial=0))

    @functools.cached_property
    def v_offsets(self) -> tuple[int, ...]:
        """Places where each joint's coordinates start in the full velocity; the last entry is its size."""
        return tuple(itertools.accumulate((kind.nv for kind in self.kinds), initial=0))

    @property
    def single_dof_joints(self) -> bool:
        """Tell whether joints have one degree of freedom each, but for those of free bases."""
        return all(kind.nv == 1 for body, kind in enumerate(self.kinds) if body not in self.bases)

    @functools.cached_property
    def bases(self) -> tuple[int, ...]:
        """Bodies that move freely in the world, each the base of a tree of its own; none if there is but one body."""
        free = (body for body in range(self.nb) if self.kinds[body] is Free and self.parents[body] == WORLD)
        return tuple(free) if self.nb > 1 else ()

    @functools.cached_property
    def groups(self) -> tuple[JointGroup, ...]:
        """Joints by kind, kinds in order of first appearance.

        Where nothing moves, one group without joints, so that what is computed joint by joint has its shape and type.
        """
        return tuple(self._group(kind) for kind in dict.fromkeys(self.kinds or (Free,)))

    def _group(self, kind: type[Joint]) -> JointGroup:
        bodies = tuple(body for body in range(self.nb) if self.kinds[body] is kind)
        q = tuple(tuple(range(self.q_offsets[b], self.q_offsets[b + 1])) for b in bodies)
        v = tuple(tuple(range(self.v_offsets[b], self.v_offsets[b + 1])) for b in bodies)
        return JointGroup(kind, bodies, q, v)

    @functools.cached_property
    def _followers(self) -> frozenset[int]:
        return frozenset(follower for follower, _ in self.mimics)

    @functools.cached_property
    def independent_q(self) -> tuple[int, ...]:
        """Full configuration coordinates that are coordinates of the model."""
        return self._independent(self.q_offsets)

    @functools.cached_property
    def independent_v(self) -> tuple[int, ...]:
        """Full velocity coordinates that are coordinates of the model."""
        return self._independent(self.v_offsets)

    def _independent(self, offsets):
        free = (body for body in range(self.nb) if body not in self._followers)
        return tuple(k for body in free for k in range(offsets[body], offsets[body + 1]))

    @property
    def ranged(self) -> tuple[np.ndarray, np.ndarray]:
        """Places in full q and v of coordinates that are single numbers, and so may have ends."""
        flat = [group for group in self.groups if group.kind.nq == group.kind.nv]
        in_q, in_v = ([i for group in flat for row in getattr(group, which) for i in row] for which in "qv")
        # Both in the order of the bodies.
        return np.sort(np.array(in_q, int)), np.sort(np.array(in_v, int))

    @property
    def q_names(self) -> tuple[str, ...]:
        """Name of each entry of q: its joint, with an index if the joint has several entries."""
        return self._coordinate_names("nq", self.independent_q)

    @property
    def v_names(self) -> tuple[str, ...]:
        """Name of each entry of v: its joint, with an index if the joint has several entries."""
        return self._coordinate_names("nv", self.independent_v)

    def _coordinate_names(self, size, independent):
        names = [
            joint if getattr(kind, size) == 1 else f"{joint}[{i}]"
            for joint, kind in zip(self.joint_names, self.kinds, strict=True)
            for i in range(getattr(kind, size))
        ]
        return tuple(names[i] for i in independent)

    def q_slice(self, body: int) -> slice:
        """The joint's coordinates in the full configuration."""
        return slice(self.q_offsets[body], self.q_offsets[body + 1])

    def v_slice(self, body: int) -> slice:
        """The joint's coordinates in the full velocity."""
        return slice(self.v_offsets[body], self.v_offsets[body + 1])

    def body(self, name: str) -> int:
        """Index of the body with this name."""
        if name in self.frame_names:
            body = self.frame_bodies[self.frame_names.index(name)]
            carrier = "the world" if body == WORLD else f"body {self.body_names[body]!r}"
            raise ValueError(f"{name!r} is not a body but a frame fixed to {carrier}; give the name of a body")
        return _find(name, self.body_names, "body")

    def joint(self, name: str) -> int:
        """Index of the joint with this name, which is also the index of the body it moves."""
        return _find(name, self.joint_names, "joint")


def _find(name: str, names: tuple[str, ...], what: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise ValueError(unknown(what, name, names)) from None
