"""The direction along which two polytopes overlap least."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jdyn.array.dot import dot
from jdyn.geometry.argmin import first_of_least
from jdyn.geometry.directions import unit
from jdyn.geometry.polytopes import Polytope

# Of arcs that are cut: two in most pairs, and fewer than twenty in all that have been tried.
_CUTS = 64


class Arcs(NamedTuple):
    """Normals of a that touch one of its edges, in parts: arcs on the unit sphere.

    Attributes:
        ends: Unit normals at both ends of each arc.
        ways: From the vertices of b that are farthest against the normals at the ends to the edge of a [m].
        edges: Of each arc, the number of its edge.
    """

    ends: Float[Array, "*arcs 2 3"]
    ways: Float[Array, "*arcs 2 3"]
    edges: Int[Array, "*arcs"]


def least_overlap(a: Polytope, b: Polytope) -> Float[Array, "3"]:
    """The unit vector along which b must be moved least to leave a, exact where they overlap.

    How far they overlap along n is the support of their difference, h(n) = max n·(p − q) over vertices p of a and q of
    b. Its minimum is at a normal of a face of a or b, or where the normals at an edge of a meet those at one of b. On
    an arc of normals at an edge, each vertex q gives a sine, which lies below h: the two that are h at the ends leave
    it no lower than where they cross. The arc with the least such bound is cut there, until no bound is below the best
    h that was found. What is found is always a way out, whatever rounding does.

    Source: Gregorius 2013, The separating axis test between convex polyhedra (Game Developers Conference), for arcs.
    """
    if len(b.starts) < len(a.starts):
        return -least_overlap(b, a)
    heights = dot(b.vertices, a.normals.T)
    of_a = _own_heights(a) - jnp.min(heights, axis=0)
    of_b = _own_heights(b) - jnp.min(dot(a.vertices, b.normals.T), axis=0)
    # Faces without area have no normal.
    depths = jnp.concatenate([
        jnp.where(jnp.any(normals != 0, axis=1), of, jnp.inf) for normals, of in ((a.normals, of_a), (b.normals, of_b))
    ])  # fmt: skip
    best = jnp.argmin(depths)
    found = depths[best], jnp.concatenate([a.normals, -b.normals])[best]
    if not len(a.starts):
        return found[1]
    starts = a.vertices[a.starts]
    ways = starts[:, None] - b.vertices[first_of_least(heights)][a.beside]
    return _cut(Arcs(a.normals[a.beside], ways, jnp.arange(len(starts))), starts, b.vertices, found)


def _cut(arcs: Arcs, starts: Float[Array, "edges 3"], far: Float[Array, "vertices 3"], found: tuple) -> Array:
    """The direction of the least overlap on any arc, or the one found before."""
    count = len(starts)
    bounds = jax.vmap(_crossing)(arcs)[0]
    room = (jnp.zeros((_CUTS, *x.shape[1:]), x.dtype) for x in arcs)
    arcs = Arcs(*(jnp.concatenate([x, more]) for x, more in zip(arcs, room, strict=True)))
    bounds = jnp.concatenate([bounds, jnp.full(_CUTS, jnp.inf, bounds.dtype)])
    rounding = 8 * jnp.finfo(bounds.dtype).eps * (jnp.max(jnp.abs(starts)) + jnp.max(jnp.abs(far)))

    def going_on(state):
        *_, bounds, (depth, _), cuts = state
        return (jnp.min(bounds) < depth - rounding) & (cuts < _CUTS)

    def cut(state):
        arcs, bounds, (depth, best), cuts = state
        least = first_of_least(bounds)
        (ends, ways, edge) = arc = Arcs(*(x[least] for x in arcs))
        normal = _crossing(arc)[1]
        way = starts[edge] - far[first_of_least(dot(far, normal))]
        height = dot(normal, way)
        found = jnp.minimum(height, depth), jnp.where(height < depth, normal, best)
        parts = Arcs(
            jnp.stack([jnp.stack([ends[0], normal]), jnp.stack([normal, ends[1]])]),
            jnp.stack([jnp.stack([ways[0], way]), jnp.stack([way, ways[1]])]),
            jnp.stack([edge, edge]),
        )
        rows = jnp.stack([least, count + cuts])
        arcs = Arcs(*(x.at[rows].set(part) for x, part in zip(arcs, parts, strict=True)))
        return arcs, bounds.at[rows].set(jax.vmap(_crossing)(parts)[0]), found, cuts + 1

    return jax.lax.while_loop(going_on, cut, (arcs, bounds, found, 0))[2][1]


def _crossing(arc: Arcs) -> tuple[Float[Array, ""], Float[Array, "3"]]:
    """Crossing of the sines of both ends of an arc: how far up, and the normal there. Infinite where they do not cross:
    then the arc is nowhere lower than at an end."""
    (first, last), (way, other) = arc.ends, arc.ways
    at_first, at_last = dot(first, way - other), dot(last, other - way)
    crosses = (at_first > 0) & (at_last > 0)
    normal = unit(first * at_last + last * at_first)
    return jnp.where(crosses, dot(normal, way), jnp.inf), normal


def _own_heights(polytope: Polytope) -> Float[Array, " faces"]:
    """Height of each face along its normal."""
    return jnp.sum(polytope.normals * polytope.vertices[polytope.corners], axis=1)
