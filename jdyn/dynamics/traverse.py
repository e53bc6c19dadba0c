"""Recursions over the tree: the only place that knows the order in which bodies are visited.

Bodies of one depth form a level. Levels are visited one after another, all bodies of a level at once: outward
(a body after its parent) or inward (a body after its children). Consecutive levels of similar width form a run,
which is one `lax.scan` padded to its widest level. The compiled program grows with the number of runs, at most
`_MAX_RUNS`, and not with the number of bodies.

Recursions work on *packed* values: for every run a PyTree whose leaves have shape (levels, width, ...). `pack`
and `unpack` lead there and back. Step functions see one body.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jdyn.model import WORLD, Topology, taken

# More runs waste fewer padded slots but compile longer, since every run compiles its step function anew.
_MAX_RUNS = 4

# One entry a run.
Packed = tuple[Any, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """Consecutive levels visited by one loop.

    A slot that pads a level repeats a body of that level: it receives what that body receives, from its parent and
    from its children, and computes the same, but its parent does not count it. So padding is never singular where the
    tree is not: a massless body without its children would be.

    Attributes:
        bodies: (levels, width) the body in each slot.
        entry: (width, width of the level above) selects for each slot of the first level its parent's slot.
        links: (levels, width, width) the same between the levels of the run; the first one is the identity.
        exit: (width of the level above, width) adds up for each slot above the messages of its children.
        sums: (levels, width, width) the same between the levels of the run; the last one is the identity.
        nv: Largest number of degrees of freedom of a joint in the run.
    """

    bodies: np.ndarray
    entry: np.ndarray
    links: np.ndarray
    exit: np.ndarray
    sums: np.ndarray
    nv: int

    @functools.cached_property
    def straight(self) -> bool:
        """Whether every slot's parent is in the same slot of the level above."""
        return bool(np.all(self.links == np.eye(self.links.shape[-1])))


@functools.lru_cache(maxsize=256)
def schedule(topology: Topology) -> tuple[Run, ...]:
    """The runs of a tree, outward."""
    levels = _levels(topology.parents)
    joint_widths = [max(topology.kinds[body].nv for body in level) for level in levels]
    runs, above = [], [WORLD]
    for first, last in _partition([len(level) for level in levels], joint_widths):
        runs.append(_run(levels[first:last], above, topology.parents, max(joint_widths[first:last])))
        above = list(runs[-1].bodies[-1])
    return tuple(runs)


def _levels(parents: tuple[int, ...]) -> list[list[int]]:
    """Bodies by depth; within a level, children stand in the order of their parents."""
    children: dict[int, list[int]] = {}
    for body, parent in enumerate(parents):
        children.setdefault(parent, []).append(body)
    levels, level = [], children.get(WORLD, [])
    while level:
        levels.append(level)
        level = [child for body in level for child in children.get(body, [])]
    return levels


def _partition(sizes: list[int], joint_widths: list[int]) -> list[tuple[int, int]]:
    """Cut the levels into at most `_MAX_RUNS` runs with the least padding; a padded joint counts as well."""
    shapes = list(zip(sizes, joint_widths, strict=True))
    # Only boundaries between unlike levels can be worth a cut.
    cuts = [0, *(i for i in range(1, len(shapes)) if shapes[i] != shapes[i - 1]), len(shapes)]

    @functools.cache
    def best(start: int, runs: int) -> tuple[int, tuple[tuple[int, int], ...]]:
        if start == len(cuts) - 1:
            return 0, ()
        if runs == 0:
            return 1 << 60, ()
        options, size, width = [], 0, 0
        for end in range(start + 1, len(cuts)):
            size, width = max(size, sizes[cuts[start]], sizes[cuts[end - 1]]), max(width, joint_widths[cuts[end - 1]])
            cost, bounds = best(end, runs - 1)
            slots = (cuts[end] - cuts[start]) * size
            options.append((slots * (1 + width) + cost, ((cuts[start], cuts[end]), *bounds)))
        return min(options)

    return list(best(0, _MAX_RUNS)[1])


def _run(levels: list[list[int]], above: list[int], parents: tuple[int, ...], nv: int) -> Run:
    width, counts = max(len(level) for level in levels), [len(level) for level in levels]
    padded = [level + [level[0]] * (width - len(level)) for level in levels]
    pairs = list(itertools.pairwise([above, *padded]))
    links = [_parent_slots(level, up, parents) for up, level in pairs]
    sums = [_child_sums(level[:count], up, parents, width) for (up, level), count in zip(pairs, counts, strict=True)]
    one = np.eye(width)
    return Run(np.array(padded), links[0], np.array([one, *links[1:]]), sums[0], np.array([*sums[1:], one]), nv)


def _parent_slots(level: list[int], above: list[int], parents: tuple[int, ...]) -> np.ndarray:
    """One row a slot: 1 at its parent's first slot in the level above."""
    return np.eye(len(above))[[above.index(parents[body]) for body in level]]


def _child_sums(level: list[int], above: list[int], parents: tuple[int, ...], width: int) -> np.ndarray:
    """One row a slot of the level above, padding included: 1 at each of its children, which are not padding."""
    children = np.array([parents[body] for body in level])
    return np.pad(np.array(above)[:, None] == children, [(0, 0), (0, width - len(level))]).astype(float)


