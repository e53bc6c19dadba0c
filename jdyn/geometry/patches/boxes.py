"""The direction along which two boxes are least apart, or overlap least."""

import jax.numpy as jnp

from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Box
from jdyn.spatial import Transform


def nearest_of_boxes(a: Box, X_a: Transform, b: Box, X_b: Transform) -> Separation:
    """Separating axes: normals of faces, and vectors across an edge of each."""
    A, B = X_a.rotation, X_b.rotation
    way = X_b.translation - X_a.translation
    across = jnp.cross(A.T[:, None], B.T[None]).reshape(9, 3)
    square = jnp.sum(across**2, axis=1)
    skew = square > 1e-6
    across = across / jnp.sqrt(jnp.where(skew, square, 1))[:, None]
    axes = jnp.concatenate([A.T, B.T, across])
    reach = jnp.abs(axes @ A) @ (a.sides / 2) + jnp.abs(axes @ B) @ (b.sides / 2)
    along = axes @ way
    # Faces rather than edges where both are as good within rounding.
    gaps = jnp.abs(along) - reach
    handicap = jnp.where(jnp.arange(15) < 6, 0, 1e-6 * jnp.sum(a.sides + b.sides))
    best = jnp.argmax(jnp.where(jnp.append(jnp.ones(6, bool), skew), gaps - handicap, -jnp.inf))
    normal = axes[best] * jnp.where(along[best] < 0, -1, 1)
    of_a = X_a.point_to_parent(a.support(A.T @ normal))
    of_b = X_b.point_to_parent(b.support(-(B.T @ normal)))
    point_a = jnp.where((best >= 3) & (best < 6), of_a, of_b - gaps[best] * normal)
    return Separation(point_a, point_a + gaps[best] * normal, normal, gaps[best])
