"""Recursions over the tree that visit one body after another: for batches, whose lanes are work enough at a time.

What `jdyn.dynamics.traverse` does level by level is done here in a single loop, which has no padding and is compiled
once, by the same functions on the same packed values: one run with as many levels as there are bodies, one body wide.
Axes after (levels, width) are lanes, along which step functions must be elementwise.

Bodies are visited depth first, each first child right after its parent, whose message is at hand then. Parents of other
children keep theirs in a slot until the last child has come. That is the largest one, so that there are at most
log2(nb) slots: one for most robots.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.dynamics.traverse import Packed, Run
from jdyn.model import WORLD, Topology, taken


@dataclasses.dataclass(frozen=True, eq=False)
class _Tour:
    """The order of visits.

    Attributes:
        bodies: (nb,) in order.
        fetches: (nb,) a slot: whether the parent's message is in that slot, and not the one of the body before.
        keeps: (nb,) a slot: whether the body's own message is to be kept there; the world's is in all at first.
        branching: Whether several bodies hang on the world, which then uses the first slot.
    """

    bodies: np.ndarray
    fetches: tuple[np.ndarray, ...]
    keeps: tuple[np.ndarray, ...]
    branching: bool


@functools.lru_cache(maxsize=256)
def _tour(topology: Topology) -> _Tour:
    children: dict[int, list[int]] = {body: [] for body in range(WORLD, topology.nb)}
    for body, parent in enumerate(topology.parents):
        children[parent].append(body)
    sizes = np.ones(topology.nb, int)
    for body in reversed(range(topology.nb)):
        if topology.parents[body] != WORLD:
            sizes[topology.parents[body]] += sizes[body]
    bodies, fetches, keeps = [], {}, {}
    # Bodies still to be visited, each with the slot that has its parent's message and the slots in use then.
    waiting: list[tuple[int, int | None, int]] = [(WORLD, None, 0)]
    while waiting:
        body, fetches[body], used = waiting.pop()
        bodies.append(body)
        if not children[body]:
            continue
        *others, last = sorted(children[body], key=lambda child: sizes[child])
        keeps[body] = used if others else None
        # The last one needs no slot beyond those that were in use before, the first one no slot at all.
        waiting.append((last, used if others else None, used))
        waiting.extend((child, used, used + 1) for child in reversed(others[1:]))
        waiting.extend((child, None, used + 1) for child in others[:1])
    slots = range(1 + max((slot for slot in keeps.values() if slot is not None), default=-1))
    bodies = np.array(bodies[1:])

    def table(where):
        return tuple(np.array([where.get(body) == slot for body in bodies]) for slot in slots)

    return _Tour(bodies, table(fetches), table(keeps), keeps[WORLD] is not None)


@functools.lru_cache(maxsize=256)
def schedule(topology: Topology) -> tuple[Run, ...]:
    """The one run."""
    width = max(kind.nv for kind in topology.kinds)
    return (Run(_tour(topology).bodies[:, None], np.ones((1, 1)), np.ones((topology.nb, 1, 1)), width),)


def pack(topology: Topology, x: Any) -> Packed:
    """Arrange a PyTree of (nb, ...) arrays for traversal."""
    return (jax.tree.map(lambda x: taken(x, _tour(topology).bodies[:, None]), x),)


def unpack(topology: Topology, packed: Packed) -> Any:
    """Inverse of `pack`."""
    return jax.tree.map(lambda x: taken(x[:, 0], np.argsort(_tour(topology).bodies)), packed[0])


def _loop(visit: Callable, rows: Any, first: Callable, start: Any, last: Callable, *, reverse: bool = False):
    """`lax.scan` from the carry `first(start)`; returns `last` of its last carry, and what rows give. Of a carry, a
    kernel in its place reads and writes no more than that."""
    visit, rows = _tabled(visit, rows)
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
        return message, [message] * len(tour.keeps)

    def visit(carry, row):
        message, kept = carry
        x, fetches, keeps = row
        for fetch, slot in zip(fetches, kept, strict=True):
            message = _either(fetch, slot, message)
        message, y = step(message, x)
        return (message, [_either(keep, message, slot) for keep, slot in zip(keeps, kept, strict=True)]), y

    rows = xs[0], tour.fetches, tour.keeps
    return (loop(visit, rows, first, jax.tree.map(lambda x: x[None], world), lambda carry: None)[1],)


def gathered(
    topology: Topology, step: Callable, zero: Any, xs: Packed, *, loop: Callable = _loop
) -> tuple[Any, Packed]:
    """Visit children before parents; arguments and results are those of `jdyn.dynamics.traverse.gathered`, and a `loop`
    like `_loop`. All numbers of a message are of one shape and type."""
    tour = _tour(topology)

    def all_of(number):
        return jax.tree.map(lambda _: number, zero)

    def emptied(message):
        return all_of(jnp.zeros_like(jax.tree.leaves(message)[0]))

    def joined(message, slot):
        return jax.tree.map(jnp.add, message, slot)

    def collect(below, slot):
        return joined(below, slot), emptied(slot)

    def hand_in(message, slot):
        return emptied(message), joined(message, slot)

    def same(message, slot):
        return message, slot

    def first(number):
        return all_of(number), [all_of(number) for _ in tour.keeps]

    def visit(carry, row):
        below, kept = carry
        x, fetches, keeps = row
        for i, keep in enumerate(keeps):
            below, kept[i] = jax.lax.cond(keep, collect, same, below, kept[i])
        message, y = step(below, x)
        for i, fetch in enumerate(fetches):
            message, kept[i] = jax.lax.cond(fetch, hand_in, same, message, kept[i])
        return (message, kept), y

    def total(carry):
        message, kept = carry
        return joined(message, kept[0]) if tour.branching else message

    rows = xs[0], tour.fetches, tour.keeps
    number = jnp.zeros_like(jax.tree.leaves(zero)[0])[None]
    sums, y = loop(visit, rows, first, number, total, reverse=True)
    return jax.tree.map(lambda x: x[0], sums), (y,)


def each(function: Callable, rows: Any) -> Any:
    """`function` of every row of a PyTree of arrays, one after another."""
    return jax.lax.map(function, rows)


def _either(condition, x, y):
    return jax.lax.cond(condition, lambda x, y: x, lambda x, y: y, x, y)
