"""Friction in the planes of contact, beside their normals."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.impulses.friction import Friction, clipped, row_dot
from jdyn.impulses.law import Line

Points = Float[Array, "points"]
Vectors = Float[Array, "points 3"]
Matrices = Float[Array, "points 3 3"]


def split(u: Vectors, normal: Vectors) -> tuple[Points, Vectors]:
    """Along the normal, and the rest."""
    speed = row_dot(u, normal)
    return speed, u - speed[:, None] * normal


def beside(u: Vectors, normal: Vectors) -> Vectors:
    """Part of u beside the normal. It is taken twice, since of a long u rounding leaves something along the normal,
    which friction would take for slip."""
    return split(split(u, normal)[1], normal)[1]


def rise(
    friction: Friction, normal: Vectors, slip: Vectors, sticking: Bool[Array, " points"], share: Vectors
) -> Matrices:
    """Slope by the slip of what friction beside a normal takes away, where its share is taken to be λ.

    With the slip's direction w and a = λ · w, c = λ · (normal × w), this is 1 − (λ wᵀ + w λᵀ) / 2 beside the normal, or
    1 where it sticks, times how steep friction is.
    """
    direction = friction.share(slip, sticking)
    across = jnp.cross(normal, direction)
    a, c = (row_dot(clipped(share), x) for x in (direction, across))
    # As squares, which are not negative whatever rounding makes of a slow slip's direction.
    bent = squares(across - c[:, None] / 2 * direction) + jnp.maximum(1 - a - c**2 / 4, 0)[:, None, None] * squares(
        direction
    )
    beside_normal = jnp.eye(3, dtype=direction.dtype)[None] - squares(normal)
    bent = jnp.where(sticking[:, None, None], beside_normal @ beside_normal, bent)
    return friction.steepness(slip, sticking)[:, None, None] * bent


def rubbing_along(friction: Friction, normal: Vectors, slip: Vectors, w: Vectors) -> Line:
    """The potential of friction beside a normal, in the direction w beside it."""
    sticking = friction.sticks(slip)
    direction = friction.share(slip, sticking)
    across = jnp.where(sticking, row_dot(w, w), row_dot(jnp.cross(normal, direction), w) ** 2)
    return Line(jnp.sum(friction.bound * row_dot(direction, w)), jnp.sum(friction.steepness(slip, sticking) * across))


def squares(x: Vectors) -> Matrices:
    return jax.vmap(jnp.outer)(x, x)
