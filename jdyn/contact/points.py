"""Pairs of shapes of a model where they are, and points where they may touch."""

import dataclasses
import itertools
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Scalar

from jdyn.array import Structure
from jdyn.contact.broad_phase import gaps, nearest
from jdyn.contact.colliders import GROUND, Colliders
from jdyn.geometry import Separation, contact_patch
from jdyn.geometry.bounds import Bounds, bounds
from jdyn.spatial import Transform

# Two hulls of 64 vertices take half a millisecond on one core, every time that forces are asked for.
MANY = 100


class PointPairs(Structure):
    """Which pair each point belongs to.

    Attributes:
        numbers: Of the pairs that are looked at.
        counts: For each two sorts of shapes, how many of these pairs have them, and how many points each of these has.
    """

    numbers: Int[Any, " looked"]
    counts: tuple[tuple[int, int], ...] = eqx.field(static=True)

    @property
    def places(self) -> Int[np.ndarray, " points"]:
        """Place of the pair of each point, among those that are looked at."""
        pairs, points = np.array(self.counts, int).reshape(-1, 2).T
        return np.arange(np.sum(pairs)).repeat(points.repeat(pairs))

    @property
    def of_points(self) -> Int[Any, " points"]:
        """Numbers of pairs."""
        return self.numbers[self.places]

    def sums(self, rows: Float[Array, "points k"]) -> Float[Array, "looked k"]:
        """Over the points of each pair."""
        ends = np.cumsum([pairs * points for pairs, points in self.counts])
        parts = zip(jnp.split(rows, ends[:-1]), self.counts, strict=True)
        return jnp.concatenate([jnp.sum(part.reshape(*count, -1), axis=1) for part, count in parts])

    def slots(self, colliders: Colliders) -> "Slots":
        """Places of these points among those of all pairs."""
        if isinstance(self.numbers, np.ndarray):
            return Slots(None, len(self.places))
        sorts = colliders.sorts
        groups = itertools.groupby(colliders.pairs, lambda pair: tuple(sorts[row] for row in pair))
        all_pairs, per_pair = np.array([len(list(group)) for _, group in groups]), np.array([n for _, n in self.counts])
        starts = np.concatenate([[0], np.cumsum(all_pairs * per_pair)])
        # First points of all pairs, and how far each point that is looked at is behind that of its pair.
        firsts = np.concatenate(
            [start + n * np.arange(k) for start, n, k in zip(starts[:-1], per_pair, all_pairs, strict=True)]
        )
        behind = np.concatenate([np.tile(np.arange(n), looked) for looked, n in self.counts])
        return Slots(jnp.asarray(firsts, jnp.int32)[self.of_points] + behind.astype(np.int32), int(starts[-1]))


class Slots(Structure):
    """Places of some points among those of all pairs.

    Attributes:
        places: None where these are all.
        count: Of the points of all pairs.
    """

    places: Int[Array, " looked"] | None
    count: int = eqx.field(static=True)

    def spread(self, rows: Float[Array, "looked k"], others: float = 0.0) -> Float[Array, "points k"]:
        """Rows of all points; numbers of others than these."""
        if self.places is None:
            return rows
        return jnp.full((self.count, rows.shape[1]), others, rows.dtype).at[self.places].set(rows)


class Overlap(Structure):
    """Overlap of shapes.

    Attributes:
        depth: The largest of a point [m]; zero where nothing touches.
        share: The largest of a point by the least size of its two shapes [1].
    """

    depth: Scalar
    share: Scalar

    @classmethod
    def of(cls, distance: Float[Array, " points"], size: Float[Array, " points"]) -> "Overlap":
        """Find the overlap by distances of points, which are positive where shapes are apart, and least sizes of their
        shapes."""
        depth = jnp.maximum(-distance, 0)
        return cls(jnp.max(depth, initial=0), jnp.max(depth / size, initial=0))

    @classmethod
    def full(cls, value: float, dtype: Any) -> "Overlap":
        """With both numbers the same."""
        return cls(jnp.full((), value, dtype), jnp.full((), value, dtype))


