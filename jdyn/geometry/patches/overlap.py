"""Corners of the region where flat or straight parts of two shapes lie on one another."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Scalar

from jdyn.array import Structure
from jdyn.array.dot import dot
from jdyn.execution.at_once import at_once
from jdyn.geometry.directions import length_and_unit, perpendicular, unit
from jdyn.geometry.patches.features import Feature
from jdyn.geometry.separation import Separation

# Lines on bent sides lie on one another where they are nearer than this part of the smaller radius.
BREADTH = 0.1
# A region that is shorter around than this part of its shapes' is on the way to a point.
POINT = 0.1
# The nearest points count in full where all rows are higher by this part of the region's breadth, and rows of less than
# this weight are taken for higher.
_MISSED, _LIGHT = 0.01, 0.25
# Where a face is steeper than this against the normal, its height is that of a face which is not.
LEAST_COSINE = 1e-3


class Pieces(Structure):
    """Part of each side of a polygon that is within another polygon.

    Attributes:
        start: Where a piece begins, as a part of its side.
        length: [m]; zero where there is none.
        turn: Angle at its beginning between the side and the one before it, of either polygon [rad].
    """

    start: Float[Array, " m"]
    length: Float[Array, " m"]
    turn: Float[Array, " m"]


def overlap(p: Feature, q: Feature, nearest: Separation) -> tuple[Separation, Separation, Float[Array, ""]]:
    """Corners of the region in which p and q lie on one another, seen along the normal.

    Each side of p and of q has a row: the corner of the region at which the side's piece within the other polygon
    begins. The weight of a corner is the angle by which the border turns there, over a right angle. So a corner that is
    cut off becomes two without a jump, and where sides lie on one another, corners between them do not count. Weights
    add up to four for an area and to two for a line, and to less for a region that shrinks to a point.

    Args:
        p, q: Parts of two shapes that face one another, in one frame. Where only one may be a line, it is p.
        nearest: The nearest points of the shapes; the normal leads from p to q.

    Returns:
        Rows for the sides of p, rows for those of q, and the weight that is left for the nearest points.
    """
    sizes = len(p.corners), len(q.corners)
    # Counter-clockwise, as p, seen along the normal.
    q = dataclasses.replace(q, corners=q.corners[::-1])
    # Both by one program, since what is compiled counts.
    both = jax.tree.map(lambda *x: jnp.stack(x), *(_with_corners(part, max(sizes)) for part in (p, q)))
    others = jax.tree.map(lambda x: x[::-1], both)
    polygons = jax.vmap(_polygon, (0, None))(both.corners, nearest)
    around = _least(jnp.sum(polygons.lengths, axis=1))
    # Sides that lie on one another count once: p is within q where they differ by rounding, and q is not within p.
    margin = 16 * jnp.finfo(around.dtype).eps * around
    breadth = jnp.stack([BREADTH * _least(both.bend), jnp.zeros_like(margin)])
    margins = jnp.stack([margin, -margin])
    pieces = at_once(jax.vmap(_pieces)(polygons, jax.tree.map(lambda x: x[::-1], polygons), margins, breadth))
    # Lines that cross at right angles lie on one another in a point.
    length = jnp.sum(pieces.length) - 4 * breadth[0]
    share = smooth_step(length / (POINT * jnp.where(around > 0, around, 1)))
    # A line that stands on the other part is a point.
    share = jnp.where(around > 0, share, 0)
    # Those of p if both are lines.
    lies = jnp.stack([p.bend > 0, (q.bend > 0) & (p.bend <= 0)])
    ends = jnp.where(pieces.length > 0, both.weight[:, None], 0)
    weights = jnp.where(lies[:, None], ends, pieces.turn / (jnp.pi / 2))
    weights = jnp.where(lies[::-1, None], 0, share * weights)
    normals = jnp.stack([nearest.normal, -nearest.normal])
    rows = jax.vmap(_rows)(both, pieces, others, normals, weights)
    rows_p, rows_q = (jax.tree.map(lambda x, k=k: x[k, : sizes[k]], rows) for k in (0, 1))
    return rows_p, rows_q.flipped(), 1 - share * (1 - missed(rows.distance, rows.weight, nearest.distance, around / 4))


def missed(
    distances: Float[Array, "*rows"], weights: Float[Array, "*rows"], nearest: Scalar, size: Scalar
) -> Float[Array, ""]:
    """Share by which rows lack the depth of the nearest points, from none to all: sides may be round, or turn too
    little."""
    reach = _MISSED * jnp.where(size > 0, size, 1)
    higher = distances - nearest + reach * jnp.maximum(0, 1 - weights / _LIGHT)
    rounding = 64 * jnp.finfo(reach.dtype).eps * size
    lack = _least(jnp.where(weights > 0, higher, 2 * reach).reshape(-1)) - rounding
    return smooth_step(lack / reach)


def _with_corners(part: Feature, count: int) -> Feature:
    """The same with the first corner repeated, so that sides keep their places."""
    more = jnp.broadcast_to(part.corners[:1], (count - len(part.corners), 3))
    return dataclasses.replace(part, corners=jnp.concatenate([part.corners, more]))


class Polygon(Structure):
    """Corners in a plane, counter-clockwise, and the side from each one to the next: its length and direction."""

    corners: Float[Array, "m 2"]
    lengths: Float[Array, " m"]
    ways: Float[Array, "m 2"]


def _polygon(corners: Float[Array, "m 3"], nearest: Separation) -> Polygon:
    """Polygon as seen along the normal, from one of the nearest points."""
    first = perpendicular(nearest.normal)
    plane = jnp.stack([first, jnp.cross(nearest.normal, first)], axis=1)
    flat = dot(corners - nearest.a[None], plane)
    lengths, ways = jax.vmap(length_and_unit)(_sides(flat))
    flat, ways = at_once((flat, ways))
    return Polygon(flat, lengths, ways)


def _sides(corners: Float[Array, "m k"]) -> Float[Array, "m k"]:
    return jnp.roll(corners, -1, axis=0) - corners


def _pieces(p: Polygon, q: Polygon, margin: Scalar, breadth: Scalar) -> Pieces:
    """Pieces of the sides of p that are within q, which is wider by a margin, and by a breadth along its sides."""
    here = _beyond(q, p.corners, margin + jnp.where(q.lengths > 0, breadth, 0))
    there = jnp.roll(here, -1, axis=0)
    starts, ends = inner_part(here, there)
    # Where a piece begins, it came over this side of q.
    entered = jnp.argmax(starts, axis=1)
    start, end = _entries(starts.T, entered), _least(ends.T)
    length = jnp.maximum(end - start, 0) * p.lengths
    before = jnp.where(jnp.any(here > 0, axis=1)[:, None], q.ways[entered], _ways_before(p))
    # Where a corner of one is on a side of the other, as where an edge touches a rim, rounding and the margin leave a
    # piece of a side behind it; the border turns there once.
    behind = length <= jnp.sqrt(jnp.finfo(length.dtype).eps) * jnp.sum(p.lengths)
    return Pieces(start, length, jnp.where(behind, 0, _turn(before, p.ways)))


def inner_part(here: Float[Array, "*n"], there: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Part of the way from one place to another that is not outside, which they are by such distances where these are
    above zero: its beginning and its end, as shares."""
    enters, leaves = here > 0, there > 0
    crosses = enters != leaves
    crossing = jnp.where(crosses, here / jnp.where(crosses, here - there, 1), 0)
    return jnp.where(enters, jnp.where(leaves, 1, crossing), 0), jnp.where(leaves, crossing, 1)


