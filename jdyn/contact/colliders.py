"""Collision shapes of a model, and the pairs of them that may touch."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array import Structure
from jdyn.geometry import Box, Capsule, HalfSpace, Sphere
from jdyn.model import WORLD, Model
from jdyn.model.shapes import Shape
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
        sizes, placements: As in `jdyn.Shapes`.
    """

    entries: tuple[Shape, ...] = eqx.field(static=True)
    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)
    sizes: Float[Array, "n 3"]
    placements: Transform

    def bodies(self, side: int) -> list[int]:
        """Of each pair, the body that carries the first (0) or the second shape (1)."""
        return [self.entries[pair[side]].body for pair in self.pairs]


def colliders(model: Model) -> Colliders:
    """Those of a model.

    Raises:
        ValueError: if it has no collision shapes.
    """
    rows = () if model.shapes is None else model.shapes.rows("collision")
    if model.shapes is None or not rows:
        raise ValueError(f"{model.name!r} has no collision shapes: give it some by jdyn.Builder.add_shape")
    entries = tuple(model.shapes.entries[row] for row in rows)
    rank = {kind: i for i, kind in enumerate(KINDS)}
    pairs = [
        (i, j) if rank[entries[i].kind] <= rank[entries[j].kind] else (j, i)
        for i in range(len(rows))
        for j in range(i + 1, len(rows))
        if _may_touch(model, entries[i].body, entries[j].body)
    ]
    pairs.sort(key=lambda pair: tuple(rank[entries[k].kind] for k in pair))
    index = jnp.array(rows)
    placements = jax.tree.map(lambda leaf: leaf[index], model.shapes.placements)
    return Colliders(entries, tuple(pairs), model.shapes.sizes[index], placements)


def _may_touch(model: Model, a: int, b: int) -> bool:
    """Not within one body, nor with the body before it, unless that is the world."""
    parents = model.topology.parents
    if a == b:
        return False
    return WORLD in (a, b) or (parents[a] != b and parents[b] != a)