def contact_points(colliders: Colliders, poses: Transform) -> tuple[Separation, PointPairs]:
    """The points of all pairs, in world axes, and the pairs that they belong to.

    Args:
        colliders: The shapes.
        poses: Poses of all bodies in the world.

    Returns:
        A fixed number of rows for each pair, between surfaces that are moved out by margins. With `colliders.nearest`,
        only the nearest pairs of each two sorts of shapes are looked at, and their numbers are traced; if the boxes of
        more pairs than these overlap, all their distances are NaN.
    """
    parts, numbers, counts = [], [], []
    for group in placed_pairs(colliders, poses):
        part = jax.vmap(contact_patch)(*group.shapes)
        numbers.append(group.numbers)
        counts.append(part.distance.shape)
        if group.missed is not False:
            part = dataclasses.replace(part, distance=jnp.where(group.missed, jnp.nan, part.distance))
        parts.append(jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), part))
    if not parts:
        none = jnp.zeros((0, 3), poses.translation.dtype)
        return Separation(none, none, none, none[:, 0], none[:, 0]), PointPairs(np.zeros(0, int), ((0, 1),))
    known = all(isinstance(each, np.ndarray) for each in numbers)
    every = np.concatenate(numbers) if known else jnp.concatenate([jnp.asarray(each, jnp.int32) for each in numbers])
    found, pairs = jax.tree.map(lambda *x: jnp.concatenate(x), *parts), PointPairs(every, tuple(counts))
    return found if colliders.margins is None else _within(found, colliders, colliders.margins, pairs), pairs


def _within(found: Separation, colliders: Colliders, margins: Array, pairs: PointPairs) -> Separation:
    """The points with the surfaces moved out by margins, by half of both on each side: they stay in the middle."""
    both = margins[np.reshape(colliders.pairs, (-1, 2)).astype(int)]
    margin = jnp.sum(both, axis=1)[pairs.of_points]
    out = (margin / 2)[:, None] * found.normal
    return dataclasses.replace(found, a=found.a + out, b=found.b - out, distance=found.distance - margin)


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
    X, sorts = placed(colliders, poses), colliders.sorts
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


def placed(colliders: Colliders, poses: Transform) -> Transform:
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
    apart = gaps(*(jax.tree.map(lambda x, axis=axis: jnp.expand_dims(x, axis), boxes) for axis in (1, 0)))
    margins = jax.lax.stop_gradient(colliders.margins)
    return apart if margins is None else apart - (margins[:, None] + margins[None])


def _rows(sorts: list, sort: Any) -> Int[np.ndarray, " rows"]:
    return np.array([row for row, each in enumerate(sorts) if each == sort])


def _taken(tree: Any, index: Any) -> Any:
    return jax.tree.map(lambda x: x[index], tree)


class ContactWarning(UserWarning):
    """Shapes overlap at the start so far that they will be thrown apart, or later so far that they may pass through
    each other; so many may touch that motions take minutes; or derivatives are wrong since a force begins with a jump.

    >>> import warnings
    >>> with warnings.catch_warnings(action="error", category=jdyn.contact.ContactWarning):
    ...     pass  # here a deep start is an error
    """


def warn_of_many_pairs(colliders: Colliders, nearest: int | None):
    """Warn where all pairs of so many meshes are looked at that motions take minutes.

    Args:
        colliders: The shapes.
        nearest: How many pairs of two kinds are looked at; None for all.
    """
    meshes = {row for row, entry in enumerate(colliders.entries) if entry.kind == "mesh"}
    count = sum(a in meshes and b in meshes for a, b in colliders.pairs)
    if nearest is None and count > MANY:
        warnings.warn(
            f"{count} pairs of meshes may touch, and each takes half a millisecond whenever forces are asked for. Look "
            "at the nearest alone (contact=...(nearest=20)), keep apart what never meets (jdyn.load(..., srdf=...), "
            "Builder.exclude), or give links simpler shapes",
            ContactWarning,
            stacklevel=5,
        )
