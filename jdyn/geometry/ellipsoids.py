"""The point of an ellipsoid's surface that is nearest to a given point."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array.dot import dot

_STEPS = 50


def foot(radii: Float[Array, "3"], point: Float[Array, "3"]) -> Float[Array, "3"]:
    """The nearest point of the surface, of a point outside or inside [m].

    It is x with x_i = r_i² p_i / (r_i² + t), where t is the largest root of |x / r| = 1. In units of the smallest
    radius, u = t + 1 is above zero, and known to all digits where the nearest point nearly jumps. Where several points
    are nearest (inside, in the plane across the shortest axis) it is one of them.

    Source: Eberly 2013, Distance from a point to an ellipse, an ellipsoid, or a hyperellipsoid.
    """
    smallest = jnp.min(radii)
    sizes, place = radii / smallest, point / smallest
    x = _scaled(sizes, place, _root(sizes, place))
    # At the pole of the equation a component remains open, which is zero times infinity.
    rest = 1 - dot(x, x)
    short = jnp.arange(3) == jnp.argmin(radii)
    open_ = (jnp.sum(jnp.where(short, x, 0) ** 2) == 0) & (rest > jnp.finfo(rest.dtype).eps)
    filled = jnp.where(short, jnp.sqrt(jnp.where(open_, rest, 1)), x)
    return radii * jnp.where(open_, filled, x)


def _poles(sizes: Float[Array, "3"], u: Float[Array, ""]) -> Float[Array, "3"]:
    poles = (sizes - 1) * (sizes + 1) + u
    return jnp.where(poles > 0, poles, 1)


def _scaled(sizes: Float[Array, "3"], place: Float[Array, "3"], u: Float[Array, ""]) -> Float[Array, "3"]:
    """x / r."""
    return sizes * place / _poles(sizes, u)


@jax.custom_jvp
def _root(sizes: Float[Array, "3"], place: Float[Array, "3"]) -> Float[Array, ""]:
    """Find the root by Newton's method on 1/|x / r| − 1, which is concave and nearly linear: u rises and never passes
    the root."""
    start = jnp.max(sizes * jnp.abs(place) - (sizes - 1) * (sizes + 1))

    def going_on(state):
        _, moving, step = state
        return moving & (step < _STEPS)

    def step(state):
        u, _, step = state
        x = _scaled(sizes, place, u)
        square, slope = dot(x, x), jnp.sum(x**2 / _poles(sizes, u))
        rise = square * (jnp.sqrt(square) - 1) / jnp.where(slope > 0, slope, 1)
        return u + jnp.maximum(rise, 0), rise > 4 * jnp.finfo(u.dtype).eps * u, step + 1

    return jax.lax.while_loop(going_on, step, (start, start == start, 0))[0]


@_root.defjvp
def _root_jvp(primals, tangents):
    sizes, place = primals
    u = _root(sizes, place)
    _, change = jax.jvp(lambda sizes, place: jnp.sum(_scaled(sizes, place, u) ** 2), primals, tangents)
    slope = 2 * jnp.sum(_scaled(sizes, place, u) ** 2 / _poles(sizes, u))
    return u, jnp.where(slope > 0, change / jnp.where(slope > 0, slope, 1), 0)
