"""The distance of two shapes."""

from typing import Any

import jax
from jaxtyping import Array, Float

from jdyn.array.dot import dot
from jdyn.execution.at_once import at_once
from jdyn.geometry.capsules import capsule_separation
from jdyn.geometry.facets import Facet
from jdyn.geometry.hull import ConvexHull
from jdyn.geometry.outside import Pair, outside, seen
from jdyn.geometry.search import search
from jdyn.geometry.separation import Separation
from jdyn.geometry.shapes import Capsule, Convex, HalfSpace, Solid, Sphere
from jdyn.spatial import Transform

Shape = Convex | HalfSpace


def separation(a: Shape, X_a: Transform, b: Shape, X_b: Transform, *, everywhere: bool = True) -> Separation:
    """Distance, normal and nearest points of two shapes that are apart, touch or overlap.

    >>> from jdyn.geometry import Box, Cylinder, separation
    >>> box, cylinder = Box(jnp.ones(3)), Cylinder(jnp.array(0.5), jnp.array(2.0))
    >>> above = jdyn.Transform(jnp.eye(3), jnp.array([0.0, 0.0, 2.0]))
    >>> print(separation(box, jdyn.Transform.identity(), cylinder, above).distance)
    0.5

    The distance of shapes that are apart is exact up to rounding. Where they overlap it is minus the length of the
    shortest way out, along the normal. It is exact as well for half-spaces, for spheres against all, and for all pairs
    of capsules, boxes and hulls; capsules are then cores with a radius, and only their cores' overlap is a matter of
    edges and faces. If a cylinder or an ellipsoid overlaps with a capsule, a box, a hull, a cylinder or an ellipsoid,
    it is a way out that no small change of direction makes shorter, and no other is shorter by more than a thousandth.

    Derivatives of both modes and of any order are those of the nearest points and of the normal at the solution,
    without iterations. The distance has kinks where the shortest way out changes; and points and normal jump where
    faces are parallel, edges lie in faces or axes are parallel. There they are those of one side, or stay where they
    are on the other shape. None is NaN.

    Args:
        a, b: The shapes.
        X_a, X_b: Their poses in a common frame, which the results are in.
        everywhere: Whether cylinders and ellipsoids that overlap are parted by the shortest way in any case. If not, it
            is one that no small change makes shorter, for a third to a half of the time.

    Raises:
        ValueError: if both are half-spaces, or one is no shape that has a distance.

    Source: Gilbert, Johnson and Keerthi 1988 for the search where they are apart, Gregorius 2013 where they overlap,
    van den Bergen 2001 for the proof that no way out is shorter.
    """
    for name, shape in (("a", a), ("b", b)):
        if not isinstance(shape, Shape):
            raise ValueError(f"separation: {name}: expected a half-space or a convex shape, got {type(shape).__name__}")
    if isinstance(a, HalfSpace) and isinstance(b, HalfSpace):
        raise ValueError("separation: two half-spaces have no distance; expected at most one, got two")
    if isinstance(b, HalfSpace) or (isinstance(a, Sphere) and isinstance(b, Solid) and not isinstance(b, Sphere)):
        return separation(b, X_b, a, X_a, everywhere=everywhere).flipped()
    if isinstance(a, Capsule) and isinstance(b, Capsule):
        return capsule_separation(a, X_a, b, X_b)
    X = X_a.inverse() @ X_b
    if isinstance(a, HalfSpace):
        local = _above(b, X)
    elif isinstance(a, Solid) and isinstance(b, Sphere):
        local = _from_surface(a, b, X.translation)
    else:
        local = _of_cores(a, b, X, everywhere)
    return Separation(
        X_a.point_to_parent(local.a), X_a.point_to_parent(local.b), dot(X_a.rotation, local.normal), local.distance
    )


def _above(b: Convex, X: Transform) -> Separation:
    """From the half-space in whose frame b has pose X."""
    lowest = X.point_to_parent(b.core_support(-X.rotation[2])).at[2].add(-b.rounding)
    foot, normal = HalfSpace().surface(lowest)
    return Separation(foot, lowest, normal, lowest[2])


def _from_surface(a: Solid, b: Sphere, centre: Float[Array, "3"]) -> Separation:
    foot, normal = a.surface(centre)
    return Separation(foot, centre - b.radius * normal, normal, dot(normal, centre - foot) - b.radius)


def _of_cores(a: Convex, b: Convex, X: Transform, everywhere: bool) -> Separation:
    fixed_a, fixed_b, fixed_X = jax.lax.stop_gradient((a, b, X))
    found = search(fixed_a, fixed_b, fixed_X, everywhere=everywhere)
    rows_b = jax.vmap(fixed_X.point_to_child)(found.b)
    pair = Pair(
        _near(a, found.a, found.weights), _near(b, rows_b, found.weights), X, found.reach,
        found.distance - 2 * found.reach,
    )  # fmt: skip
    point = outside(pair, dot(found.weights, found.a) + found.reach * found.normal)
    foot, normal, far = at_once(seen(pair, point))
    return Separation(
        foot + a.rounding * normal, far - b.rounding * normal, normal,
        dot(normal, far - foot) - a.rounding - b.rounding,
    )  # fmt: skip


def _near(shape: Convex, points: Float[Array, "3 3"], weights: Float[Array, "3"]) -> Any:
    """The shape; of a hull the part that some of its vertices, found by their places, stand for."""
    if not isinstance(shape, ConvexHull):
        return shape
    return Facet(shape.corners_at(points), weights)
