"""Where two capsules are nearest, in closed form.

On single numbers: XLA vectorises them over pairs, and a humanoid has a hundred pairs of capsules.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Scalar

from jdyn.array.at_once import at_once
from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Capsule
from jdyn.spatial import Transform
from jdyn.spatial.components import Vector, add, dot, numbers, rotate_back, scale, subtract

# Axes whose angle has a smaller square than this power of rounding count as parallel: their nearest points would move
# along them by many times what the axes turn, so they have no derivatives along them.
PARALLEL = 0.75


class Nearest(NamedTuple):
    """Of two capsules, a and b, in the frame of a.

    Attributes:
        p: Middle of b.
        way: Direction of its axis.
        on_a: Height of the nearest point of a's axis.
        normal: From a to b.
        distance: Of the two surfaces.
    """

    p: Vector
    way: Vector
    on_a: Scalar
    normal: Vector
    distance: Scalar


def nearest_of_capsules(a: Capsule, X_a: Transform, b: Capsule, X_b: Transform) -> Nearest:
    """In the frame of a, where rounding moves neither axis against the other.

    Derivatives are those of the formulas. Of parallel axes one point is chosen. Axes that cross have the normal across
    both.

    Source: Ericson 2005, Real-time collision detection, section 5.1.9.
    """
    R = numbers(X_a.rotation.reshape(9))
    p = rotate_back(R, numbers(X_b.translation - X_a.translation))
    way = rotate_back(R, numbers(X_b.rotation[:, 2]))
    p, way = at_once((p, way))
    on_a, on_b, inside = _places(a.length / 2, b.length / 2, p, way)
    on_a, on_b = at_once((on_a, on_b))
    between = add(subtract(p, (0, 0, on_a)), scale(on_b, way))
    fixed = jax.lax.stop_gradient(p)
    normal = _normal(between, way, inside, a.length + b.length + jnp.sqrt(dot(fixed, fixed)))
    normal, distance = at_once((normal, dot(between, normal) - a.radius - b.radius))
    return Nearest(p, way, on_a, normal, distance)


def separation_of_capsules(a: Capsule, X_a: Transform, b: Capsule, X_b: Transform) -> Separation:
    """In the frame of a."""
    nearest = nearest_of_capsules(a, X_a, b, X_b)
    normal = jnp.stack(nearest.normal)
    on_a = jnp.stack(add((0, 0, nearest.on_a), scale(a.radius, nearest.normal)))
    return Separation(on_a, on_a + nearest.distance * normal, normal, nearest.distance)


def _places(half_a: Scalar, half_b: Scalar, p: Vector, way: Vector) -> tuple[Scalar, Scalar, Bool[Array, ""]]:
    """Of the nearest points on the z axis, up to half_a from the origin, and on that through p, up to half_b from
    there: their heights, and whether none is an end."""
    x, y, z = way
    sine2 = x**2 + y**2
    # Where infinite lines are nearest.
    free = p[2] - z * (x * p[0] + y * p[1]) / jnp.where(sine2 > 0, sine2, 1)
    on_a = _within(jnp.where(_skew(sine2), free, jax.lax.stop_gradient(free)), half_a)
    on_b = _within(z * on_a - dot(way, p), half_b)
    on_a = _within(z * on_b + p[2], half_a)
    return on_a, on_b, (sine2 > 0) & (jnp.abs(on_a) < half_a) & (jnp.abs(on_b) < half_b)


def _normal(between: Vector, way: Vector, inside: Bool[Array, ""], size: Scalar) -> Vector:
    """From the nearest point of one axis to that of the other: of the z axis and one of direction `way`.

    Rounding leaves the direction across them more digits the less they are parallel, that between points that are far
    apart.
    """
    square, sine2 = dot(between, between), way[0] ** 2 + way[1] ** 2
    touching = square <= (100 * jnp.finfo(square.dtype).eps * size) ** 2
    turns = touching | (inside & (square < sine2 * size**2))
    # Its derivatives are those of the axes unless these are nearly parallel.
    x, y = (jnp.where(_skew(sine2), x, jax.lax.stop_gradient(x)) for x in way[:2])
    x, y = jnp.where(sine2 > 0, x, 0), jnp.where(sine2 > 0, y, -1)
    sign = jnp.where(x * between[1] - y * between[0] < 0, -1, 1)
    across = (-sign * y, sign * x, jnp.zeros_like(x))
    chosen = tuple(jnp.where(turns, one, other) for one, other in zip(across, between, strict=True))
    length = jnp.sqrt(dot(chosen, chosen))
    return tuple(x / length for x in chosen)


def _skew(sine2: Scalar) -> Bool[Array, ""]:
    return sine2 > jnp.finfo(sine2.dtype).eps ** PARALLEL


def _within(x: Scalar, half: Scalar) -> Scalar:
    """Up to half on either side, with a derivative of one side at its ends."""
    x = jnp.where(x > half, half, x)
    return jnp.where(x < -half, -half, x)
