"""Collision shapes of a model, and the pairs of them that may touch."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array import Structure
from jdyn.geometry import Box, Capsule, HalfSpace, Sphere
from jdyn.model import WORLD, Model
from jdyn.model.shapes import Shape, Shapes
from jdyn.spatial import Transform

# In the order in which pairs have them. From the rows of the table of shapes.
KINDS: dict[str, Any] = {
    "plane": lambda size: HalfSpace(),
    "sphere": lambda size: Sphere(size[0]),
    "capsule": lambda size: Capsule(size[0], size[1]),
    "box": lambda size: Box(size),
}


class Colliders(Structure):
    """The collision shapes of a model, apart from it: simulations carry them beside a model without shapes.

    Attributes:
        entries: What each shape is.
        pairs: Numbers of the two shapes of each pair that may touch; kinds come in the order of `KINDS`.
        sizes, placements, friction: As in `jdyn.Shapes`.
    """

    entries: tuple[Shape, ...] = eqx.field(static=True)
    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)
    sizes: Float[Array, "n 3"]
    placements: Transform
    friction: Float[Array, "n 3"]

    def bodies(self, side: int) -> list[int]:
        """Of each pair, the body that carries the first (0) or the second shape (1)."""
        return [self.entries[pair[side]].body for pair in self.pairs]


def colliders(model: Model) -> Colliders:
    """Those of a model.

    Raises:
        ValueError: if it has no collision shapes.
    """
    rows = () if model.shapes is None else model.shapes.rows("collision")
    shapes = model.shapes
    if shapes is None or not rows:
        raise ValueError(f"{model.name!r} has no collision shapes: give it some by jdyn.Builder.add_shape")
    entries = tuple(shapes.entries[row] for row in rows)
    may_touch = _Rules(model.topology.parents, shapes)
    rank = {kind: i for i, kind in enumerate(KINDS)}
    pairs = [
        (i, j) if rank[entries[i].kind] <= rank[entries[j].kind] else (j, i)
        for i in range(len(rows))
        for j in range(i + 1, len(rows))
        if may_touch(entries[i], entries[j])
    ]
    pairs.sort(key=lambda pair: tuple(rank[entries[k].kind] for k in pair))
    index = jnp.array(rows)
    sizes, placements, friction = jax.tree.map(
        lambda leaf: leaf[index], (shapes.sizes, shapes.placements, shapes.friction)
    )
    return Colliders(entries, tuple(pairs), sizes, placements, friction)


class _Rules:
    """Which shapes may touch."""

    def __init__(self, parents: tuple[int, ...], shapes: Shapes):
        self._parents = parents
        self._excluded = {frozenset(pair) for pair in shapes.excluded}
        self._included = {frozenset(pair) for pair in shapes.included}

    def __call__(self, a: Shape, b: Shape) -> bool:
        if {a.name, b.name} in self._included:
            return True
        bits = (a.contype & b.conaffinity) | (b.contype & a.conaffinity)
        return bits != 0 and not self._related(a, b) and {a.link, b.link} not in self._excluded

    def _related(self, a: Shape, b: Shape) -> bool:
        """Whether the shapes move as one, or belong to a body and the one before it.

        The world's own shapes are nobody's relatives: robots stand on them.
        """
        if a.body == b.body:
            return True
        before = [WORLD if body == WORLD else self._parents[body] for body in (a.body, b.body)]
        return "world" not in (a.link, b.link) and (before[0] == b.body or before[1] == a.body)
