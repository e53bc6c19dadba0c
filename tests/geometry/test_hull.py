"""Hulls of points."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.geometry import ConvexHull

pytestmark = pytest.mark.fast_compile


def test_the_hull_of_a_cube_has_faces_and_edges_of_a_cube():
    cube = list(itertools.product((0.0, 1.0), repeat=3))
    hull = ConvexHull.of([*cube, (0.5, 0.5, 0.5), (0.5, 0.5, 1.0), (0.0, 0.0, 0.0)])
    assert (hull.vertices.shape, hull.faces.shape, hull.edges.shape) == ((8, 3), (6, 3), (12, 4))


@pytest.mark.parametrize("seed", range(3))
def test_faces_of_a_hull_support_it_and_edges_lie_between_two(seed):
    points = np.random.default_rng(seed).normal(size=(40, 3))
    hull = ConvexHull.of(points)
    corners = np.asarray(hull.vertices)
    assert len(corners) - len(hull.edges) + len(hull.faces) == 2
    first, second, third = corners[np.asarray(hull.faces)].swapaxes(0, 1)
    normals = np.cross(second - first, third - first)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    heights = (points[None] - first[:, None]) @ normals[:, :, None]
    np.testing.assert_allclose(heights.max(axis=1), 0, atol=1e-13)
    for start, end, left, right in np.asarray(hull.edges):
        for vertex, face in itertools.product((start, end), (left, right)):
            assert abs((corners[vertex] - first[face]) @ normals[face]) < 1e-13


def test_the_support_of_a_hull_follows_its_vertices():
    hull = ConvexHull.of(np.random.default_rng(0).normal(size=(20, 3)))
    direction = jnp.array([1.0, 2.0, -1.0])
    point = hull.support(direction)
    assert point @ direction == np.max(np.asarray(hull.vertices) @ np.asarray(direction))

    def height(vertices):
        return ConvexHull(vertices, hull.faces, hull.edges).support(direction) @ direction

    assert jnp.sum(jnp.abs(jax.grad(height)(hull.vertices)), axis=0).tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], r"shape \(n, 3\) with n ≥ 4, got \(3, 3\)"),
        ([[0, 0], [1, 0], [0, 1], [1, 1]], r"shape \(n, 3\) with n ≥ 4, got \(4, 2\)"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, float("nan"), 1]], r"got \[0.0, nan, 1.0\] in row 3"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], "4 points within one plane"),
        ([[1, 2, 3]] * 5, "5 points within one plane"),
    ],
)
def test_points_without_a_hull_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        ConvexHull.of(points)
