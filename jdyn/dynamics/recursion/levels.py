"""Visit all bodies of one depth at once: for matrices of whole bodies, and for a single configuration.

Bodies of one depth form a level. Levels are visited one after another, outward (a body after its parent) or inward (a
body after its children). Consecutive levels of similar width form a run, which is one `lax.scan` padded to its widest
level. The compiled program grows with the number of runs, at most `_MAX_RUNS`, and not with the number of bodies.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.dynamics.recursion.order import LevelRun, Order
from jdyn.model import WORLD, Tree

# More runs waste fewer padded slots but compile longer, since every run compiles its step function anew.
_MAX_RUNS = 4


class Levels(Order):
    """Levels one after another."""

    def schedule(self, tree):
        return _schedule(tree)

    def outward(self, tree, step, world, xs):
        above, ys = (world if tree.roots > 1 else jax.tree.map(lambda x: x[None], world)), []
        for run, x in zip(_schedule(tree), xs, strict=True):

            def visit(above, row, straight=run.straight):
                x, link = row
                return _at_every(step)(above if straight else _select(link, above), x)

            above, y = _loop(visit, _select(run.entry, above), (x, run.links))
            ys.append(y)
        return tuple(ys)

    def gathered(self, tree, step, zero, xs):
        runs, ys = _schedule(tree), []
        total = jax.tree.map(lambda x: jnp.zeros((runs[-1].bodies.shape[1], *x.shape), x.dtype), zero)
        for run, x in zip(reversed(runs), reversed(xs), strict=True):

            def visit(messages, row, straight=run.straight):
                x, children = row
                return _at_every(step)(messages if straight else _select(children, messages), x)

            messages, y = _loop(visit, total, (x, run.sums), reverse=True)
            total = _select(run.exit, messages)
            ys.append(y)
        return (total if tree.roots > 1 else jax.tree.map(lambda x: x[0], total)), tuple(reversed(ys))

    def each(self, function, rows):
        return function(rows)


LEVELS = Levels()


@functools.lru_cache(maxsize=256)
def _schedule(tree: Tree) -> tuple[LevelRun, ...]:
    """The runs of a tree, outward."""
    roots = [WORLD - root for root in range(tree.roots)]
    levels = _levels(tree.parents, roots)
    widths = tree.joint_widths
    widest = [int(max(widths[level], default=0)) for level in levels]
    runs, above = [], roots
    for first, last in _partition([len(level) for level in levels], widest):
        runs.append(_run(levels[first:last], above, tree.parents, max(widest[first:last])))
        above = list(runs[-1].bodies[-1])
    return tuple(runs)


def _levels(parents: tuple[int, ...], roots: list[int]) -> list[list[int]]:
    """Bodies by depth; within a level, children stand in the order of their parents. Nothing is one empty level."""
    children: dict[int, list[int]] = {}
    for body, parent in enumerate(parents):
        children.setdefault(parent, []).append(body)
    levels, level = [], [child for root in roots for child in children.get(root, [])]
    while level:
        levels.append(level)
        level = [child for body in level for child in children.get(body, [])]
    return levels or [[]]


def _partition(sizes: list[int], widths: list[int]) -> list[tuple[int, int]]:
    """Cut the levels into at most `_MAX_RUNS` runs with the least padding; a padded joint counts as well."""
    shapes = list(zip(sizes, widths, strict=True))
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
            size, width = max(size, sizes[cuts[start]], sizes[cuts[end - 1]]), max(width, widths[cuts[end - 1]])
            cost, bounds = best(end, runs - 1)
            slots = (cuts[end] - cuts[start]) * size
            options.append((slots * (1 + width) + cost, ((cuts[start], cuts[end]), *bounds)))
        return min(options)

    return list(best(0, _MAX_RUNS)[1])


def _run(levels: list[list[int]], above: list[int], parents: tuple[int, ...], nv: int) -> LevelRun:
    width, counts = max(len(level) for level in levels), [len(level) for level in levels]
    padded = [level + level[:1] * (width - len(level)) for level in levels]
    pairs = list(itertools.pairwise([above, *padded]))
    links = [_parent_slots(level, up, parents) for up, level in pairs]
    sums = [_child_sums(level[:count], up, parents, width) for (up, level), count in zip(pairs, counts, strict=True)]
    one = np.eye(width)
    return LevelRun(
        np.array(padded, int), links[0], np.array([one, *links[1:]]), sums[0], np.array([*sums[1:], one]), nv
    )


def _parent_slots(level: list[int], above: list[int], parents: tuple[int, ...]) -> np.ndarray:
    """One row a slot: 1 at its parent's first slot in the level above."""
    return np.eye(len(above))[np.array([above.index(parents[body]) for body in level], int)]


def _child_sums(level: list[int], above: list[int], parents: tuple[int, ...], width: int) -> np.ndarray:
    """One row a slot of the level above, padding included: 1 at each of its children, which are not padding."""
    children = np.array([parents[body] for body in level], int)
    return np.pad(np.array(above)[:, None] == children, [(0, 0), (0, width - len(level))]).astype(float)


def _select(matrix, values):
    """The values that each row of the matrix selects, added up."""
    return jax.tree.map(lambda x: jnp.tensordot(jnp.asarray(matrix, x.dtype), x, 1), values)


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
