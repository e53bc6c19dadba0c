"""Points where the shapes of a model may touch."""

import dataclasses
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Scalar

from jdyn.array import Structure
from jdyn.contact.colliders import Colliders
from jdyn.contact.placed_pairs import placed_pairs
from jdyn.geometry import Separation, contact_patch
from jdyn.spatial import Transform


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
        A fixed number of rows for each pair. With `colliders.nearest`, only the nearest pairs of each two sorts of
        shapes are looked at, and their numbers are traced; if the boxes of more pairs than these overlap, all their
        distances are NaN.
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
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts), PointPairs(every, tuple(counts))
