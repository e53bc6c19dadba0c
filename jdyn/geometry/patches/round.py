"""Contact points of shapes of which one is round everywhere: a single one."""

import jax.numpy as jnp

from jdyn.geometry.distance import separation
from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Convex
from jdyn.spatial import Transform


def round_on_any(a: Convex, X_a: Transform, b: Convex, X_b: Transform) -> Separation:
    """The nearest points of a sphere or an ellipsoid and another shape."""
    nearest = separation(a, X_a, b, X_b, everywhere=False)
    distance = nearest.distance[None]
    return Separation(nearest.a[None], nearest.b[None], nearest.normal[None], distance, jnp.ones_like(distance))
