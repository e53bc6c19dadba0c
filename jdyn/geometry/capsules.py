"""Nearest points of two capsules, in closed form.

On single numbers: XLA vectorises them over pairs, and a humanoid has a hundred pairs of capsules.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Scalar

from jdyn.execution.at_once import at_once
from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Capsule
from jdyn.spatial import Transform
from jdyn.spatial.components import Vector, add, dot, numbers, rotate, rotate_back, scale, subtract

# Axes whose angle has a smaller square than this power of rounding count as parallel: their nearest points would move
# along them by many times what the axes turn.
_PARALLEL = 0.75


class CapsulePair(NamedTuple):
    """Two capsules, a and b, in the frame of a.

    Attributes:
        p: Middle of b.
        way: Direction of its axis.
        on_a: Height of the point of a's axis that is nearest to b's.
        normal: From a to b.
        distance: Of the two surfaces.
    """

    p: Vector
    way: Vector
    on_a: Scalar
    normal: Vector
    distance: Scalar


def capsule_pair(a: Capsule, X_a: Transform, b: Capsule, X_b: Transform) -> CapsulePair:
    """In the frame of a, where rounding moves neither axis against the other.

    Derivatives are those of the formulas, as if axes that are nearly parallel met at one place along a, and had one
    normal across both. Of parallel axes one point is chosen. Axes that cross have the normal across both.

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
    return CapsulePair(p, way, on_a, normal, distance)


def capsule_separation(a: Capsule, X_a: Transform, b: Capsule, X_b: Transform) -> Separation:
    """The distance of two capsules, in the frame of their poses."""
    pair, R = capsule_pair(a, X_a, b, X_b), numbers(X_a.rotation.reshape(9))
    on_a = rotate(R, add((0, 0, pair.on_a), scale(a.radius, pair.normal)))
    on_a, normal = (jnp.stack(x) for x in at_once((on_a, rotate(R, pair.normal))))
    on_a = X_a.translation + on_a
    return Separation(on_a, on_a + pair.distance * normal, normal, pair.distance)


def _places(half_a: Scalar, half_b: Scalar, p: Vector, way: Vector) -> tuple[Scalar, Scalar, Bool[Array, ""]]:
    """Heights of the nearest points on the z axis, up to half_a from the origin, and on that through p, up to half_b
    from there; and whether none is an end."""
    sine2, skew = _sine2(way)
    fixed = jax.lax.stop_gradient((p, way))
    # Two quotients, since the derivatives of the one that is not taken have to be finite.
    on_a = jnp.where(skew, _of_lines(p, way, skew), _of_lines(*fixed, sine2 > 0))
    on_a = _within(on_a, half_a)
    on_b = _within(way[2] * on_a - dot(way, p), half_b)
    on_a = _within(way[2] * on_b + p[2], half_a)
    return on_a, on_b, (sine2 > 0) & (jnp.abs(on_a) < half_a) & (jnp.abs(on_b) < half_b)


def _of_lines(p: Vector, way: Vector, skew: Bool[Array, ""]) -> Scalar:
    """The height at which the infinite axis of a is nearest to that of b; some height where they are not skew."""
    x, y, z = way
    return p[2] - z * (x * p[0] + y * p[1]) / jnp.where(skew, x**2 + y**2, 1)


def _normal(between: Vector, way: Vector, inside: Bool[Array, ""], size: Scalar) -> Vector:
    """From the nearest point of one axis to that of the other: of the z axis and one of direction `way`.

    Rounding leaves the direction across them more digits the less they are parallel, that between points that are far
    apart.
    """
    square, (sine2, skew) = dot(between, between), _sine2(way)
    touching = square <= (100 * jnp.finfo(square.dtype).eps * size) ** 2
    crosses = touching | (inside & (square < sine2 * size**2))
    fixed = _across(jax.lax.stop_gradient(way), sine2 > 0)
    across = [jnp.where(skew, *x) for x in zip(_across(way, skew), fixed, strict=True)]
    sign = jnp.where(across[0] * between[0] + across[1] * between[1] < 0, -1, 1)
    length = jnp.sqrt(jnp.where(crosses, 1, square))
    straight = [x / length for x in between]
    across = [sign * across[0], sign * across[1], jnp.zeros_like(square)]
    return tuple(jnp.where(crosses, one, other) for one, other in zip(across, straight, strict=True))


def _across(way: Vector, skew: Bool[Array, ""]) -> Vector:
    """First two numbers of the unit vector across the z axis and a direction; the x axis where they are not skew."""
    x, y, _ = way
    sine = jnp.sqrt(jnp.where(skew, x**2 + y**2, 1))
    return jnp.where(skew, -y / sine, 1), jnp.where(skew, x / sine, 0)


def _sine2(way: Vector) -> tuple[Scalar, Bool[Array, ""]]:
    """Square of the sine of the angle with the z axis, and whether they do not count as parallel."""
    sine2 = way[0] ** 2 + way[1] ** 2
    return sine2, sine2 > jnp.finfo(sine2.dtype).eps ** _PARALLEL


def _within(x: Scalar, half: Scalar) -> Scalar:
    """Up to half on either side, with derivatives of the ends there."""
    x = jnp.where(x >= half, half, x)
    return jnp.where(x <= -half, -half, x)