def _select(matrix, values):
    """The values that each row of the matrix selects, added up."""
    return jax.tree.map(lambda x: jnp.tensordot(jnp.asarray(matrix, x.dtype), x, 1), values)


def pack(topology: Topology, x: Any) -> Packed:
    """Arrange a PyTree of (nb, ...) arrays for traversal."""
    return tuple(jax.tree.map(lambda x, run=run: taken(x, run.bodies), x) for run in schedule(topology))


def unpack(topology: Topology, packed: Packed) -> Any:
    """Inverse of `pack`."""
    return _unpacked([run.bodies for run in schedule(topology)], topology.nb, packed)


def pack_coordinates(topology: Topology, x: Array, fill: float = 0) -> Packed:
    """Arrange full joint coordinates (nv_full,) for traversal: (levels, width, nv of the run), padded by `fill`."""
    x = jnp.append(x, jnp.asarray(fill, x.dtype))
    return tuple(taken(x, _coordinates(topology, run)) for run in schedule(topology))


def unpack_coordinates(topology: Topology, packed: Packed) -> Array:
    """Inverse of `pack_coordinates`."""
    return _unpacked([_coordinates(topology, run) for run in schedule(topology)], topology.v_offsets[-1], packed)


def _coordinates(topology: Topology, run: Run) -> np.ndarray:
    """(levels, width, nv): the full coordinate of each degree of freedom in each slot; one past the last for none."""
    offsets = np.array(topology.v_offsets)
    first, following = (x[run.bodies][..., None] for x in (offsets[:-1], offsets[1:]))
    coordinates = first + np.arange(run.nv)
    return np.where(coordinates < following, coordinates, offsets[-1])


def _unpacked(places: list[np.ndarray], size: int, packed: Packed) -> Any:
    """One array from those of all runs: `places` says what each slot holds, which others may repeat."""
    _, where = np.unique(np.concatenate([place.ravel() for place in places]), return_index=True)

    def merge(*parts):
        flat = [x.reshape(-1, *x.shape[place.ndim :]) for place, x in zip(places, parts, strict=True)]
        return taken(jnp.concatenate(flat), where[:size])

    return jax.tree.map(merge, *packed)


def outward(topology: Topology, step: Callable, world: Any, xs: Packed) -> Packed:
    """Visit parents before children.

    Args:
        topology: The tree.
        step: `step(parent_message, x) -> (message, y)` for one body.
        world: The world's message, a PyTree of the messages' shapes.
        xs: Packed inputs.

    Returns:
        Packed `y` of all bodies.
    """
    above, ys = jax.tree.map(lambda x: x[None], world), []
    for run, x in zip(schedule(topology), xs, strict=True):

        def visit(above, row, straight=run.straight):
            x, link = row
            return _at_every(step)(above if straight else _select(link, above), x)

        above, y = _loop(visit, _select(run.entry, above), (x, run.links))
        ys.append(y)
    return tuple(ys)


def inward(topology: Topology, step: Callable, zero: Any, xs: Packed) -> Packed:
    """Visit children before parents.

    Args:
        topology: The tree.
        step: `step(sum of children's messages, x) -> (message, y)` for one body.
        zero: The sum of no messages, a PyTree of the messages' shapes.
        xs: Packed inputs.

    Returns:
        Packed `y` of all bodies.
    """
    return gathered(topology, step, zero, xs)[1]


def gathered(topology: Topology, step: Callable, zero: Any, xs: Packed) -> tuple[Any, Packed]:
    """`inward`, with the sum of the messages that reach the world."""
    runs, ys = schedule(topology), []
    total = jax.tree.map(lambda x: jnp.zeros((runs[-1].bodies.shape[1], *x.shape), x.dtype), zero)
    for run, x in zip(reversed(runs), reversed(xs), strict=True):

        def visit(messages, row, straight=run.straight):
            x, children = row
            return _at_every(step)(messages if straight else _select(children, messages), x)

        messages, y = _loop(visit, total, (x, run.sums), reverse=True)
        total = _select(run.exit, messages)
        ys.append(y)
    return jax.tree.map(lambda x: x[0], total), tuple(reversed(ys))


def _at_every(step):
    """The step for all bodies of a level. In reverse mode it is computed again: it is cheaper than to store and load
    what it does inside."""
    return jax.vmap(jax.checkpoint(step, prevent_cse=False))


def _loop(visit, start, rows, *, reverse=False):
    """`lax.scan`, without the loop where there is a single row."""
    if len(rows[1]) > 1:
        return jax.lax.scan(visit, start, rows, reverse=reverse)
    carry, y = visit(start, jax.tree.map(lambda x: x[0], rows))
    return carry, jax.tree.map(lambda x: x[None], y)


def each(function: Callable, rows: Any) -> Any:
    """`function`, elementwise, of every row of a PyTree of arrays."""
    return function(rows)


def support_mask(topology: Topology) -> np.ndarray:
    """(nb, nb): entry [i, j] is 1 where body i lies on the path from body j to the world, j itself included."""
    mask = np.zeros((topology.nb, topology.nb))
    for body, path in enumerate(topology.supports):
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
