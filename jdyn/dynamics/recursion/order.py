"""Questions of a recursion over a tree to the order in which bodies are visited.

A recursion states what happens at one body: a step function. An `Order` decides which bodies are visited together, and
in what sequence. Recursions work on *packed* values: one entry for each run of the order's schedule, a PyTree whose
leaves have shape (levels, width, ...). `Order.pack` and `Order.unpack` lead there and back.
"""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jdyn.model import Tree, take_rows

# One entry a run.
Packed = tuple[Any, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class LevelRun:
    """Consecutive levels that one loop visits, one level after another, all slots of a level at once.

    A slot that pads a level repeats a body of that level: it receives what that body receives, from its parent and
    from its children, and computes the same, but its parent does not count it. So padding is never singular where the
    tree is not: a massless body without its children would be.

    Attributes:
        bodies: (levels, width) the body in each slot.
        entry: (width, width of the level above) selects for each slot of the first level its parent's slot.
        links: (levels, width, width) the same between the levels of the run; the first one is the identity.
        exit: (width of the level above, width) adds up for each slot above the messages of its children.
        sums: (levels, width, width) the same between the levels of the run; the last one is the identity.
        nv: Largest number of degrees of freedom of a joint in the run.
    """

    bodies: np.ndarray
    entry: np.ndarray
    links: np.ndarray
    exit: np.ndarray
    sums: np.ndarray
    nv: int

    @functools.cached_property
    def straight(self) -> bool:
        """Tell whether every slot's parent is in the same slot of the level above."""
        return bool(np.all(self.links == np.eye(self.links.shape[-1])))


class Order(abc.ABC):
    """An order of visiting the bodies of a tree."""

    @abc.abstractmethod
    def schedule(self, tree: Tree) -> tuple[LevelRun, ...]:
        """The runs of a tree, outward: a parent's level comes before those of its children."""

    @abc.abstractmethod
    def outward(self, tree: Tree, step: Callable, world: Any, xs: Packed) -> Packed:
        """Visit parents before children.

        Args:
            tree: The tree.
            step: `step(parent_message, x) -> (message, y)` for one body.
            world: The world's message, a PyTree of the messages' shapes. Of several roots, a row each.
            xs: Packed inputs.

        Returns:
            Packed `y` of all bodies.
        """

    @abc.abstractmethod
    def gathered(self, tree: Tree, step: Callable, zero: Any, xs: Packed) -> tuple[Any, Packed]:
        """Visit children before parents.

        Args:
            tree: The tree.
            step: `step(sum of children's messages, x) -> (message, y)` for one body.
            zero: The sum of no messages, a PyTree of the messages' shapes.
            xs: Packed inputs.

        Returns:
            The sum of the messages that reach the world, of several roots a row each, and packed `y` of all bodies.
        """

    @abc.abstractmethod
    def each(self, function: Callable, rows: Any) -> Any:
        """`function`, elementwise, of every row of a PyTree of arrays, in no particular order."""

    def inward(self, tree: Tree, step: Callable, zero: Any, xs: Packed) -> Packed:
        """`gathered` without what reaches the world."""
        return self.gathered(tree, step, zero, xs)[1]

    def subtree_sums(self, tree: Tree, packed: Packed) -> tuple[Any, Packed]:
        """The sum over all bodies, and packed sums over each body and all that it carries."""

        def add(below, own):
            total = jax.tree.map(jnp.add, below, own)
            return total, total

        zero = zeros(packed, 1)[0]
        return self.gathered(tree, add, jax.tree.map(lambda _: zero, packed[0]), packed)

    def pack(self, tree: Tree, x: Any) -> Packed:
        """Arrange a PyTree of (nb, ...) arrays for traversal."""
        return tuple(jax.tree.map(lambda x, run=run: take_rows(x, run.bodies), x) for run in self.schedule(tree))

    def unpack(self, tree: Tree, packed: Packed) -> Any:
        """Inverse of `pack`."""
        return _unpacked([run.bodies for run in self.schedule(tree)], tree.nb, packed)

    def pack_coordinates(self, tree: Tree, x: Array) -> Packed:
        """Arrange full joint coordinates (nv_full,) for traversal: (levels, width, nv of the run), padded by zeros."""
        x = jnp.append(x, jnp.zeros((), x.dtype))
        return tuple(take_rows(x, _coordinates(tree, run)) for run in self.schedule(tree))

    def unpack_coordinates(self, tree: Tree, packed: Packed) -> Array:
        """Inverse of `pack_coordinates`."""
        places = [_coordinates(tree, run) for run in self.schedule(tree)]
        return _unpacked(places, tree.v_offsets[-1], packed)


def zeros(packed: Any, count: int) -> tuple[Array, ...]:
    """Zeros, each with the axes that follow the first two in arrays: (levels, width) in packed values, and (numbers,
    bases) in those of bases."""
    leaves = jax.tree.leaves(packed)
    return (jnp.zeros(jnp.broadcast_shapes(*(x.shape[2:] for x in leaves)), leaves[0].dtype),) * count


def _coordinates(tree: Tree, run: LevelRun) -> np.ndarray:
    """(levels, width, nv): the full coordinate of each degree of freedom in each slot; one past the last for none."""
    offsets = np.array(tree.v_offsets)
    first, following = (x[run.bodies][..., None] for x in (offsets[:-1], offsets[1:]))
    coordinates = first + np.arange(run.nv)
    return np.where(coordinates < following, coordinates, offsets[-1])


def _unpacked(places: list[np.ndarray], size: int, packed: Packed) -> Any:
    """One array from those of all runs: `places` says what each slot holds, which others may repeat."""
    _, where = np.unique(np.concatenate([place.ravel() for place in places]), return_index=True)

    def merge(*parts):
        flat = [x.reshape(place.size, *x.shape[place.ndim :]) for place, x in zip(places, parts, strict=True)]
        return take_rows(jnp.concatenate(flat), where[:size])

    return jax.tree.map(merge, *packed)
