"""Recursions over the tree that visit one body after another: for batches, whose lanes are work enough at a time.

What `jdyn.dynamics.traverse` does level by level is done here in a single loop, which has no padding and is compiled
once, by the same functions on the same packed values: one run with as many levels as there are bodies, one body wide.
Axes after (levels, width) are lanes, along which step functions must be elementwise. Floating-point numbers that a step
gives are of one type, and take the shape that they have together.

Bodies are visited depth first, each first child right after its parent, whose message is at hand then. Messages of
parents that have other children wait on a stack until the last child has come. That is the largest one, so that the
stack is at most log2(nb) deep: one for most robots, two for humanoids.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.dynamics.at_once import at_once
from jdyn.dynamics.traverse import Packed, Run
from jdyn.model import WORLD, Topology, taken


@dataclasses.dataclass(frozen=True, eq=False)
class _Tour:
    """The order of visits.

    Attributes:
        bodies: (nb,) in order.
        forks: (nb,) whether several bodies hang on the body, the first of which comes next.
        others: (nb,) whether the body is one of several, and not the first.
        lasts: (nb,) whether it is the last one of them.
        world_forks: Whether several bodies hang on the world.
    """

    bodies: np.ndarray
    forks: np.ndarray
    others: np.ndarray
    lasts: np.ndarray
    world_forks: bool

    @property
    def depth(self) -> int:
        """How many messages wait at most."""
        waiting = self.world_forks + np.cumsum(self.forks.astype(int) - self.lasts)
        return int(max(self.world_forks, *waiting))


@functools.lru_cache(maxsize=256)
def _tour(topology: Topology) -> _Tour:
    children: dict[int, list[int]] = {body: [] for body in range(WORLD, topology.nb)}
    for body, parent in enumerate(topology.parents):
        children[parent].append(body)
    sizes = np.ones(topology.nb, int)
    for body in reversed(range(topology.nb)):
        if topology.parents[body] != WORLD:
            sizes[topology.parents[body]] += sizes[body]
    bodies, to_visit = [], [WORLD]
    while to_visit:
        bodies.append(to_visit.pop())
        children[bodies[-1]].sort(key=lambda child: sizes[child])
        to_visit.extend(reversed(children[bodies[-1]]))
    bodies = np.array(bodies[1:])
    forks = [body for body, those in children.items() if len(those) > 1]
    others = [child for those in children.values() for child in those[1:]]
    lasts = [those[-1] for those in children.values() if len(those) > 1]
    forked, other, last = (np.isin(bodies, those) for those in (forks, others, lasts))
    return _Tour(bodies, forked, other, last, world_forks=WORLD in forks)


@functools.lru_cache(maxsize=256)
def schedule(topology: Topology) -> tuple[Run, ...]:
    """The one run."""
    width = max(kind.nv for kind in topology.kinds)
    one, ones = np.ones((1, 1)), np.ones((topology.nb, 1, 1))
    return (Run(_tour(topology).bodies[:, None], one, ones, one, ones, width),)


def pack(topology: Topology, x: Any) -> Packed:
    """Arrange a PyTree of (nb, ...) arrays for traversal."""
    return (jax.tree.map(lambda x: taken(x, _tour(topology).bodies[:, None]), x),)


def unpack(topology: Topology, packed: Packed) -> Any:
    """Inverse of `pack`."""
    return jax.tree.map(lambda x: taken(x[:, 0], np.argsort(_tour(topology).bodies)), packed[0])


def _loop(
    visit: Callable, step: Callable, rows: Any, first: Callable, start: Any, last: Callable, *, reverse: bool = False
):
    """`lax.scan` of `visit(step, carry, row)` from the carry `first(start)`; returns `last` of its last carry, and what
    rows give. Of a carry, a kernel in its place reads and writes no more than that."""
    visit, rows = _tabled(functools.partial(visit, lambda *x: at_once(step(*x))), rows)
    carry, y = jax.lax.scan(visit, first(start), rows, reverse=reverse)
    return last(carry), y


def _tabled(visit: Callable, rows: Any) -> tuple[Callable, Any]:
    """The same with all numbers that lanes share in one table, a column each, since XLA compiles a program for each
    array that a loop takes."""
    leaves, tree = jax.tree.flatten(rows)
    shared = [jnp.issubdtype(x.dtype, jnp.inexact) and x.size == len(x) for x in leaves]
    columns = [x.reshape(-1) for x, each in zip(leaves, shared, strict=True) if each]
    if not columns:
        return visit, rows

    def visit_row(carry, row):
        numbers, others = map(iter, row)
        places = zip(leaves, shared, strict=True)
        row = [next(numbers).reshape(x.shape[1:]) if each else next(others) for x, each in places]
        return visit(carry, tree.unflatten(row))

    return visit_row, (jnp.stack(columns, axis=1), [x for x, each in zip(leaves, shared, strict=True) if not each])


def outward(topology: Topology, step: Callable, world: Any, xs: Packed, *, loop: Callable = _loop) -> Packed:
    """Visit parents before children; arguments are those of `jdyn.dynamics.traverse.outward`, and a loop like
    `_loop`."""
    tour = _tour(topology)

    def first(message):
        return message, [message] * tour.depth

    def visit(step, carry, row):
        message, stack = carry
        x, fork, other, last = row
        if stack:
            message = _either(other, stack[0], message)
            stack = _either(last, _popped(stack), stack)
        message, y = step(message, x)
        if stack:
            stack = _either(fork, _pushed(message, stack), stack)
        return (message, stack), y

    rows = xs[0], tour.forks, tour.others, tour.lasts
    return (loop(visit, step, rows, first, jax.tree.map(lambda x: x[None], world), lambda carry: None)[1],)


def gathered(
    topology: Topology, step: Callable, zero: Any, xs: Packed, *, loop: Callable = _loop
) -> tuple[Any, Packed]:
    """Visit children before parents; arguments and results are those of `jdyn.dynamics.traverse.gathered`, and a `loop`
    like `_loop`. All numbers of a message are of one shape and type."""
    tour = _tour(topology)

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

    def first(number):
        return all_of(number), [all_of(number)] * tour.depth

    def visit(step, carry, row):
        below, stack = carry
        x, fork, other, last = row
        if stack:
            below, stack = jax.lax.cond(fork, collected, lambda *same: same, below, stack)
        message, y = step(below, x)
        if stack:
            message, stack = jax.lax.cond(other, handed_in, lambda _, *same: same, last, message, stack)
        return (message, stack), y

    def total(carry):
        message, stack = carry
        return joined(message, stack[0]) if tour.world_forks else message

    rows = xs[0], tour.forks, tour.others, tour.lasts
    number = jnp.zeros_like(jax.tree.leaves(zero)[0])[None]
    sums, y = loop(visit, step, rows, first, number, total, reverse=True)
    return jax.tree.map(lambda x: x[0], sums), (y,)


def each(function: Callable, rows: Any) -> Any:
    """`function` of every row of a PyTree of arrays, one after another."""
    return jax.lax.map(lambda row: at_once(function(row)), rows)


def _either(condition, x, y):
    return jax.lax.cond(condition, lambda x, y: x, lambda x, y: y, x, y)


def _pushed(message, stack):
    return [message, *stack[:-1]]


def _popped(stack):
    return [*stack[1:], stack[-1]]
