"""Points at which two shapes touch."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Scalar

from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Box, Capsule, HalfSpace, Sphere
from jdyn.spatial import Transform


def _above(X: Transform, points: Float[Array, "n 3"], radius: Scalar | float) -> Separation:
    """Balls about points of the world from a half-space."""
    normal = X.rotation[:, 2]
    height = (points - X.translation[None]) @ normal
    normals = jnp.broadcast_to(normal, points.shape)
    return Separation(
        points - height[:, None] * normals, points - radius * normals, normals, jnp.asarray(height - radius)
    )


def _points(X: Transform, points: Float[Array, "n 3"]) -> Float[Array, "n 3"]:
    return jax.vmap(X.point_to_parent)(points)


def _half_space_sphere(a: HalfSpace, X_a: Transform, b: Sphere, X_b: Transform) -> Separation:
    return _above(X_a, X_b.translation[None], b.radius)


def _half_space_capsule(a: HalfSpace, X_a: Transform, b: Capsule, X_b: Transform) -> Separation:
    return _above(X_a, _points(X_b, b.ends), b.radius)


def _half_space_box(a: HalfSpace, X_a: Transform, b: Box, X_b: Transform) -> Separation:
    return _above(X_a, _points(X_b, b.corners), 0)


def _sphere_sphere(a: Sphere, X_a: Transform, b: Sphere, X_b: Transform) -> Separation:
    way = X_b.translation - X_a.translation
    square = way @ way
    apart = square > 0
    length = jnp.where(apart, jnp.sqrt(jnp.where(apart, square, 1)), 0)
    normal = jnp.where(apart, way / jnp.where(apart, length, 1), jnp.array([0, 0, 1], way.dtype))
    point_a, point_b = X_a.translation + a.radius * normal, X_b.translation - b.radius * normal
    return Separation(point_a[None], point_b[None], normal[None], (length - a.radius - b.radius)[None])


# For every two kinds, the first one earlier in the list of kinds: rows for points that may touch.
PATCHES: dict[tuple[type, type], Callable[..., Separation]] = {
    (HalfSpace, Sphere): _half_space_sphere,
    (HalfSpace, Capsule): _half_space_capsule,
    (HalfSpace, Box): _half_space_box,
    (Sphere, Sphere): _sphere_sphere,
}
