"""Matrices whose only nonzero entries belong to pairs of degrees of freedom on one path."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jdyn.dynamics.recursion.order import Order
from jdyn.model import WORLD, Free
from jdyn.model.topology import DofTree, support_mask


def matrices_of_pairs(
    order: Order, tree: DofTree, pair: Callable, below: Any, above: Any
) -> tuple[Float[Array, "n n *lanes"], ...]:
    """Matrices, from what belongs to their rows and columns.

    Args:
        order: What evaluates the pairs.
        tree: The degrees of freedom, but for those of bases, which are on all paths from their own.
        pair: `pair(below, above)`: entries [i, j] and entries [j, i] of all matrices, where j precedes i or is i.
        below: Arrays (n, *lanes), of which `pair` gets row i.
        above: Arrays of which it gets row j.
    """
    pairs, count = _pairs(tree), tree.nb + tree.of_bases.size
    after, before = order.each(lambda ij: pair(_at(ij[0], below), _at(ij[1], above)), tuple(pairs.T))
    # Behind all values stands the zero.
    place = np.full((count, count), 2 * len(pairs))
    place[pairs[:, 1], pairs[:, 0]] = len(pairs) + np.arange(len(pairs))
    place[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    return tuple(jnp.concatenate([x, y, jnp.zeros_like(x[:1])])[place] for x, y in zip(after, before, strict=True))


@functools.lru_cache(maxsize=256)
def _pairs(tree: DofTree) -> np.ndarray:
    """(pairs, 2): each degree of freedom with itself and all on the path to it; those of a base are on all paths from
    it."""
    mask = np.zeros((tree.nb + tree.of_bases.size,) * 2, bool)
    mask[np.ix_(tree.degrees, tree.degrees)] = support_mask(tree).T
    roots = np.array([tree.parents[path[-1]] for path in tree.supports], int)
    for row, base in enumerate(tree.bases):
        own = base + np.arange(Free.nv)
        carried = tree.degrees[roots == WORLD - row - (tree.grounded and tree.roots > 1)]
        mask[np.ix_(np.concatenate([own, carried]), own)] = True
    return np.argwhere(mask)


def _at(index, x):
    """A row, or some, of all arrays."""
    return jax.tree.map(lambda x: x.at[index].get(mode="promise_in_bounds"), x)
