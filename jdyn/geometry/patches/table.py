"""Which function finds the points at which two kinds of shapes touch."""

import itertools
from collections.abc import Callable

from jdyn.geometry.height_field import HeightField
from jdyn.geometry.hull import ConvexHull
from jdyn.geometry.patches.flat import flat_on_flat
from jdyn.geometry.patches.ground import on_half_space, on_height_field
from jdyn.geometry.patches.lines import line_on_line
from jdyn.geometry.patches.round import round_on_any
from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Sphere
from jdyn.spatial import Transform

# Pairs have the earlier one first.
KINDS: tuple[type, ...] = (HalfSpace, HeightField, Sphere, Capsule, Box, Cylinder, Ellipsoid, ConvexHull)
BODIES = KINDS[2:]
ROUND = (Sphere, Ellipsoid)

PATCHES: dict[tuple[type, type], Callable[..., Separation]] = {
    **{(HalfSpace, kind): on_half_space for kind in BODIES},
    **{(HeightField, kind): on_height_field for kind in BODIES},
    **{
        (first, second): round_on_any if first in ROUND or second in ROUND else flat_on_flat
        for first, second in itertools.combinations_with_replacement(BODIES, 2)
    },
    (Capsule, Capsule): line_on_line,
}


def contact_patch(a, X_a: Transform, b, X_b: Transform) -> Separation:
    """The points at which two shapes touch, or may touch next: a fixed number of rows for every two kinds.

    >>> from jdyn.geometry import Box, HalfSpace, contact_patch
    >>> here, above = jdyn.Transform.identity(), jdyn.Transform(jnp.eye(3), jnp.array([0.0, 0.0, 0.4]))
    >>> points = contact_patch(HalfSpace(), here, Box(jnp.ones(3)), above)
    >>> print(points.distance.round(3))
    [-0.1  0.9 -0.1  0.9 -0.1  0.9 -0.1  0.9]

    Ground is touched by points of the other shape, in a row each. Spheres and ellipsoids touch in their nearest points.
    Of capsules, boxes, cylinders and hulls, the flat or straight parts that face one another are laid on one another
    along the normal of the nearest points: rows are corners of the common region, up to eight between boxes. The
    nearest points are one more row, which counts where this region is a point, or has no corner as deep. Of cylinders
    and ellipsoids that overlap they lie along a way out that no small change of direction makes shorter, and nearly
    always along the shortest; `separation` looks everywhere.

    Sums over rows of weight times a function of the distance change without jumps, but for three cases: where the
    shortest way out of an overlap changes, normals jump; where another face of a hull comes to face the other shape, so
    do its corners; and at the border of a height field points end. Positions of single rows jump where they have no
    weight, or are apart. All rows have derivatives in both modes, of one side where there are two.

    Args:
        a, b: Two shapes of `jdyn.geometry`.
        X_a, X_b: Their poses in one frame, whose axes all vectors of the result have.

    Returns:
        Rows that are apart have positive distances, rows without a point infinite ones. Weights add up to four for
        areas, to two for lines, to one for points; ground weighs all points equally.

    Raises:
        ValueError: if both are ground (half-spaces or height fields).
    """
    kinds = type(a), type(b)
    if kinds in PATCHES:
        return PATCHES[kinds](a, X_a, b, X_b)
    if (type(b), type(a)) in PATCHES:
        return contact_patch(b, X_b, a, X_a).flipped()
    raise ValueError(
        f"contact of {kinds[0].__name__} and {kinds[1].__name__}: expected at most one half-space or height field in a "
        f"pair, and other shapes of {', '.join(kind.__name__ for kind in BODIES)}"
    )
