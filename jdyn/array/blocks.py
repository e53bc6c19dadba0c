"""Matrices that are zero outside of blocks on the diagonal."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float


def on_blocks(
    function: Callable[..., tuple[Array, ...]], blocks: Sequence[np.ndarray], *matrices: Float[Array, "n n"]
) -> tuple[Float[Array, "n n"], ...]:
    """Matrices that `function` makes of matrices, block by block, zero between blocks as these are.

    Args:
        function: Of square matrices of one size, which gives some of the same size.
        blocks: Places of rows and columns that belong together; each is in one block.
        *matrices: The matrices.
    """
    if len(blocks) <= 1:
        return function(*matrices)
    order, ends = np.concatenate(blocks), np.cumsum([len(block) for block in blocks])
    matrices = tuple(_permuted(A, order) for A in matrices)
    places = [slice(int(end) - len(block), int(end)) for block, end in zip(blocks, ends, strict=True)]
    cut = [tuple(A[place, place] for A in matrices) for place in places]
    found: list = [None] * len(blocks)
    for size in {len(block) for block in blocks}:
        alike = [row for row, block in enumerate(blocks) if len(block) == size]
        stacked = jax.vmap(function)(*(jnp.stack(rows) for rows in zip(*(cut[row] for row in alike), strict=True)))
        for place, row in enumerate(alike):
            found[row] = [x[place] for x in stacked]
    return tuple(_permuted(block_diag(*own), np.argsort(order)) for own in zip(*found, strict=True))


def _permuted(A, order):
    return A if np.array_equal(order, np.arange(len(order))) else A[order][:, order]