def _beyond(q: Polygon, points: Float[Array, "m 2"], margins: Float[Array, " n"]) -> Float[Array, "m n"]:
    """Distance by which points are outside of each side of a polygon, less a margin."""
    outwards = jnp.stack([q.ways[:, 1], -q.ways[:, 0]], axis=1)
    # A side without length, between two others, ends a line, or touches a corner.
    between = (q.lengths <= 0) & (jnp.roll(q.lengths, 1) > 0) & (jnp.roll(q.lengths, -1) > 0)
    ahead = jnp.roll(q.ways, 1, axis=0) - jnp.roll(q.ways, -1, axis=0)
    outwards = jnp.where(between[:, None], jax.vmap(unit)(ahead), outwards)
    # Nothing is outside of the other sides without length.
    margins = jnp.where((q.lengths > 0) | between, margins, 0)
    return dot(points, outwards.T) - (jnp.sum(q.corners * outwards, axis=1) + margins)[None]


def _ways_before(p: Polygon) -> Float[Array, "m 2"]:
    """For each side, the direction of the last one before it that has a length."""
    m = len(p.lengths)
    steps_back = (np.arange(m)[:, None] - np.arange(m)[None] - 1) % m
    return p.ways[jnp.argmin(jnp.where((p.lengths > 0)[None], steps_back, m), axis=1)]


