"""Where two cores are nearest, or how they leave each other by the shortest way; without derivatives."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jdyn.geometry.directions import unit
from jdyn.geometry.gjk import Nearest, nearest
from jdyn.geometry.polytopes import CURVED, least_overlap, polytope
from jdyn.geometry.shapes import Convex
from jdyn.spatial import Transform

# Each round of curved shapes takes half off the error of the direction or more, and Newton's method follows.
_ROUNDS = 24
_SETTLED = 1e-4
_FARTHER = (0, 1, 2, 4, 8, 16)


class Found(NamedTuple):
    """What is known of two cores, in the frame of the first.

    Attributes:
        a, b: Points of the two cores, in rows; an average of each is on the surface where the other core is nearest.
        weights: Of the rows in these averages.
        normal: From the first to the second where they are apart.
        distance: Along the normal between the two surfaces, below zero where the cores overlap.
        reach: A length between those of the two shapes, by which they are seen from outside.
    """

    a: Float[Array, "3 3"]
    b: Float[Array, "3 3"]
    weights: Float[Array, "3"]
    normal: Float[Array, "3"]
    distance: Float[Array, ""]
    reach: Float[Array, ""]


def search(a: Convex, b: Convex, X: Transform) -> Found:
    """For b with pose X in the frame of a.

    Cores that overlap are moved apart along the direction that separates them by the shortest way, exact for polytopes
    and a guess for curved ones; the nearest points then say in which direction the way is shorter, and so on. No round
    makes the way longer: if b, moved by s n, is nearest in direction m, the way along m is shorter by s (1 − m·n) or
    more.
    """
    polytope_a, polytope_b = polytope(a), polytope(b).to_parent(X)
    (centre_a, radius_a), (centre_b, radius_b) = polytope_a.ball(), polytope_b.ball()
    centres = centre_b - centre_a
    size = radius_a + radius_b + jnp.sqrt(centres @ centres)
    # Polytopes have finitely many corners, and the last step is exact; Newton's method follows that of others.
    eps = float(jnp.finfo(size.dtype).eps)
    curved = isinstance(a, CURVED) or isinstance(b, CURVED)
    tolerance, factors = (eps**0.8, _FARTHER) if curved else (8 * eps, _FARTHER[:1])
    reach = reach_between(radius_a + a.rounding, radius_b + b.rounding, size)

    def support_b(direction):
        return X.point_to_parent(b.core_support(X.rotation.T @ direction))

    def gap(normal):
        return normal @ (support_b(-normal) - a.core_support(normal))

    def way_out(before, normal):
        """From overlapping at all to being apart by the reach; farther from the direction before, while it pays."""
        farther = jnp.where(jnp.any(before != 0), normal - before, 0)
        normals = jax.vmap(lambda factor: unit(normal + factor * farther))(jnp.asarray(factors, normal.dtype))
        gaps = jax.vmap(gap)(normals)
        best = jnp.argmax(gaps)
        return (reach - gaps[best]) * normals[best]

    def going_on(state):
        return ~state[-1] & (state[-2] < _ROUNDS)

    def another_round(state):
        _, shift, guess, rounds, _ = state
        found = nearest(a.core_support, lambda direction: support_b(direction) + shift, guess, size, tolerance)
        # A loop of one step or none: a batch pays for it only if some of its cores overlap.
        normal, _ = jax.lax.while_loop(
            lambda state: state[1],
            lambda state: (least_overlap(polytope_a, polytope_b), jnp.zeros_like(state[1])),
            (unit(found.difference), found.overlapping),
        )
        settled = ~found.overlapping & ((jnp.sum(jnp.abs(shift)) == 0) | (unit(shift) @ normal > 1 - _SETTLED**2 / 2))
        shift = jnp.where(settled, shift, way_out(unit(shift), normal))
        return found, shift, normal, rounds + 1, settled

    nothing = jnp.zeros((3, 3), centres.dtype)
    start = Nearest(nothing, nothing, nothing[0], nothing[0], size < 0), nothing[0], centres, 0, size < 0
    found, shift, _, _, _ = jax.lax.while_loop(going_on, another_round, start)
    normal = unit(found.difference)
    distance = normal @ (found.difference - shift)
    return Found(found.a, found.b - shift[None], found.weights, normal, distance, reach)


def reach_between(radius_a: Float[Array, ""], radius_b: Float[Array, ""], size: Float[Array, ""]) -> Float[Array, ""]:
    """A length between those of two shapes of a size."""
    smaller, larger = jnp.minimum(radius_a, radius_b), jnp.maximum(radius_a, radius_b)
    reach = jnp.maximum(smaller, larger / 1000) / 2
    return jnp.where(reach > 0, reach, jnp.where(size > 0, size, 1))
