"""The direction in which a convex set reaches least far, proved by bounds on all others."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Scalar

from jdyn.array.dot import dot
from jdyn.geometry.argmin import first_of_least
from jdyn.geometry.directions import perpendicular, unit

# Cells that are cut: thirty to fifty of most sets, all where many directions are nearly as good.
_CUTS = 160
_OCTANTS = ((0, 1, 2), (0, 2, 4), (0, 4, 5), (0, 5, 1), (3, 2, 1), (3, 4, 2), (3, 5, 4), (3, 1, 5))


class _Lowest(NamedTuple):
    """Least bound of a cell, and its place.

    Attributes:
        bound: Below how far the set reaches in any direction of the cell; infinite if it is least at a corner [m].
        normal: The direction there.
        side: The number of the side of the cell that it is on; 3 within.
    """

    bound: Scalar
    normal: Float[Array, "3"]
    side: Int[Array, ""]


def least_width(
    support: Callable[[Float[Array, "3"]], Float[Array, "3"]], known: Float[Array, "3"], width: Scalar, enough: Scalar
) -> Float[Array, "3"]:
    """The unit vector n with the least h(n), how far a convex set reaches that holds the origin.

    Cells are triangles of directions. The points that are farthest in those of the corners give three planes, which lie
    below h. In a cell, the highest of them is lowest where two cross on a side, or all three within it, or at a corner.
    The cell with the least such bound is cut there into three, until no bound is below the best h that was found by
    more than is `enough`.

    Args:
        support: The point of the set that is farthest in a direction.
        known: A direction, best one where h has a minimum.
        width: h of it [m].
        enough: How far h of the result may be above the least one [m]. If that of the known one is not, it is returned.

    Source: the planes are those of van den Bergen 2001, Proximity queries and penetration depth computation on 3D game
    objects, whose polytope grows where it is nearest. Cells that know nothing of each other need no lists of faces.
    """
    across = perpendicular(known)
    axes = jnp.stack([known, across, jnp.cross(known, across)])
    ends = jnp.concatenate([axes, -axes])
    points = jax.vmap(support)(ends)
    # Corners and points of a cell.
    cells = jnp.stack([ends, points], axis=1)[jnp.array(_OCTANTS)]
    bounds = _bounds(cells)
    count = len(cells)
    cells = jnp.concatenate([cells, jnp.zeros((2 * _CUTS, 3, 2, 3), cells.dtype)])
    bounds = jnp.concatenate([bounds, jnp.full(2 * _CUTS, jnp.inf, bounds.dtype)])
    # The known one counts as less wide than it is, so that another one has to be less wide by enough.
    widths = jnp.append(jnp.sum(ends * points, axis=1), width - enough)
    first = jnp.argmin(widths)
    found = jnp.where(first == len(ends), width, widths[first]), jnp.concatenate([ends, known[None]])[first]

    def going_on(state):
        _, bounds, (least, _), cuts = state
        return (jnp.min(bounds) < least - enough) & (cuts < _CUTS)

    def cut(state):
        cells, bounds, (least, best), cuts = state
        row, last = first_of_least(bounds), count + 2 * cuts
        cell = cells[row]
        lowest = _lowest(cell)
        new = jnp.stack([lowest.normal, support(lowest.normal)])
        height = dot(*new)
        better = height < least - enough
        found = jnp.where(better, height, least), jnp.where(better, lowest.normal, best)
        parts = jnp.stack([cell, jnp.roll(cell, -1, axis=0), jnp.broadcast_to(new, cell.shape)], axis=1)
        # Nothing is between the cut and the side that it is on.
        rest = jnp.where(jnp.arange(3) == lowest.side, jnp.inf, _bounds(parts))
        cells = _with_rows(_with_rows(cells, parts[:1], row), parts[1:], last)
        return cells, _with_rows(_with_rows(bounds, rest[:1], row), rest[1:], last), found, cuts + 1

    return jax.lax.while_loop(going_on, cut, (cells, bounds, found, 0))[2][1]


def _with_rows(x: Float[Array, "rows *k"], rows: Float[Array, "some *k"], first: Int[Array, ""]) -> Array:
    return jax.lax.dynamic_update_slice_in_dim(x, rows, first, 0)


def _bounds(cells: Float[Array, "cells 3 2 3"]) -> Float[Array, " cells"]:
    return jax.vmap(lambda cell: _lowest(cell).bound)(cells)


def _lowest(cell: Float[Array, "3 2 3"]) -> _Lowest:
    n, x = cell[:, 0], cell[:, 1]
    after_n, after_x = (jnp.roll(y, -1, axis=0) for y in (n, x))
    at_first, at_last = jnp.sum(n * (x - after_x), axis=1), jnp.sum(after_n * (after_x - x), axis=1)
    within = jnp.cross(x[1] - x[0], x[2] - x[0])
    normals = jax.vmap(unit)(jnp.concatenate([n * at_last[:, None] + after_n * at_first[:, None], within[None]]))
    # On which side of each side of the cell; the cell may be either way round.
    beside = jnp.sum(jnp.cross(n, after_n) * normals[3:], axis=1)
    inside = jnp.all(beside > 0) | jnp.all(beside < 0)
    towards = jnp.where(jnp.sum(normals[3] * jnp.sum(n, axis=0)) < 0, -1, 1)
    normals = normals.at[3].multiply(towards)
    heights = jnp.sum(normals * jnp.concatenate([x, x[:1]]), axis=1)
    heights = jnp.where(jnp.append((at_first > 0) & (at_last > 0), inside), heights, jnp.inf)
    side = jnp.argmin(heights)
    return _Lowest(heights[side], normals[side], side)
