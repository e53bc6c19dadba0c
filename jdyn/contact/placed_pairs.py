"""The shapes of all pairs where they are."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jdyn.contact.broad_phase import Bounds, bounds, gaps, nearest
from jdyn.contact.colliders import GROUND, Colliders
from jdyn.spatial import Transform


class PlacedPairs(NamedTuple):
    """Pairs of shapes of the same two sorts, which one `jax.vmap` serves.

    Attributes:
        numbers: Of the pairs.
        shapes: The first shapes, their poses in the world, the second shapes, their poses in the world; stacked.
        missed: Whether others are near as well; False if these are all.
    """

    numbers: Int[np.ndarray | Array, " pairs"]
    shapes: tuple[Any, Transform, Any, Transform]
    missed: bool | Bool[Array, ""]


def placed_pairs(colliders: Colliders, poses: Transform) -> Iterator[PlacedPairs]:
    """The pairs by the sorts of their shapes: of each two sorts all, or the nearest. Grounds have no boxes: theirs all.

    Args:
        colliders: The shapes.
        poses: Poses of all bodies in the world.
    """
    X, sorts = _placed(colliders, poses), colliders.sorts
    stacks = {sort: colliders.shapes(_rows(sorts, sort)) for sort in dict.fromkeys(sorts)}
    places = np.array([sorts[:row].count(sort) for row, sort in enumerate(sorts)])
    by_sorts = itertools.groupby(colliders.pairs, lambda pair: tuple(sorts[row] for row in pair))
    groups = {pair_sorts: np.array(list(pairs)).T for pair_sorts, pairs in by_sorts}
    chosen, first = _nearest(colliders, stacks, X, groups), 0
    for pair_sorts, rows in groups.items():
        count, (numbers, missed) = rows.shape[1], chosen.get(pair_sorts, (np.arange(rows.shape[1]), False))
        rows, at = (rows, places) if missed is False else (jnp.asarray(rows)[:, numbers], jnp.asarray(places))
        a, b = (_taken(stacks[sort], at[row]) for sort, row in zip(pair_sorts, rows, strict=True))
        yield PlacedPairs(first + numbers, (a, _taken(X, rows[0]), b, _taken(X, rows[1])), missed)
        first += count


def _nearest(colliders: Colliders, stacks: dict, X: Transform, groups: dict) -> dict:
    """Numbers of the nearest pairs of two sorts, and whether others are near as well; of those sorts that have more
    pairs than are looked at."""
    count = colliders.nearest
    if count is None:
        return {}
    bounded = {
        pair_sorts: rows
        for pair_sorts, rows in groups.items()
        if rows.shape[1] > count and colliders.entries[rows[0, 0]].kind not in GROUND
    }
    if not bounded:
        return {}
    apart = _gaps(colliders, stacks, X)
    return dict(zip(bounded, nearest([apart[rows[0], rows[1]] for rows in bounded.values()], count), strict=True))


def _placed(colliders: Colliders, poses: Transform) -> Transform:
    """Poses of all shapes in the world."""
    carriers = np.array([entry.body for entry in colliders.entries], int)
    return jax.vmap(Transform.__matmul__)(of_bodies(poses, carriers), colliders.placements)


def of_bodies(poses: Transform, bodies: Int[np.ndarray | Array, " rows"]) -> Transform:
    """The rows of given bodies, and the identity for the world."""
    world = Transform.identity(poses.rotation.dtype)
    # Its number, -1, takes the last row.
    return _taken(jax.tree.map(lambda x, last: jnp.concatenate([x, last[None]]), poses, world), bodies)


def _gaps(colliders: Colliders, stacks: dict, X: Transform) -> Float[Array, "shapes shapes"]:
    """Between the boxes about all shapes; those of grounds are empty."""
    sorts = colliders.sorts
    boxed = {sort: rows for sort in stacks if colliders.entries[(rows := _rows(sorts, sort))[0]].kind not in GROUND}
    parts = [jax.vmap(bounds)(*jax.lax.stop_gradient((stacks[sort], _taken(X, rows)))) for sort, rows in boxed.items()]
    empty = Bounds(*(jnp.full((1, 3), end, X.translation.dtype) for end in (jnp.inf, -jnp.inf)))
    numbers, place = np.concatenate(list(boxed.values())), np.full(len(sorts), -1)
    # What has no box takes the last one. A gather, since no kernel of several operations can hold a scatter.
    place[numbers] = np.arange(len(numbers))
    boxes = _taken(jax.tree.map(lambda *x: jnp.concatenate(x), *parts, empty), place)
    return gaps(*(jax.tree.map(lambda x, axis=axis: jnp.expand_dims(x, axis), boxes) for axis in (1, 0)))


def _rows(sorts: list, sort: Any) -> Int[np.ndarray, " rows"]:
    return np.array([row for row, each in enumerate(sorts) if each == sort])


def _taken(tree: Any, index: Any) -> Any:
    return jax.tree.map(lambda x: x[index], tree)
