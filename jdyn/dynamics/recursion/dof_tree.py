"""The tree of single degrees of freedom, for recursions on numbers instead of matrices."""

import dataclasses
import functools
import itertools

from jdyn.model import WORLD, Free, Topology, Tree


@dataclasses.dataclass(frozen=True)
class DofTree(Tree):
    """Degrees of freedom as if each moved a body of its own.

    The first one of a joint follows the last one of the joint before, the others follow each other. A free base takes
    the place of the world, and its degrees of freedom are not in the tree.

    Attributes:
        parents: The degree of freedom before each one, -1 for those that stand on the world.
    """

    parents: tuple[int, ...]

    @functools.cached_property
    def v_offsets(self) -> tuple[int, ...]:
        return tuple(range(self.nb + 1))


@functools.lru_cache(maxsize=256)
def dof_tree(topology: Topology) -> DofTree:
    """The degrees of freedom of a topology, in the order of its full velocity."""
    base = Free.nv if topology.free_base else 0
    last = [offset - 1 - base for offset in topology.v_offsets[1:]]
    parents = [
        degree - 1 if degree > start - base else last[parent] if parent != WORLD else WORLD
        for (start, end), parent in zip(itertools.pairwise(topology.v_offsets), topology.parents, strict=True)
        for degree in range(start - base, end - base)
    ]
    return DofTree(tuple(max(parent, WORLD) for parent in parents[base:]))
