"""The static part of a model, which determines the compiled program: hashable, and without arrays. Trees of its bodies
and of its degrees of freedom, and tables of who carries whom in them."""

import abc
import dataclasses
import functools
import itertools

import numpy as np

from jdyn.model.joints import Ball, Free, Joint
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
    def joint_widths(self) -> np.ndarray:
        """Number of degrees of freedom of each body's joint."""
        return np.diff(self.v_offsets)

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

    def place_of_joint(self, body: int) -> tuple[int, int]:
        """Place of a body's joint among the stacked ones: the number of its group, and its row there."""
        number = [group.kind for group in self.groups].index(self.kinds[body])
        return number, self.groups[number].bodies.index(body)

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
    def balls(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of ball joints in full q and v, a row for each; the angle of their rotation may have an end."""
        groups = [group for group in self.groups if issubclass(group.kind, Ball)]
        in_q, in_v = ([row for group in groups for row in getattr(group, which)] for which in "qv")
        return np.array(in_q, int).reshape(-1, Ball.nq), np.array(in_v, int).reshape(-1, Ball.nv)

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


@dataclasses.dataclass(frozen=True)
class DofTree(Tree):
    """Degrees of freedom as if each moved a body of its own.

    The first one of a joint follows the last one of the joint before, the others follow each other. Free bases are what
    trees stand on, in place of the world, and their degrees of freedom are not in the tree.

    Attributes:
        parents: The degree of freedom before each one; -1, -2, ... for those that stand on the roots, which are the
            ground if there are trees on it, and then the free bases.
        bases: The first degree of freedom of each free base, in the full velocity.
        grounded: Whether there are trees on the ground.
    """

    parents: tuple[int, ...]
    bases: tuple[int, ...]
    grounded: bool

    @functools.cached_property
    def v_offsets(self) -> tuple[int, ...]:
        return tuple(range(self.nb + 1))

    @property
    def roots(self) -> int:
        return max(1, self.grounded + len(self.bases))

    @functools.cached_property
    def degrees(self) -> np.ndarray:
        """The place of each degree of freedom in the full velocity."""
        return np.setdiff1d(np.arange(self.nb + Free.nv * len(self.bases)), self.of_bases)

    @functools.cached_property
    def of_bases(self) -> np.ndarray:
        """(6, bases): the places of those of the bases in the full velocity; (6,) if the only root is a base."""
        places = np.arange(Free.nv)[:, None] + np.array(self.bases, int)
        return places[:, 0] if self.roots == 1 and self.bases else places


@functools.lru_cache(maxsize=256)
def dof_tree(topology: Topology) -> DofTree:
    """The degrees of freedom of a topology, in the order of its full velocity."""
    bases = topology.bases
    grounded = any(parent == WORLD and body not in bases for body, parent in enumerate(topology.parents))
    root = {body: WORLD - row for row, body in enumerate(bases, start=int(grounded))}
    # Where each body's last degree of freedom is in the tree, or the root that the body is.
    last, parents = {WORLD: WORLD}, []
    for body, (kind, parent) in enumerate(zip(topology.kinds, topology.parents, strict=True)):
        if body in root:
            last[body] = root[body]
            continue
        for degree in range(kind.nv):
            parents.append(len(parents) - 1 if degree else last[parent])
        last[body] = len(parents) - 1
    return DofTree(tuple(parents), tuple(topology.v_offsets[body] for body in bases), grounded)


def support_mask(tree: Tree) -> np.ndarray:
    """(nb, nb): entry [i, j] is 1 where body i lies on the path from body j to the world, j itself included."""
    mask = np.zeros((tree.nb, tree.nb))
    for body, path in enumerate(tree.supports):
        mask[list(path), body] = 1
    return mask


def sibling_places(topology: Topology) -> np.ndarray:
    """(nb, children): 1 at each body's place among its parent's children; bodies on the world all have the first.

    A message multiplied by its body's row adds up to a stack of the children's messages.
    """
    siblings = {WORLD: 0}
    places = []
    for parent in topology.parents:
        places.append(siblings.setdefault(parent, 0))
        siblings[parent] += parent != WORLD
    return np.eye(max(places) + 1)[places]


@functools.lru_cache(maxsize=256)
def doubling_ancestors(topology: Topology) -> np.ndarray:
    """(steps, nb + 1): the 1st, 2nd, 4th, ... ancestor of every body; the world, which is its own, stands last."""
    world = topology.nb
    ancestors = np.array([world if parent == WORLD else parent for parent in (*topology.parents, WORLD)])
    steps = []
    while np.any(ancestors != world):
        steps.append(ancestors)
        ancestors = ancestors[ancestors]
    # Of a type that is the same with and without JAX' 64 bits.
    return np.array(steps, np.int32).reshape(-1, world + 1)


def dof_ancestors(topology: Topology) -> np.ndarray:
    """(nv_full, d): the degrees of freedom that carry each one, with earlier ones of its own joint; nv_full pads."""
    n, offsets = topology.v_offsets[-1], topology.v_offsets
    rows = []
    for body, path in enumerate(topology.supports):
        above = [k for other in path[1:] for k in range(offsets[other], offsets[other + 1])]
        rows += [above + list(range(offsets[body], k)) for k in range(offsets[body], offsets[body + 1])]
    width = max(map(len, rows), default=0)
    return np.array([row + [n] * (width - len(row)) for row in rows], int).reshape(n, width)


@functools.lru_cache(maxsize=256)
def coordinate_blocks(topology: Topology) -> tuple[np.ndarray, ...]:
    """Coordinates of the model that move together: those of each tree, and of trees that joints couple which follow
    others. The mass matrix is zero between blocks."""
    block = [path[-1] for path in topology.supports]
    for follower, leader in topology.mimics:
        block = [block[leader] if other == block[follower] else other for other in block]
    of_full = np.repeat(block, np.diff(topology.v_offsets))
    of_own = of_full[np.array(topology.independent_v, int)]
    return tuple(np.flatnonzero(of_own == each) for each in dict.fromkeys(of_own.tolist()))
