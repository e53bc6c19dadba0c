"""Distances of shapes.

What proves a distance of shapes that are apart: points of both at that distance, and a plane's normal along which their
support functions are as far from each other, which no pair of points can undercut.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jdyn.geometry import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, HalfSpace, Sphere, separation
from jdyn.spatial import Transform

pytestmark = pytest.mark.fast_compile


def _hull(seed, dtype=float):
    return ConvexHull.of(np.random.default_rng(seed).normal(size=(12, 3)) * 0.3, dtype)


SHAPES = {
    "sphere": Sphere(jnp.array(0.2)),
    "capsule": Capsule(jnp.array(0.1), jnp.array(0.7)),
    "box": Box(jnp.array([0.3, 0.5, 0.8])),
    "cylinder": Cylinder(jnp.array(0.3), jnp.array(0.7)),
    "ellipsoid": Ellipsoid(jnp.array([0.2, 0.3, 0.5])),
    "hull": _hull(0),
}
PAIRS = list(itertools.combinations_with_replacement(SHAPES, 2))
# One of each way to find it, and of each way for shapes to be where they are nearest.
SOME = [("box", "hull"), ("capsule", "cylinder"), ("cylinder", "ellipsoid")]
OTHERS = [pytest.param(*pair, marks=pytest.mark.slow) for pair in PAIRS if pair not in SOME]


def poses(count, spread=0.8, seed=1):
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(count, 3)) * spread * rng.uniform(size=(count, 1))
    return Transform(jnp.array(Rotation.random(count, random_state=seed).as_matrix()), jnp.array(places))


@jax.jit
def separations(a, X_a, b, X_b):
    return jax.vmap(separation, in_axes=(None, 0, None, 0))(a, X_a, b, X_b)


def _gap(shape_a, X_a, shape_b, X_b, normal):
    """How far the shapes are apart along a normal."""
    farthest_a = X_a.point_to_parent(shape_a.support(X_a.rotation.T @ normal))
    farthest_b = X_b.point_to_parent(shape_b.support(-(X_b.rotation.T @ normal)))
    return normal @ (farthest_b - farthest_a)


@pytest.mark.parametrize(("first", "second"), [*SOME, *OTHERS])
def test_no_plane_and_no_points_prove_another_distance(first, second):
    a, b = SHAPES[first], SHAPES[second]
    X_a, X_b = poses(300, seed=1), poses(300, seed=2)
    found = separations(a, X_a, b, X_b)
    gaps = jax.vmap(_gap, in_axes=(None, 0, None, 0, 0))(a, X_a, b, X_b, found.normal)
    assert 50 < np.sum(found.distance > 0) < 250 or "sphere" in (first, second) or first == "capsule"
    np.testing.assert_allclose(gaps, found.distance, atol=1e-14)
    np.testing.assert_allclose(found.b - found.a, found.distance[:, None] * found.normal, atol=1e-14)
    np.testing.assert_allclose(jnp.linalg.norm(found.normal, axis=1), 1, atol=1e-14)


def test_two_half_spaces_are_refused():
    X = Transform.identity()
    with pytest.raises(ValueError, match="two half-spaces have no distance; expected at most one"):
        separation(HalfSpace(), X, HalfSpace(), X)
