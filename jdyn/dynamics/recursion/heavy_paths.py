"""A tree as few ranks of paths, for affine recursions that are parallel along a path.

Bodies are ranked as streams are in a river system (Horton-Strahler): a leaf has rank 0, any other body the highest
rank of its children, or one more where two of them share it. Consecutive bodies of equal rank form a path, and what
branches off a path has a lower rank. A body of rank r carries a tree of at least 2^(r+1) - 1 bodies, so that a tree
of n bodies has at most log2(n + 1) ranks.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.model import WORLD, Topology


@dataclasses.dataclass(frozen=True, eq=False)
class Rank:
    """All paths of one rank, cut into chunks of consecutive bodies.

    Bodies are named by their row in a table with two rows more than there are bodies: the world's, and one of a body
    that does nothing and fills chunks.

    Attributes:
        rows: (length, chunks) the body in each place of each chunk, the innermost first. The chunks of a path follow
            one another outward; only the last may be filled up, at its outer end.
        heads: The innermost chunk of each path.
        tails: The outermost chunk of each path.
        attachments: Row of what carries each path.
        nv: Largest number of degrees of freedom of a joint.
    """

    rows: np.ndarray
    heads: np.ndarray
    tails: np.ndarray
    attachments: np.ndarray
    nv: int

    @property
    def cut(self) -> bool:
        """Tell whether a path has more than one chunk."""
        return len(self.heads) < self.rows.shape[1]


def world_row(topology: Topology) -> int:
    """The world's row in the tables that `Rank` speaks of; the last row is the one that fills chunks."""
    return topology.nb


@functools.lru_cache(maxsize=256)
def path_ranks(topology: Topology, chunk: int) -> tuple[Rank, ...]:
    """The ranks of a tree, lowest first, in chunks of at most `chunk` bodies."""
    ranks: dict[int, list[list[int]]] = {}
    for rank, path in _paths(topology.parents):
        ranks.setdefault(rank, []).append(path)
    return tuple(_rank(topology, ranks[rank], chunk) for rank in sorted(ranks))


def _paths(parents: tuple[int, ...]) -> list[tuple[int, list[int]]]:
    """All paths with their rank."""
    children: list[list[int]] = [[] for _ in parents]
    ranks = [0] * len(parents)
    for body in reversed(range(len(parents))):
        below = [ranks[child] for child in children[body]]
        highest = max(below, default=0)
        ranks[body] = highest + (below.count(highest) > 1)
        if parents[body] != WORLD:
            children[parents[body]].append(body)
    paths, path_of = [], {}
    for body, parent in enumerate(parents):
        if parent != WORLD and ranks[parent] == ranks[body]:
            path_of[body] = path_of[parent]
        else:
            path_of[body] = []
            paths.append((ranks[body], path_of[body]))
        path_of[body].append(body)
    return paths


def _rank(topology: Topology, paths: list[list[int]], chunk: int) -> Rank:
    longest = max(map(len, paths))
    # Equal chunks leave fewer places to fill than full ones and a remainder.
    length = -(-longest // -(-longest // chunk))
    counts = [-(-len(path) // length) for path in paths]
    ends = np.cumsum(counts)
    idle = topology.nb + 1
    filled = [path + [idle] * (count * length - len(path)) for path, count in zip(paths, counts, strict=True)]
    parents = [topology.parents[path[0]] for path in paths]
    return Rank(
        rows=np.concatenate(filled).reshape(-1, length).T,
        heads=ends - counts,
        tails=ends - 1,
        attachments=np.array([world_row(topology) if parent == WORLD else parent for parent in parents]),
        nv=max(topology.kinds[body].nv for path in paths for body in path),
    )


def table(x: Array, fill: float = 0) -> Array:
    """A row a body, and the two of the world and of the body that does nothing."""
    return jnp.pad(x, [(0, 2)] + [(0, 0)] * (x.ndim - 1), constant_values=fill)


def outward(
    topology: Topology,
    ranks: tuple[Rank, ...],
    step: Callable,
    factors: Sequence[Float[Array, "chunks 6 6"]],
    world: Float[Array, "6"],
    xs: Sequence[Any],
) -> tuple[Float[Array, "nb 6"], list[Any]]:
    """`along` all paths, from the world's message outward: every body's message, and packed `y` of each rank."""

    def visit(before, x):
        message, y = step(before, x)
        return message, (message, y)

    messages = jnp.zeros((topology.nb + 2, 6), world.dtype).at[world_row(topology)].set(world)
    ys = []
    for rank, factor, x in reversed(list(zip(ranks, factors, xs, strict=True))):
        start = jnp.zeros((rank.rows.shape[1], 6), world.dtype).at[rank.heads].set(messages[rank.attachments])
        _, (here, y) = along(rank, visit, factor, start, x, inward=False)
        messages = messages.at[rank.rows].set(here)
        ys.append(y)
    return messages[: topology.nb], ys[::-1]


def along(
    rank: Rank,
    step: Callable,
    factor: Float[Array, "chunks 6 6"],
    start: Float[Array, "chunks 6"],
    xs: Any,
    *,
    inward: bool,
) -> tuple[Float[Array, "chunks 6"], Any]:
    """An affine recursion along all paths of a rank.

    Args:
        rank: The paths.
        step: `step(message, x) -> (message, y)` for one body, affine in the message.
        factor: What the steps of a chunk multiply a message with.
        start: The message that enters the chunk with which a path begins; elsewhere zero.
        xs: Packed inputs of `step`.
        inward: Whether paths begin at their tails.

    Returns:
        The message that leaves each chunk, and packed `y`.
    """
    if rank.cut:
        first = rank.tails if inward else rank.heads
        alone, _ = chunk_loop(step, start, xs, inward=inward)
        # The scan goes on from path to path: without its factor, a first chunk does not feel the path before.
        maps = factor.at[first].set(0), alone
        _, leaving = jax.lax.associative_scan(jax.vmap(_chained), maps, reverse=inward)
        start = entering(leaving, start, first, inward=inward)
    return chunk_loop(step, start, xs, inward=inward)


def _chained(first, then):
    """The affine map `first`, and `then` the other."""
    (A, b), (A_then, b_then) = first, then
    return A_then @ A, A_then @ b + b_then


def entering(leaving, start, first, *, inward):
    """Values that enter each chunk: what leaves the chunk before it, or `start` where a path begins."""
    return jnp.roll(leaving, -1 if inward else 1, axis=0).at[first].set(start[first])


def chunk_loop(step, start, xs, *, inward):
    """Visit the bodies of a chunk one after another, in all chunks at once."""
    return jax.lax.scan(jax.vmap(step), start, xs, reverse=inward)
