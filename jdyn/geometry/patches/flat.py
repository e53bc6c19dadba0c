"""Contact points of shapes with flat or straight parts."""

import jax
import jax.numpy as jnp

from jdyn.array.dot import dot
from jdyn.geometry.distance import separation
from jdyn.geometry.patches.features import feature
from jdyn.geometry.patches.overlap import overlap
from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Capsule, Convex, Cylinder
from jdyn.spatial import Transform


def flat_on_flat(a: Convex, X_a: Transform, b: Convex, X_b: Transform) -> Separation:
    """The nearest points of two shapes, and corners of the region in which their flat or straight parts lie on one
    another.

    The nearest points have a weight of one where this region is a point, and of zero, and infinite distance, where it
    is not.
    """
    if isinstance(b, Cylinder) and not isinstance(a, Capsule | Cylinder):
        return flat_on_flat(b, X_b, a, X_a).flipped()
    # In the frame of a, where rounding moves the corners of neither shape against one another.
    X = X_a.inverse() @ X_b
    nearest = separation(a, Transform.identity(X.rotation.dtype), b, X, everywhere=False)
    part_b = feature(b, -dot(X.rotation.T, nearest.normal)).to_parent(X)
    rows_a, rows_b, left = overlap(feature(a, nearest.normal), part_b, nearest)
    distance = jnp.where(left > 0, nearest.distance, jnp.inf)
    point = Separation(nearest.a, nearest.b, nearest.normal, distance, left)
    parts = [jax.tree.map(lambda x: x[None], point), rows_a, rows_b]
    if isinstance(a, Capsule):  # only the two sides of its line
        parts = [parts[0], jax.tree.map(lambda x: x[::2], rows_a)]
    return jax.tree.map(lambda *x: jnp.concatenate(x), *parts).to_parent(X_a)
