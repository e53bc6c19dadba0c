"""Tables of who carries whom in a tree."""

import functools

import numpy as np

from jdyn.model import WORLD, Topology, Tree


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
