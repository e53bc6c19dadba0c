"""Nearest points of two cores, or the shortest way in which they leave each other; without derivatives."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jdyn.array.dot import dot
from jdyn.geometry.boxes import least_overlap_of_boxes
from jdyn.geometry.directions import unit
from jdyn.geometry.gjk import Nearest, nearest
from jdyn.geometry.lanes import in_turn_on_cpus
from jdyn.geometry.least_overlap import least_overlap
from jdyn.geometry.least_width import least_width
from jdyn.geometry.polytopes import CURVED, polytope
from jdyn.geometry.shapes import Box, Convex
from jdyn.spatial import Transform

# Each round of curved shapes takes half off the error of the direction or more, and Newton's method follows.
_ROUNDS = 24
_SETTLED = 1e-4
# Rounding leaves few digits to the direction between points that are nearer than this part of the reach: such cores are
# moved apart as well.
_NEAR = 0.01
_FARTHER = (0, 1, 2, 4, 8, 16)
# Of the depth of curved shapes, how much longer than the shortest way out the one that is found may be.
_LONGER = 5e-4


class Found(NamedTuple):
    """State of a search between two cores, in the frame of the first.

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


class _Way(NamedTuple):
    """Two cores that are on the way to be apart.

    Attributes:
        nearest: Of a and of b, moved by the shift.
        shift: Of b [m].
        normal: Between the nearest points.
        rounds: So many shifts were tried.
        settled: Whether no other is to be tried.
    """

    nearest: Nearest
    shift: Float[Array, "3"]
    normal: Float[Array, "3"]
    rounds: Int[Array, ""]
    settled: Bool[Array, ""]


class _Cores(NamedTuple):
    """Two shapes, and how large they are.

    Attributes:
        a, b: The shapes.
        X: Pose of b in the frame of a.
        centres: From the middle of a to that of b [m].
        size: Of both and their distance [m].
        reach: A length between those of the two shapes [m].
    """

    a: Convex
    b: Convex
    X: Transform
    centres: Float[Array, "3"]
    size: Float[Array, ""]
    reach: Float[Array, ""]


def search(a: Convex, b: Convex, X: Transform, *, everywhere: bool) -> Found:
    """For b with pose X in the frame of a.

    Cores that overlap are moved apart along the direction that separates them by the shortest way, exact for polytopes
    and a guess for curved ones; the nearest points then say in which direction the way is shorter, and so on. No round
    makes the way longer: if b, moved by s n, is nearest in direction m, the way along m is shorter by s (1 − m·n) or
    more.

    Args:
        a, b: The shapes.
        X: The pose.
        everywhere: Whether ways out of curved cores are compared with all others. If not, no small change of the
            direction makes them shorter.
    """
    return in_turn_on_cpus(functools.partial(_search, everywhere), a, b, X)


def _search(everywhere: bool, a: Convex, b: Convex, X: Transform) -> Found:
    cores = _cores(a, b, X)
    nothing = jnp.zeros((3, 3), cores.centres.dtype)
    none = jnp.zeros((), bool)
    start = _Way(
        Nearest(nothing, nothing, nothing[0], nothing[0], none), nothing[0], cores.centres, jnp.zeros((), int), none
    )
    way = _shortest(start, cores) if everywhere and _curved(cores) else _settled(start, cores)
    found, normal = way.nearest, way.normal
    distance = dot(normal, found.difference - way.shift)
    return Found(found.a, found.b - way.shift[None], found.weights, normal, distance, cores.reach)


def _settled(way: _Way, cores: _Cores) -> _Way:
    return jax.lax.while_loop(
        lambda way: ~way.settled & (way.rounds < _ROUNDS), lambda way: _another_round(way, cores), way
    )


def _shortest(start: _Way, cores: _Cores) -> _Way:
    """The way that settles from a start, and then from a shorter one, if there is any."""
    rounding = cores.a.rounding + cores.b.rounding
    nothing = 100 * jnp.finfo(rounding.dtype).eps * cores.size

    def shorter(normal, depth):
        enough = _LONGER * (depth + rounding) + nothing
        return least_width(lambda direction: _difference(cores, direction), normal, depth, enough)

    def settle(state):
        way, first, _ = state
        way = _settled(way, cores)
        depth = dot(way.normal, _difference(cores, way.normal))
        normal, _ = jax.lax.while_loop(
            # As in `_another_round`.
            lambda state: state[1],
            lambda state: (shorter(state[0], depth), jnp.zeros_like(state[1])),
            (way.normal, first & (depth > nothing)),
        )
        other = jnp.any(normal != way.normal)
        # A round that is not the first one takes the normal as it is, unless cores overlapped before.
        apart = way.nearest._replace(overlapping=jnp.zeros_like(other))
        next_way = _Way(apart, 0 * way.shift, normal, jnp.ones_like(way.rounds), jnp.zeros_like(other))
        return jax.tree.map(lambda new, old: jnp.where(other, new, old), next_way, way), jnp.zeros_like(first), other

    true = jnp.ones((), bool)
    return jax.lax.while_loop(lambda state: state[2], settle, (start, true, true))[0]


