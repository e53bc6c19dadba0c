"""The trees of single degrees of freedom, for recursions on numbers instead of matrices."""

import dataclasses
import functools

import numpy as np

from jdyn.model import WORLD, Free, Topology, Tree


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
