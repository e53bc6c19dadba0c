"""The point outside a core from which both cores are seen along their common normal, and its derivatives."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.array.dot import dot
from jdyn.geometry.directions import length_and_unit, perpendicular
from jdyn.geometry.lanes import in_turn_on_cpus
from jdyn.geometry.polytopes import CURVED
from jdyn.spatial import Transform

_STEPS = 20
# Of a distance, how much Newton's method may take from what the search has found.
_LESS = 1e-4


class Pair(NamedTuple):
    """Two cores, and numbers without derivative.

    Attributes:
        a, b: With `core_nearest`.
        X: Pose of b in the frame of a.
        reach: Height of the point above a.
        across: How far behind the point, away from b, the point is that is as high above b: the distance of the cores
            that is known from the search, without two reaches.
    """

    a: Any
    b: Any
    X: Transform
    reach: Float[Array, ""]
    across: Float[Array, ""]


def seen(pair: Pair, point: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"], Float[Array, "3"]]:
    """From a point outside of a: its nearest point of a, the normal there, and the point of b seen against it."""
    foot = pair.a.core_nearest(point)
    _, normal = length_and_unit(point - foot)
    behind = point + pair.across * normal
    return foot, normal, pair.X.point_to_parent(pair.b.core_nearest(pair.X.point_to_child(behind)))


def _error(pair: Pair, point: Float[Array, "3"]) -> Float[Array, "3"]:
    """Zero where b is seen straight along the normal of a, from the right height; in units of the reach."""
    foot, normal, far = seen(pair, point)
    aside = far - point
    height = dot(normal, point - foot)
    return (aside - normal * dot(normal, aside) + normal * (height - pair.reach)) / pair.reach


@eqx.filter_custom_jvp
def outside(pair: Pair, start: Float[Array, "3"]) -> Float[Array, "3"]:
    """Find the nearest point by Newton's method from a point near it.

    A point at some height above a core knows its nearest point and the normal there, and both follow it without jumps,
    also along edges; so does b, seen from as high above it on the other side. Whether the cores are apart, touch or
    overlap makes no difference. Where faces are parallel or edges lie in faces, many points would do, and the step is
    the smallest.
    """
    # Between polytopes, the search ends where this would.
    if not isinstance(pair.a, CURVED) and not isinstance(pair.b, CURVED):
        return start
    return in_turn_on_cpus(_by_newton, pair, start)


@outside.def_jvp
def _outside_jvp(primals, tangents):
    pair, start = primals
    point = outside(pair, start)
    _, change = eqx.filter_jvp(lambda pair: _error(pair, point), (pair,), (tangents[0],))
    _, J, frame = _linear(pair, point)
    return point, _step(pair, J, frame, -change)


def _by_newton(pair: Pair, start: Float[Array, "3"]) -> Float[Array, "3"]:
    smallest = (4 * jnp.finfo(start.dtype).eps) ** 2

    def going_on(state):
        *_, square, steps = state
        return (square > smallest) & (steps < _STEPS)

    def step(state):
        point, best, least, _, steps = state
        error, J, frame = _linear(pair, point)
        square = dot(error, error)
        best, least = jnp.where(square < least, point, best), jnp.minimum(square, least)
        # Where faces are nearly parallel a whole step may lead far away.
        length, way = length_and_unit(_step(pair, J, frame, -error))
        return point + jnp.minimum(length, pair.reach) * way, best, least, square, steps + 1

    infinite = jnp.full((), jnp.inf, start.dtype)
    point = jax.lax.while_loop(going_on, step, (start, start, infinite, infinite, 0))[1]
    # It may lead to another place, where b is seen straight as well, but by a longer way out.
    foot, normal, far = seen(pair, point)
    distance = pair.across + 2 * pair.reach
    less = _LESS * jnp.abs(distance) + jnp.sqrt(jnp.finfo(start.dtype).eps) * pair.reach
    return jnp.where(dot(normal, far - foot) < distance - less, start, point)


def _linear(pair: Pair, point: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3 3"], Float[Array, "3 3"]]:
    """The error, its derivative along the axes of a frame, and these axes: two tangents and the normal."""
    _, normal = length_and_unit(point - pair.a.core_nearest(point))
    tangent = perpendicular(normal)
    frame = jnp.stack([tangent, jnp.cross(normal, tangent), normal])
    error, J = jax.vmap(
        lambda way: jax.jvp(lambda point: _error(pair, point), (point,), (way,)), out_axes=(None, 1)
    )(frame)  # fmt: skip
    return error, J, frame


def _step(
    pair: Pair, J: Float[Array, "3 3"], frame: Float[Array, "3 3"], change: Float[Array, "3"]
) -> Float[Array, "3"]:
    """The smallest step that changes the error so, or as nearly as a step can."""
    J, change = dot(frame, J), dot(frame, change)
    # The height changes with the third coordinate alone.
    up = change[2] * pair.reach
    return dot(frame.T, jnp.append(_least_squares(J[:2, :2], change[:2] - J[:2, 2] * up), up))


def _least_squares(K: Float[Array, "2 2"], b: Float[Array, "2"]) -> Float[Array, "2"]:
    """The smallest x with the smallest |K x − b|."""
    # In closed form, without normal equations, which would leave half of the digits that decide about the rank.
    smallest = jnp.finfo(K.dtype).eps ** 0.75
    determinant, square = K[0, 0] * K[1, 1] - K[0, 1] * K[1, 0], jnp.sum(K**2)
    regular, nothing = jnp.abs(determinant) > smallest * square, square <= smallest**2
    adjugate = dot(dot(jnp.array([[0, 1], [-1, 0]], K.dtype), K.T), jnp.array([[0, -1], [1, 0]], K.dtype))
    inverse = jnp.where(regular, adjugate, K.T) / jnp.where(nothing, 1, jnp.where(regular, determinant, square))
    return jnp.where(nothing, 0, dot(inverse, b))
