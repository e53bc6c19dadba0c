"""Arguments of derivative rules, by which of them move."""

from typing import Any

import equinox as eqx
import jax


def moving_and_fixed(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Split a PyTree into the leaves that have tangents and those that have none, None in the place of the others."""
    moves = jax.tree.map(lambda x: x is not None, tangents, is_leaf=lambda x: x is None)
    return eqx.partition(primals, moves)
