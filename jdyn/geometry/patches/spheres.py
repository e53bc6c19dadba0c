"""Where balls touch: one point."""

import jax.numpy as jnp

from jdyn.geometry.directions import length_and_unit
from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Sphere
from jdyn.spatial import Transform


def sphere_on_sphere(a: Sphere, X_a: Transform, b: Sphere, X_b: Transform) -> Separation:
    """The nearest points of two balls; above one another where their middles are in one place."""
    length, way = length_and_unit(X_b.translation - X_a.translation)
    normal = jnp.where(length > 0, way, jnp.array([0, 0, 1], way.dtype))
    point_a, point_b = X_a.translation + a.radius * normal, X_b.translation - b.radius * normal
    distance = (length - a.radius - b.radius)[None]
    return Separation(point_a[None], point_b[None], normal[None], distance, jnp.ones_like(distance))
