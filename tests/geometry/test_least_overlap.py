"""How deep polytopes overlap, beside the faces that Qhull finds of their difference."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.spatial
from scipy.spatial.transform import Rotation

from jdyn.geometry import Box, Capsule, ConvexHull
from jdyn.geometry.boxes import least_overlap_of_boxes
from jdyn.geometry.least_overlap import least_overlap
from jdyn.geometry.polytopes import polytope
from jdyn.spatial import Transform

pytestmark = pytest.mark.fast_compile

POINTS = np.random.default_rng(0).normal(size=(24, 3))
SHAPES = {
    "capsule": Capsule(jnp.array(0.1), jnp.array(0.7)),
    "box": Box(jnp.array([0.3, 0.5, 0.8])),
    "round hull": ConvexHull.of(0.4 * POINTS / np.linalg.norm(POINTS, axis=1)[:, None]),
    "flat box": Box(jnp.array([0.4, 0.02, 0.6])),
    "flat hull": ConvexHull.of(POINTS * np.array([0.3, 0.2, 0.002])),
}


def of_polytopes(a, b, X):
    return least_overlap(polytope(a), polytope(b).to_parent(X))


@pytest.mark.parametrize(
    ("way", "first", "second"),
    [
        (of_polytopes, "round hull", "flat hull"),
        (of_polytopes, "box", "capsule"),
        (least_overlap_of_boxes, "box", "flat box"),
    ],
    ids=["hulls", "box and capsule", "boxes"],
)
def test_overlaps_are_the_least_distance_of_a_face_of_the_difference(way, first, second):
    first, second, count = SHAPES[first], SHAPES[second], 60
    rng = np.random.default_rng(1)
    # Some have their middles in one place, where many directions are nearly as good.
    places = rng.normal(size=(count, 3)) * 0.1 * rng.integers(0, 2, (count, 1))
    X = Transform(jnp.array(Rotation.random(count, rng).as_matrix()), jnp.array(places))

    @jax.jit
    @jax.vmap
    def found(X):
        a, moved = polytope(first), polytope(second).to_parent(X)
        normal = way(first, second, X)
        return a.vertices, moved.vertices, normal, jnp.max(a.vertices @ normal) - jnp.min(moved.vertices @ normal)

    of_a, vertices, normals, depths = found(X)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=1e-14)
    compared = 0
    for of_b, depth in zip(np.asarray(vertices), depths, strict=True):
        differences = [p - q for p, q in itertools.product(np.asarray(of_a[0]), of_b)]
        offsets = scipy.spatial.ConvexHull(differences).equations[:, 3]
        if np.max(offsets) < 0:
            # Qhull merges faces that are in one plane up to its own rounding.
            np.testing.assert_allclose(depth, -np.max(offsets), atol=1e-12)
            compared += 1
    assert compared > count / 2


def test_boxes_with_parallel_edges_part_along_a_face():
    a, b = SHAPES["box"], SHAPES["flat box"]
    turned = jnp.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for place, expected in [((-0.1, 0.0, 0.0), (-1.0, 0.0, 0.0)), ((0.0, 0.0, 0.69), (0.0, 0.0, 1.0))]:
        normal = least_overlap_of_boxes(a, b, Transform(turned, jnp.array(place)))
        np.testing.assert_array_equal(normal, expected)
