"""Visit one body after another: for batches, whose lanes are work enough at a time.

What `Levels` does level by level is done here in a single loop, which has no padding and is compiled once: one run
with as many levels as there are bodies, one body wide. Axes after (levels, width) are lanes, along which step functions
must be elementwise. Floating-point numbers that a step returns have one type, and are broadcast to one shape.

Bodies are visited depth first, each first child right after its parent, whose message is at hand then. Messages of
parents that have other children wait on a stack until the last child has come. That is the largest one, so that the
stack is at most log2(nb) deep: one for most robots, two for humanoids.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.dynamics.recursion.order import LevelRun, Order
from jdyn.execution.at_once import at_once
from jdyn.model import WORLD, Tree


class DepthFirst(Order):
    """One body after another. All numbers of a message that goes inward have one shape and type."""

    def schedule(self, tree):
        return _schedule(tree)

    def outward(self, tree, step, world, xs):
        tour = _tour(tree)

        def visit(carry, row):
            message, stack = carry
            x, fork, other, last, *root = row
            if root:
                stands, at = root
                message = jax.lax.cond(stands, lambda at, _: _row(world, at), lambda _, same: same, at, message)
            if stack:
                message = _either(other, stack[0], message)
                stack = _either(last, _popped(stack), stack)
            message, y = at_once(step(message, x))
            if stack:
                stack = _either(fork, _pushed(message, stack), stack)
            return (message, stack), y

        first = _row(world, 0) if tree.roots > 1 else jax.tree.map(lambda x: x[None], world)
        return (_loop(visit, (xs[0], *tour.rows), (first, [first] * tour.depth))[1],)

    def gathered(self, tree, step, zero, xs):
        tour = _tour(tree)

        def all_of(number):
            return jax.tree.map(lambda _: number, zero)

        def joined(message, other):
            return jax.tree.map(jnp.add, message, other)

        def added(message, stack):
            return [joined(message, stack[0]), *stack[1:]]

        def collected(below, stack):
            return joined(below, stack[0]), _popped(stack)

        def handed_in(last, message, stack):
            nothing = all_of(jnp.zeros_like(jax.tree.leaves(message)[0]))
            return nothing, jax.lax.cond(last, _pushed, added, message, stack)

        def landed(at, message, totals):
            nothing = all_of(jnp.zeros_like(jax.tree.leaves(message)[0]))
            return nothing, jax.tree.map(lambda x, more: x.at[at].add(more[0]), totals, message)

        def visit(carry, row):
            below, stack, *totals = carry
            x, fork, other, last, *root = row
            if stack:
                below, stack = jax.lax.cond(fork, collected, lambda *same: same, below, stack)
            message, y = at_once(step(below, x))
            if stack:
                message, stack = jax.lax.cond(other, handed_in, lambda _, *same: same, last, message, stack)
            if root:
                stands, at = root
                message, *totals = jax.lax.cond(stands, landed, lambda _, *same: same, at, message, *totals)
            return (message, stack, *totals), y

        nothing = all_of(jnp.zeros_like(jax.tree.leaves(zero)[0])[None])
        totals = [all_of(jnp.repeat(jax.tree.leaves(nothing)[0], tree.roots, 0))] if tour.roots else []
        start = nothing, [nothing] * tour.depth, *totals
        (message, stack, *totals), y = _loop(visit, (xs[0], *tour.rows), start, reverse=True)
        if totals:
            return totals[0], (y,)
        total = joined(message, stack[0]) if tour.world_forks else message
        return jax.tree.map(lambda x: x[0], total), (y,)

    def each(self, function, rows):
        return jax.lax.map(lambda row: at_once(function(row)), rows)


DEPTH_FIRST = DepthFirst()


@dataclasses.dataclass(frozen=True, eq=False)
class _Tour:
    """The order of visits.

    Attributes:
        bodies: (nb,) in order.
        forks: (nb,) whether several bodies hang on the body, the first of which comes next.
        others: (nb,) whether the body is one of several, and not the first.
        lasts: (nb,) whether it is the last one of them.
        world_forks: Whether several bodies hang on the world, if that is the only root.
        roots: (nb,) whether the body hangs on a root, and on which; None if there is only one.
    """

    bodies: np.ndarray
    forks: np.ndarray
    others: np.ndarray
    lasts: np.ndarray
    world_forks: bool
    roots: tuple[np.ndarray, np.ndarray] | None

    @property
    def rows(self) -> tuple[Any, ...]:
        """All that a visit has to know of the tour."""
        rows = self.forks, self.others, self.lasts
        return rows if self.roots is None else (*rows, *self.roots)

    @property
    def depth(self) -> int:
        """Number of messages that wait at most."""
        waiting = self.world_forks + np.cumsum(self.forks.astype(int) - self.lasts)
        return int(max([self.world_forks, *waiting]))


@functools.lru_cache(maxsize=256)
def _tour(tree: Tree) -> _Tour:
    roots = [WORLD - root for root in range(tree.roots)]
    children: dict[int, list[int]] = {body: [] for body in range(-tree.roots, tree.nb)}
    for body, parent in enumerate(tree.parents):
        children[parent].append(body)
    sizes = np.ones(tree.nb, int)
    for body in reversed(range(tree.nb)):
        if tree.parents[body] > WORLD:
            sizes[tree.parents[body]] += sizes[body]
    bodies, to_visit = [], roots[::-1]
    while to_visit:
        bodies.append(to_visit.pop())
        children[bodies[-1]].sort(key=lambda child: sizes[child])
        to_visit.extend(reversed(children[bodies[-1]]))
    bodies = np.array([body for body in bodies if body > WORLD], int)
    parents = np.array(tree.parents, int)[bodies]
    several = len(roots) > 1
    if several:
        children = {body: those for body, those in children.items() if body > WORLD}
    forks = [body for body, those in children.items() if len(those) > 1]
    others = [child for those in children.values() for child in those[1:]]
    lasts = [those[-1] for those in children.values() if len(those) > 1]
    forked, other, last = (np.isin(bodies, those) for those in (forks, others, lasts))
    rooted = (parents <= WORLD, np.maximum(WORLD - parents, 0).astype(np.int32)) if several else None
    return _Tour(bodies, forked, other, last, WORLD in forks, rooted)


@functools.lru_cache(maxsize=256)
def _schedule(tree: Tree) -> tuple[LevelRun, ...]:
    """The one run."""
    width = int(max(tree.joint_widths, default=1))
    one, ones = np.ones((1, 1)), np.ones((tree.nb, 1, 1))
    return (LevelRun(_tour(tree).bodies[:, None], one, ones, one, ones, width),)


def _loop(visit: Callable, rows: Any, start: Any, *, reverse: bool = False) -> tuple[Any, Any]:
    """`lax.scan` with all numbers that lanes share in one table, a column each, since XLA compiles a program for each
    array that a loop takes."""
    leaves, tree = jax.tree.flatten(rows)
    shared = [jnp.issubdtype(x.dtype, jnp.inexact) and math.prod(x.shape[1:]) == 1 for x in leaves]
    columns = [x.reshape(-1) for x, each in zip(leaves, shared, strict=True) if each]
    if not columns:
        return jax.lax.scan(visit, start, rows, reverse=reverse)

    def visit_row(carry, row):
        numbers, others = map(iter, row)
        places = zip(leaves, shared, strict=True)
        row = [next(numbers).reshape(x.shape[1:]) if each else next(others) for x, each in places]
        return visit(carry, tree.unflatten(row))

    rows = jnp.stack(columns, axis=1), [x for x, each in zip(leaves, shared, strict=True) if not each]
    return jax.lax.scan(visit_row, start, rows, reverse=reverse)


def _either(condition, x, y):
    return jax.lax.cond(condition, lambda x, y: x, lambda x, y: y, x, y)


def _row(x, at):
    return jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, at, 1), x)


def _pushed(message, stack):
    return [message, *stack[:-1]]


def _popped(stack):
    return [*stack[1:], stack[-1]]