def _turn(before: Float[Array, "m 2"], after: Float[Array, "m 2"]) -> Float[Array, " m"]:
    """Angle to the left between unit vectors [rad], zero for one to the right or where one is zero."""
    sine = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
    cosine = jnp.sum(before * after, axis=1)
    turns = (sine > 0) | (cosine < 0)
    return jnp.where(turns, jnp.arctan2(jnp.abs(sine), jnp.where(turns, cosine, 1)), 0)


def _rows(p: Feature, of_p: Pieces, q: Feature, normal: Float[Array, "3"], weights: Float[Array, " m"]) -> Separation:
    """The starts of pieces of p, and the points of q that are opposite of them along the normal."""
    points = p.corners + of_p.start[:, None] * _sides(p.corners)
    upright, along = _upright(q, normal)
    cosine = dot(normal, upright)
    from_q = points - q.corners[:1]
    gaps = -dot(from_q, upright) / jnp.where(cosine > LEAST_COSINE, cosine, LEAST_COSINE)
    # Two lines that are not parallel are apart beside their nearest points, since their sides are bent.
    bend = jnp.where(p.bend > 0, q.bend, 0)
    aside = jnp.minimum(dot(from_q, jnp.cross(normal, along)) ** 2, bend**2 / 4)
    gaps += bend - jnp.sqrt(jnp.where(bend > 0, bend**2 - aside, 1)) * jnp.where(bend > 0, 1, 0)
    gaps -= p.rounding + q.rounding
    gaps = jnp.where(weights > 0, gaps, 0)
    a = points + p.rounding * normal[None]
    normals = jnp.broadcast_to(normal, points.shape)
    distance = jnp.where(weights > 0, gaps, jnp.inf)
    return Separation(a, a + gaps[:, None] * normals, normals, distance, weights)


def _upright(part: Feature, normal: Float[Array, "3"]) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
    """Unit normal of a polygon, or of a line the unit vector across it that is nearest to a normal; and the direction
    of the line."""
    way = unit(part.corners[1] - part.corners[0])
    from_first = part.corners - part.corners[:1]
    turned = jnp.sum(jnp.cross(from_first, jnp.roll(from_first, -1, axis=0)), axis=0)
    upright = unit(jnp.where(part.bend > 0, normal - way * dot(way, normal), turned))
    return jnp.where(dot(upright, normal) < 0, -upright, upright), way


def _least(x: Float[Array, "n *rest"]) -> Float[Array, "*rest"]:
    """The least of each column. Derivatives of `jnp.min` are not safe: they look for numbers that equal it, which XLA
    may compute twice, and round differently."""
    return _entries(x, jnp.argmin(x, axis=0))


def _entries(x: Float[Array, "n *rest"], rows: Int[Array, "*rest"]) -> Float[Array, "*rest"]:
    """Entry of each column that its row names."""
    return jnp.sum(jnp.where(jnp.arange(len(x)).reshape(-1, *[1] * rows.ndim) == rows[None], x, 0), axis=0)


def smooth_step(x: Float[Array, ""]) -> Float[Array, ""]:
    """From 0 at 0 to 1 at 1, with slopes of zero."""
    x = jnp.clip(x, 0, 1)
    return x**2 * (3 - 2 * x)
