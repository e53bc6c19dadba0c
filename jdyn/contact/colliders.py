"""Collision shapes of a model, and the pairs of them that may touch."""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from jdyn.array import Structure
from jdyn.contact.hulls import hulls_of, scaled
from jdyn.dynamics.paths import Paths, paths_between
from jdyn.geometry import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, HalfSpace, HeightField, Sphere
from jdyn.model import WORLD, Free, Model, Topology, checked
from jdyn.model.shapes import Shape, Shapes, counted
from jdyn.spatial import Transform
from jdyn.terminal.messages import short, unknown

# From the rows of the table of shapes to shapes of `jdyn.geometry`, in the order in which pairs have them.
KINDS: dict[str, Any] = {
    "plane": lambda size: HalfSpace(),
    "height field": lambda size, heights: HeightField(heights, size[:2]),
    "sphere": lambda size: Sphere(size[0]),
    "capsule": lambda size: Capsule(size[0], size[1]),
    "box": lambda size: Box(size),
    "cylinder": lambda size: Cylinder(size[0], size[1]),
    "ellipsoid": lambda size: Ellipsoid(size),
    "mesh": lambda size, hull: scaled(hull, size),
}
GROUND = ("plane", "height field")


class Colliders(Structure):
    """The collision shapes of a model, apart from it: simulations carry them beside a model without shapes.

    Attributes:
        entries: What each shape is.
        pairs: Numbers of the two shapes of each pair that may touch; kinds come in the order of `KINDS`.
        sizes, placements, friction, heights: As in `jdyn.Shapes`.
        hulls: Those of meshes, one after the other, in the units of their files; None without meshes.
        nearest: Of how many pairs of each two sorts of shapes contact points are looked for: those whose boxes along
            the axes of the world are nearest. None for all of them.
        turning: Whether shapes may have friction against turning or rolling: numbers that are traced are not known.
        stated, stated_friction, margins: As in `jdyn.Shapes`.
    """

    entries: tuple[Shape, ...] = eqx.field(static=True)
    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)
    sizes: Float[Array, "n 3"]
    placements: Transform
    friction: Float[Array, "n 3"]
    heights: tuple[Float[Array, "rows columns"], ...] = ()
    hulls: ConvexHull | None = None
    nearest: int | None = eqx.field(static=True, default=None)
    turning: bool = eqx.field(static=True, default=False)
    stated: tuple[tuple[str, str], ...] = eqx.field(static=True, default=())
    stated_friction: Float[Array, "k 3"] | Float[Array, "k 5"] | None = None
    margins: Float[Array, " n"] | None = None

    def bodies(self, side: int) -> list[int]:
        """Body of each pair that carries the first (0) or the second shape (1)."""
        return [self.entries[pair[side]].body for pair in self.pairs]

    def paths(self, model: Model) -> Paths:
        """Paths from the body of the first shape of each pair to that of the second."""
        return paths_between(model, self.bodies(0), self.bodies(1))

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Names of the two shapes of each pair."""
        return tuple((self.entries[i].name, self.entries[j].name) for i, j in self.pairs)

    def row(self, name: str) -> int:
        """The number of the shape of a name.

        Raises:
            ValueError: if there is none.
        """
        names = [entry.name for entry in self.entries]
        if name not in names:
            raise ValueError(f"pairs: {unknown('collision shape', name, names)}")
        return names.index(name)

    def rows(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[int, int]]:
        """The numbers of the shapes of pairs of names.

        Raises:
            ValueError: if there is none of a name, something is not two names, or both are one shape's.
        """
        rows = []
        for pair in pairs:
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise ValueError(
                    f"pairs: expected pairs of names, such as ('ground', 'foot'), got {short(pair)} for one"
                )
            rows.append((self.row(pair[0]), self.row(pair[1])))
            if rows[-1][0] == rows[-1][1]:
                raise ValueError(f"pairs: expected two shapes, got {pair[0]!r} twice")
        return rows

    def pair_friction(self) -> Float[Array, "pairs 3"]:
        """Coefficients of sliding [1], torsional [m] and rolling friction [m] of each pair, by MuJoCo's rule.

        They are the larger ones of the two shapes, or those of the one of higher priority; those beyond the larger
        `condim` of the two, or beyond that one's, are zero. Some pairs have their own, of which these are the larger
        ones where they depend on the direction.
        """
        friction = jnp.where(_counts(self.entries, self.pairs), self.larger(self.friction), 0)
        pairs, own = self._own_friction()
        if own is None:
            return friction
        if own.shape[1] == 5:
            sliding, rolling = (jnp.maximum(own[:, one], own[:, one + 1]) for one in (0, 3))
            own = jnp.stack([sliding, own[:, 2], rolling], axis=1)
        return friction.at[pairs].set(own)

    def pair_directions(self) -> Float[Array, "pairs 2 2"] | None:
        """Two coefficients each of sliding and of rolling friction of the pairs that have their own, and ones for
        others; None where none depends on the direction."""
        pairs, own = self._own_friction()
        if own is None or own.shape[1] == 3:
            return None
        both = own[:, np.array([[0, 1], [3, 4]])]
        return jnp.ones((len(self.pairs), 2, 2), own.dtype).at[pairs].set(both)

    def _own_friction(self) -> tuple[Int[np.ndarray, " k"], Float[Array, "k 3"] | Float[Array, "k 5"] | None]:
        """Pairs that have friction of their own, and that; None where none has."""
        places = {frozenset(names): place for place, names in enumerate(self.names)}
        rows = [row for row, pair in enumerate(self.stated) if frozenset(pair) in places]
        own = None if not rows or self.stated_friction is None else self.stated_friction[np.array(rows)]
        return np.array([places[frozenset(self.stated[row])] for row in rows], int), own

    def without_friction(self, rows: Bool[np.ndarray, " n"]) -> "Colliders":
        """The same without the friction that some shapes have, and that pairs with these have of their own."""
        lacking = {entry.name for entry, lacks in zip(self.entries, rows, strict=True) if lacks}
        kept = [row for row, pair in enumerate(self.stated) if not lacking & set(pair)]
        stated = None if self.stated_friction is None else self.stated_friction[np.array(kept, int)]
        return dataclasses.replace(
            self,
            friction=jnp.where(rows[:, None], 0, self.friction),
            stated=tuple(self.stated[row] for row in kept),
            stated_friction=stated,
        )

    def larger(self, values: Float[Array, "n 3"]) -> Float[Array, "pairs 3"]:
        """The larger ones of numbers of the two shapes of each pair that are not negative, among those of the highest
        priority."""
        a, b = np.reshape(self.pairs, (-1, 2)).T.astype(int)
        speaks_a, speaks_b = _speaks(self.entries, self.pairs)[..., None]
        return jnp.maximum(jnp.where(speaks_a, values[a], 0), jnp.where(speaks_b, values[b], 0))

    @property
    def sorts(self) -> list[tuple[int, int]]:
        """Sort of each shape in programs: those of one sort are stacked, and pairs of the same two sorts."""
        return [_sort(self.entries, row) for row in range(len(self.entries))]

    def least_sizes(self) -> Float[Array, " n"]:
        """Least size of each shape [m]; of a mesh, the least side of the box about it. Infinite for a plane, which has
        none."""
        sizes = jnp.abs(self.sizes)
        meshes = np.array([row for row, entry in enumerate(self.entries) if entry.kind == "mesh"], int)
        if self.hulls is not None:
            sizes = sizes.at[meshes].multiply(jnp.ptp(self.hulls.vertices, axis=1))
        return jnp.min(jnp.where(sizes > 0, sizes, jnp.inf), axis=1)

    def least_sizes_of_pairs(self) -> Float[Array, " pairs"]:
        """The lesser one of the two shapes of each pair [m]."""
        return jnp.min(self.least_sizes()[np.reshape(self.pairs, (-1, 2)).astype(int)], axis=1)

    def shapes(self, rows: Int[np.ndarray, " k"]) -> Any:
        """Shapes of `jdyn.geometry` of some rows of one sort, stacked."""
        kind = self.entries[rows[0]].kind
        places = [sum(entry.kind == kind for entry in self.entries[:row]) for row in rows]
        tables = []
        if kind == "height field":
            tables = [jnp.stack([self.heights[place] for place in places])]
        if kind == "mesh":
            tables = [jax.tree.map(lambda leaf: leaf[np.array(places)], self.hulls)]
        return jax.vmap(KINDS[kind])(self.sizes[rows], *tables)


def colliders(model: Model) -> Colliders:
    """Collision shapes of a model.

    Raises:
        ValueError: if it is none, or has no collision shapes.
        ModelError: (a `ValueError`) naming shapes whose meshes have no hull.

    Warns:
        ModelWarning: once, naming meshes that are not closed, or whose hulls are simplified.
    """
    checked(model)
    shapes = model.shapes
    rows = () if shapes is None else shapes.rows("collision")
    if shapes is None or not rows:
        raise ValueError(f"{model.name!r} has no collision shapes: give it some by jdyn.Builder.add_shape")
    entries = tuple(shapes.entries[row] for row in rows)
    meshes = [entry for entry in entries if entry.kind == "mesh"]
    hulls = hulls_of(model.name, meshes, model.dtype) if meshes else None
    pairs = by_kinds(entries, _pairs(entries, _Rules(model.topology, shapes)))
    of_shapes = shapes.sizes, shapes.placements, shapes.friction, shapes.margins
    sizes, placements, friction, margins = _taken(rows, of_shapes)
    heights = tuple(shapes.heights_of(row) for row in rows if shapes.entries[row].kind == "height field")
    turning = _resist_turning(entries, pairs, shapes.friction, rows) or _may_turn(shapes.stated_friction)
    stated = {"stated": shapes.stated, "stated_friction": shapes.stated_friction, "margins": margins}
    return Colliders(entries, pairs, sizes, placements, friction, heights, hulls, turning=turning, **stated)


def _may_turn(stated: Array | None) -> bool:
    """Tell whether pairs may have friction against turning or rolling of their own."""
    if stated is None or isinstance(stated, Tracer):
        return stated is not None
    return bool(np.any(np.asarray(stated)[:, stated.shape[1] // 2 :] != 0))


def _counts(entries: tuple[Shape, ...], pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Which coefficients of friction each pair has."""
    both = np.reshape(pairs, (-1, 2)).T.astype(int)
    condim = np.array([entry.condim for entry in entries])
    return counted(np.max(np.where(_speaks(entries, pairs), condim[both], 0), axis=0))


