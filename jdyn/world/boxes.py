"""Boxes about collision shapes, along the axes of the world."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jdyn.contact.colliders import GROUND, Colliders
from jdyn.contact.points import placed
from jdyn.geometry.bounds import Bounds, bounds
from jdyn.spatial import Transform


def boxes_of(shapes: Colliders, poses: Transform) -> Bounds:
    """Boxes about shapes where bodies have these poses; ground has no ends."""
    X, none = placed(shapes, poses), jnp.full((len(shapes.entries), 3), jnp.inf, shapes.sizes.dtype)
    lower, upper, sorts = -none, none, shapes.sorts
    for sort in dict.fromkeys(sorts):
        rows = np.flatnonzero([other == sort for other in sorts])
        if shapes.entries[rows[0]].kind in GROUND:
            continue
        box = jax.vmap(bounds)(shapes.shapes(rows), jax.tree.map(lambda x, rows=rows: x[rows], X))
        lower, upper = lower.at[rows].set(box.lower), upper.at[rows].set(box.upper)
    return Bounds(lower, upper)