def _difference(cores: _Cores, direction: Float[Array, "3"]) -> Float[Array, "3"]:
    """From the point of b that is farthest against a direction to that of a farthest in it."""
    return cores.a.core_support(direction) - _support_b(cores, -direction)


def _cores(a: Convex, b: Convex, X: Transform) -> _Cores:
    (centre_a, radius_a), (centre_b, radius_b) = polytope(a).ball(), polytope(b).to_parent(X).ball()
    centres = centre_b - centre_a
    size = radius_a + radius_b + jnp.sqrt(dot(centres, centres))
    return _Cores(a, b, X, centres, size, _reach_between(radius_a + a.rounding, radius_b + b.rounding, size))


def _support_b(cores: _Cores, direction: Float[Array, "3"]) -> Float[Array, "3"]:
    return cores.X.point_to_parent(cores.b.core_support(dot(cores.X.rotation.T, direction)))


def _curved(cores: _Cores) -> bool:
    return isinstance(cores.a, CURVED) or isinstance(cores.b, CURVED)


def _nearest(cores: _Cores, shift: Float[Array, "3"], guess: Float[Array, "3"]) -> Nearest:
    # Polytopes have finitely many corners, and the last step is exact; Newton's method follows that of others.
    eps = float(jnp.finfo(shift.dtype).eps)
    tolerance = eps**0.8 if _curved(cores) else 8 * eps
    a = cores.a.core_support
    return nearest(a, lambda direction: _support_b(cores, direction) + shift, guess, cores.size, tolerance)


def _another_round(way: _Way, cores: _Cores) -> _Way:
    normal, _ = jax.lax.while_loop(
        # A loop of one step or none: a batch pays for it only if some of its cores overlap.
        lambda state: state[1],
        lambda state: (_least_overlap(cores), jnp.zeros_like(state[1])),
        (way.normal, way.nearest.overlapping),
    )
    first = way.rounds == 0
    shift = jnp.where(first, 0, _way_out(cores, unit(way.shift), normal))
    found = _nearest(cores, shift, normal)
    normal = unit(found.difference)
    far = dot(found.difference, found.difference) > (_NEAR * cores.reach) ** 2
    settled = ~found.overlapping & jnp.where(first, far, dot(unit(shift), normal) > 1 - _SETTLED**2 / 2)
    return _Way(found, shift, normal, way.rounds + 1, settled)


def _least_overlap(cores: _Cores) -> Float[Array, "3"]:
    if isinstance(cores.a, Box) and isinstance(cores.b, Box):
        return least_overlap_of_boxes(cores.a, cores.b, cores.X)
    return least_overlap(polytope(cores.a), polytope(cores.b).to_parent(cores.X))


def _way_out(cores: _Cores, before: Float[Array, "3"], normal: Float[Array, "3"]) -> Float[Array, "3"]:
    """From overlapping at all to being apart by the reach; farther from the direction before, while it pays."""

    def gap(normal):
        return -dot(normal, _difference(cores, normal))

    farther = jnp.where(jnp.any(before != 0), normal - before, 0)
    factors = jnp.asarray(_FARTHER if _curved(cores) else _FARTHER[:1], normal.dtype)
    normals = jax.vmap(lambda factor: unit(normal + factor * farther))(factors)
    gaps = jax.vmap(gap)(normals)
    best = jnp.argmax(gaps)
    return (cores.reach - gaps[best]) * normals[best]


def _reach_between(radius_a: Float[Array, ""], radius_b: Float[Array, ""], size: Float[Array, ""]) -> Float[Array, ""]:
    """A length between those of two shapes of a size."""
    smaller, larger = jnp.minimum(radius_a, radius_b), jnp.maximum(radius_a, radius_b)
    reach = jnp.maximum(smaller, larger / 1000) / 2
    return jnp.where(reach > 0, reach, jnp.where(size > 0, size, 1))