def _speaks(entries: tuple[Shape, ...], pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Which of the first and of the second shapes of pairs say how large friction is: those of the highest priority."""
    both = np.reshape(pairs, (-1, 2)).T.astype(int)
    priority = np.array([entry.priority for entry in entries])[both]
    return priority == np.max(priority, axis=0)


def _resist_turning(
    entries: tuple[Shape, ...], pairs: Sequence[tuple[int, int]], friction: Array, rows: Sequence[int]
) -> bool:
    counts = _counts(entries, pairs)[:, 1:]
    if isinstance(friction, Tracer):
        return bool(counts.any())
    a, b = np.reshape(pairs, (-1, 2)).T.astype(int)
    known = np.asarray(friction)[np.array(rows), 1:]
    return bool(np.any(counts & (np.maximum(known[a], known[b]) != 0)))


@functools.partial(jax.jit, static_argnums=0)
def _taken(rows: tuple[int, ...], leaves):
    """In one program."""
    return jax.tree.map(lambda leaf: leaf[np.array(rows)], leaves)


def _pairs(entries: tuple[Shape, ...], may_touch: "_Rules") -> list[tuple[int, int]]:
    return [(i, j) for i, j in itertools.combinations(range(len(entries)), 2) if may_touch(entries[i], entries[j])]


def by_kinds(entries: Sequence[Shape], pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Pairs of shapes as `Colliders` has them: kinds in the order of `KINDS`, pairs of the same sorts together."""
    sorts = [_sort(entries, row) for row in range(len(entries))]
    ordered = ((i, j) if sorts[i] <= sorts[j] else (j, i) for i, j in pairs)
    return tuple(sorted(ordered, key=lambda pair: [sorts[i] for i in pair]))


def _sort(entries: Sequence[Shape], row: int) -> tuple[int, int]:
    """The place of a shape's kind in `KINDS`; each height field is of a sort of its own, as their grids differ."""
    kind = entries[row].kind
    return list(KINDS).index(kind), row if kind == "height field" else 0


class _Rules:
    """Which shapes may touch."""

    def __init__(self, topology: Topology, shapes: Shapes):
        self._parents, self._kinds = topology.parents, topology.kinds
        self._excluded = {frozenset(pair) for pair in shapes.excluded}
        self._included = {frozenset(pair) for pair in shapes.included}

    def __call__(self, a: Shape, b: Shape) -> bool:
        if a.kind in GROUND and b.kind in GROUND:
            return False
        if {a.name, b.name} in self._included:
            return True
        bits = (a.contype & b.conaffinity) | (b.contype & a.conaffinity)
        return bits != 0 and not self._related(a, b) and {a.link, b.link} not in self._excluded

    def _related(self, a: Shape, b: Shape) -> bool:
        """Tell whether the shapes move as one, or belong to a body and the one that bears it.

        The world's own shapes are nobody's relatives: robots stand on them.
        """
        if a.body == b.body:
            return True
        return "world" not in (a.link, b.link) and (self._bears(a.body, b.body) or self._bears(b.body, a.body))

    def _bears(self, before: int, body: int) -> bool:
        """Tell whether a joint of a body is on another one. A free joint needs nothing to be on: a ball may fall on a
        table that is fixed to the world."""
        return body != WORLD and self._parents[body] == before and self._kinds[body] is not Free
