"""How deep polytopes overlap, beside the faces that Qhull finds of their difference."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.spatial
from scipy.spatial.transform import Rotation

from jdyn.geometry import Box, Capsule, ConvexHull
from jdyn.geometry.least_overlap import least_overlap
from jdyn.geometry.polytopes import polytope
from jdyn.spatial import Transform

pytestmark = pytest.mark.fast_compile

POINTS = np.random.default_rng(0).normal(size=(24, 3))
SHAPES = {
    "capsule": Capsule(jnp.array(0.1), jnp.array(0.7)),
    "box": Box(jnp.array([0.3, 0.5, 0.8])),
    "round hull": ConvexHull.of(0.4 * POINTS / np.linalg.norm(POINTS, axis=1)[:, None]),
    "flat hull": ConvexHull.of(POINTS * np.array([0.3, 0.2, 0.002])),
}


@pytest.mark.parametrize(("first", "second"), [("round hull", "flat hull"), ("box", "capsule")])
def test_overlaps_are_the_least_distance_of_a_face_of_the_difference(first, second):
    a, b, count = polytope(SHAPES[first]), polytope(SHAPES[second]), 60
    rng = np.random.default_rng(1)
    # Some have their middles in one place, where many directions are nearly as good.
    places = rng.normal(size=(count, 3)) * 0.1 * rng.integers(0, 2, (count, 1))
    X = Transform(jnp.array(Rotation.random(count, rng).as_matrix()), jnp.array(places))

    @jax.jit
    @jax.vmap
    def found(X):
        moved = b.to_parent(X)
        normal = least_overlap(a, moved)
        return moved.vertices, normal, jnp.max(a.vertices @ normal) - jnp.min(moved.vertices @ normal)

    vertices, normals, depths = found(X)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=1e-14)
    compared = 0
    for of_b, depth in zip(np.asarray(vertices), depths, strict=True):
        differences = [p - q for p, q in itertools.product(np.asarray(a.vertices), of_b)]
        offsets = scipy.spatial.ConvexHull(differences).equations[:, 3]
        if np.max(offsets) < 0:
            # Qhull merges faces that are in one plane up to its own rounding.
            np.testing.assert_allclose(depth, -np.max(offsets), atol=1e-12)
            compared += 1
    assert compared > count / 2
