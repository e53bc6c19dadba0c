"""Nearest points of two convex sets that are apart, from their support functions."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jdyn.array.dot import dot

Support = Callable[[Float[Array, "3"]], Float[Array, "3"]]

# Polytopes end after a few steps; curved shapes converge linearly, and Newton's method follows.
_STEPS = 64


class Nearest(NamedTuple):
    """Nearest points of two sets as averages of up to three points of each.

    Attributes:
        a, b: Points of the two sets, in rows.
        weights: Of the rows; zero for those that are not used.
        difference: From the nearest point of a to that of b.
        overlapping: Whether the sets have points in common, as far as rounding tells.
    """

    a: Float[Array, "3 3"]
    b: Float[Array, "3 3"]
    weights: Float[Array, "3"]
    difference: Float[Array, "3"]
    overlapping: Bool[Array, ""]


def nearest(a: Support, b: Support, direction: Float[Array, "3"], size: Float[Array, ""], tolerance: float) -> Nearest:
    """Find the nearest points by the algorithm of Gilbert, Johnson and Keerthi.

    The nearest point of each simplex is the best of those of its parts that have the newest corner: eight, in closed
    form. No step leaves the distance larger, whatever rounding does.

    Args:
        a, b: Support functions, in one frame.
        direction: A guess of the direction from a to b.
        size: Of the sets and their distance; lengths below a hundred roundings of it are zero.
        tolerance: Fraction of its square by which the distance times a lower bound of it may be smaller.

    Source: Gilbert, Johnson and Keerthi 1988, A fast procedure for computing the distance between complex objects.
    """
    eps = jnp.finfo(direction.dtype).eps
    nothing = (100 * eps * size) ** 2

    def corner(direction):
        return a(direction), b(-direction)

    def going_on(state):
        return ~state[-1] & (state[-2] < _STEPS)

    def step(state):
        found, step, _ = state
        v = found.difference
        point_a, point_b = corner(v)
        square, height = dot(v, v), dot(v, point_b - point_a)
        nearer = _with_corner(found, point_a, point_b, height > 0)
        left = dot(nearer.difference, nearer.difference)
        better = nearer.overlapping | (left < square)
        optimal = square - height <= tolerance * square
        take = better & ~optimal
        kept = jax.tree.map(lambda new, old: jnp.where(take, new, old), nearer, found)
        touching = dot(kept.difference, kept.difference) <= nothing
        kept = kept._replace(overlapping=kept.overlapping | touching)
        return kept, step + 1, ~take | kept.overlapping

    point_a, point_b = corner(direction)
    first = Nearest(
        jnp.broadcast_to(point_a, (3, 3)), jnp.broadcast_to(point_b, (3, 3)),
        jnp.array([1, 0, 0], direction.dtype), point_b - point_a, jnp.sum((point_b - point_a) ** 2) <= nothing,
    )  # fmt: skip
    found, _, _ = jax.lax.while_loop(going_on, step, (first, 0, first.overlapping))
    return found


def _with_corner(
    found: Nearest, point_a: Float[Array, "3"], point_b: Float[Array, "3"], apart: Bool[Array, ""]
) -> Nearest:
    """The nearest point of the simplex with one more corner, which is known not to hold the origin if `apart`."""
    new = point_b - point_a
    used = found.weights > 0
    sides = jnp.where(used[:, None], found.b - found.a - new[None], 0)
    after = jnp.array([1, 2, 0])
    eye = jnp.eye(3, dtype=new.dtype)

    # Segments from the new corner.
    squares = jnp.sum(sides**2, axis=1)
    part = -dot(sides, new) / jnp.where(squares > 0, squares, 1)
    on_segments = eye * part[:, None]

    # Triangles at the new corner, by the dual basis of two sides: rounding spares it more than Gram's matrix.
    next_side = sides[after]
    normals = jnp.cross(sides, next_side)
    areas = jnp.sum(normals**2, axis=1)
    flat = areas <= (16 * jnp.finfo(new.dtype).eps) ** 2 * squares * squares[after]
    areas = jnp.where(flat, 1, areas)
    first = dot(jnp.cross(normals, next_side), new) / areas
    second = dot(jnp.cross(sides, normals), new) / areas
    on_triangles = jnp.where(flat[:, None], -1, eye * first[:, None] + eye[after] * second[:, None])

    # The tetrahedron, whose volume is that of the third side above the first triangle.
    volume = dot(sides[2], normals[0])
    inside = -dot(normals[after], new) / jnp.where(volume != 0, volume, 1)
    holds = jnp.all(inside > 0) & (jnp.sum(inside) < 1) & (volume != 0) & ~apart

    weights = jnp.concatenate([jnp.zeros((1, 3), new.dtype), on_segments, on_triangles])
    valid = jnp.all(weights >= 0, axis=1) & (jnp.sum(weights, axis=1) <= 1)
    # A triangle of which a side has no weight is a segment, and a segment without weight the corner.
    valid = valid.at[1:].set(valid[1:] & (jnp.sum(weights[1:] > 0, axis=1) == jnp.array([1, 1, 1, 2, 2, 2])))
    above = (dot(normals, new) / areas)[:, None] * normals
    points = jnp.concatenate([new[None], new[None] + part[:, None] * sides, above])
    best = jnp.argmin(jnp.where(valid, jnp.sum(points**2, axis=1), jnp.inf))

    # At most two of the earlier corners have weight: the new one takes the place of one that has none.
    kept = weights[best]
    free = jnp.arange(3) == jnp.argmin(kept)
    return Nearest(
        jnp.where(free[:, None], point_a[None], found.a), jnp.where(free[:, None], point_b[None], found.b),
        jnp.where(free, 1 - jnp.sum(kept), kept), points[best], holds,
    )  # fmt: skip
