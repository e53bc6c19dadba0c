"""Friction in the planes of contact, beside their normals."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.contact.convex.friction import Friction, dot
from jdyn.contact.convex.law import Line

Points = Float[Array, "points"]
Vectors = Float[Array, "points 3"]


def split(u: Vectors, normal: Vectors) -> tuple[Points, Vectors]:
    """Along the normal, and the rest."""
    speed = dot(u, normal)
    return speed, u - speed[:, None] * normal


def beside(u: Vectors, normal: Vectors) -> Vectors:
    """What u has beside the normal. Twice, since of a long u rounding leaves something along it, which friction would
    take for slip."""
    return split(split(u, normal)[1], normal)[1]


def rubbing(
    friction: Friction, normal: Vectors, beside: Vectors, held: Bool[Array, " points"]
) -> tuple[Vectors, Float[Array, "points 3 3"]]:
    """What friction beside a normal takes away, and how that rises with the velocity."""
    way, rise = friction.rubbed(beside, held)
    # As squares, which are not negative whatever rounding makes of a slow slip's direction.
    beside_normal = jnp.eye(3, dtype=way.dtype)[None] - squares(normal)
    across = squares(jnp.cross(normal, way))
    across = jnp.where(held[:, None, None], beside_normal @ beside_normal, across)
    return friction.bound[:, None] * way, rise[:, None, None] * across


def rubbing_along(friction: Friction, normal: Vectors, beside: Vectors, w: Vectors) -> Line:
    """The potential of friction beside a normal, in the direction w beside it."""
    held = friction.holds(beside)
    way, rise = friction.rubbed(beside, held)
    across = jnp.where(held, dot(w, w), dot(jnp.cross(normal, way), w) ** 2)
    return Line(jnp.sum(friction.bound * dot(way, w)), jnp.sum(rise * across))


def squares(x: Vectors) -> Float[Array, "points 3 3"]:
    return jax.vmap(jnp.outer)(x, x)
