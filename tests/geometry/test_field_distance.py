"""Distances from height fields, beside the nearest of all triangles that trimesh and coal find."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

from jdyn.geometry import Box, Capsule, HeightField, Sphere, field_separation
from jdyn.spatial import Transform

pytestmark = pytest.mark.fast_compile

# Cells of 20 cm, as rough as heights of some 10 cm make them.
ROWS, COLUMNS, CELL = 9, 12, 0.2
HEIGHTS = np.random.default_rng(0).uniform(0, 0.15, (ROWS, COLUMNS))
SIDES = CELL * np.array([COLUMNS - 1, ROWS - 1])
Y, X = (np.linspace(-side / 2, side / 2, count) for side, count in zip(SIDES[::-1], (ROWS, COLUMNS), strict=True))
FIELD = HeightField(jnp.array(HEIGHTS), jnp.array(SIDES))
HERE = Transform.identity()


def triangles():
    """Of all cells, counter-clockwise; the common edge of two begins at the least x and y."""
    corners = np.stack([*np.meshgrid(X, Y), HEIGHTS], axis=-1)
    first, along, last, across = corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1]
    return np.concatenate(
        [np.stack(each, axis=2).reshape(-1, 3, 3) for each in ((first, along, last), (first, last, across))]
    )


def heights(places):
    """Of the surface: on each half of a cell, linear from the corners."""
    found = np.empty(len(places))
    for row, (x, y) in enumerate(places):
        column, line = (
            min(int((at + side / 2) / CELL), count - 2)
            for at, side, count in zip((x, y), SIDES, (COLUMNS, ROWS), strict=True)
        )
        u, v = (x - X[column]) / CELL, (y - Y[line]) / CELL
        h = HEIGHTS[line : line + 2, column : column + 2]
        half = (
            u * (h[0, 1] - h[0, 0]) + v * (h[1, 1] - h[0, 1])
            if u > v
            else v * (h[1, 0] - h[0, 0]) + u * (h[1, 1] - h[1, 0])
        )
        found[row] = h[0, 0] + half
    return found


def middles(count, spread=0.1, seed=1):
    """Above and below the surface, also far from it."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-0.5, 0.5, (count, 2)) * SIDES
    return np.append(places, heights(places)[:, None] + spread * rng.normal(size=(count, 1)), axis=1)


BODIES = {
    "sphere": Sphere(jnp.array(0.05)),
    "box": Box(jnp.array([0.1, 0.15, 0.2])),
    "capsule": Capsule(jnp.array(0.04), jnp.array(0.2)),
}

of_poses = jax.jit(jax.vmap(field_separation, in_axes=(None, None, None, 0)))


def at(places, dtype=None):
    places = jnp.array(places, dtype)
    return Transform(jnp.broadcast_to(jnp.eye(3, dtype=places.dtype), (len(places), 3, 3)), places)


@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-14), ("float32", 1e-6)])
def test_a_sphere_is_as_far_away_as_the_nearest_of_all_triangles(dtype, atol):
    radius, places = 0.05, middles(2000)
    field, ball = jax.tree.map(lambda x: x.astype(dtype), (FIELD, BODIES["sphere"]))
    found = of_poses(field, Transform.identity(dtype), ball, at(places, dtype))
    every = triangles()
    nearest = np.array([
        np.min(np.linalg.norm(trimesh.triangles.closest_point(every, np.repeat(p[None], len(every), 0)) - p, axis=1))
        for p in places
    ])  # fmt: skip
    above = places[:, 2] > heights(places[:, :2])
    assert 500 < np.sum(above) < 1500
    np.testing.assert_allclose(found.distance, np.where(above, nearest, -nearest) - radius, rtol=0, atol=atol)
    np.testing.assert_allclose(found.b - found.a, found.distance[:, None] * found.normal, atol=atol)
    np.testing.assert_allclose(np.linalg.norm(found.normal, axis=1), 1, atol=10 * atol)


def test_a_sphere_beside_the_field_sees_its_border_and_beyond_its_radius_nothing():
    high = HeightField(jnp.ones(HEIGHTS.shape), jnp.array([2.0, 2.0]))
    places = [(1.1, 0, 0.5), (1.3, 0, 0.5), (1.1, 0, 1.1), (1.1, 1.1, 0.5)]
    found = of_poses(high, HERE, Sphere(jnp.array(0.2)), at(places)).distance
    np.testing.assert_allclose(found, [-0.1, np.inf, 0.1 * np.sqrt(2) - 0.2, 0.1 * np.sqrt(2) - 0.2], atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["box", "capsule"])
def test_shapes_are_as_far_away_as_coal_says_and_overlap_where_it_says(kind):
    coal = pytest.importorskip("coal")
    from benchmarks.shape_distances import of_coal

    body, places = BODIES[kind], middles(300, seed=2) + np.array([0, 0, 0.15])
    rotations = Rotation.random(len(places), random_state=3).as_matrix()
    found = of_poses(FIELD, HERE, body, Transform(jnp.array(rotations), jnp.array(places)))
    surface = coal.BVHModelOBBRSS()
    surface.beginModel(2 * HEIGHTS.size, 3 * HEIGHTS.size)
    for corners in triangles():
        surface.addTriangle(*corners)
    surface.endModel()
    here, request = coal.Transform3s.Identity(), coal.DistanceRequest()
    distances = np.array([
        coal.distance(surface, here, of_coal(body), coal.Transform3s(R, p), request, coal.DistanceResult())
        for R, p in zip(rotations, places, strict=True)
    ])  # fmt: skip
    # To coal, what is below the surface is apart from it.
    apart = (distances > 1e-9) & (places[:, 2] > heights(places[:, :2]))
    assert 100 < np.sum(apart) < 280
    np.testing.assert_array_equal(found.distance > 1e-9, apart)
    np.testing.assert_allclose(found.distance[apart], distances[apart], atol=1e-6)
    np.testing.assert_allclose(found.b - found.a, found.distance[:, None] * found.normal, atol=1e-12)


def test_on_even_ground_shallow_depths_are_those_of_a_plane():
    even = HeightField(0.1 * jnp.ones(HEIGHTS.shape), jnp.array(SIDES))
    R = Rotation.random(300, random_state=5).as_matrix()
    lowest = np.abs(R[:, 2]) @ np.asarray(BODIES["box"].sides) / 2
    places = np.append(np.random.default_rng(4).uniform(-0.2, 0.2, (300, 2)), 0.1 + lowest[:, None] - 1e-3, axis=1)
    found = of_poses(even, HERE, BODIES["box"], Transform(jnp.array(R), jnp.array(places))).distance
    # Columns below single triangles have sides, by which a corner that is no deeper than near a side may leave them.
    np.testing.assert_allclose(found, -1e-3, atol=1e-3 * np.sqrt(0.5))
    assert np.mean(np.abs(found + 1e-3) < 1e-12) > 0.9


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_derivatives_are_differences(kind):
    places = middles(40, seed=6) + np.array([0, 0, 0.0 if kind == "sphere" else 0.2])
    R = jnp.array(Rotation.random(len(places), random_state=7).as_matrix())
    rng = np.random.default_rng(8)
    along, higher, h = jnp.array(rng.normal(size=3)), jnp.array(rng.normal(size=HEIGHTS.shape)), 1e-6

    def distances(s):
        field = HeightField(FIELD.heights + s * higher, FIELD.sides)
        return of_poses(field, HERE, BODIES[kind], Transform(R, jnp.array(places) + s * along[None])).distance

    expected = (distances(h) - distances(-h)) / (2 * h)
    _, forwards = jax.jvp(distances, (0.0,), (1.0,))
    # But for one that has a kink in between.
    assert np.sum(np.abs(forwards - expected) > 1e-6) <= 1
    if kind == "box":
        weights = jnp.array(rng.normal(size=len(places)))
        np.testing.assert_allclose(jax.grad(lambda s: weights @ distances(s))(0.0), weights @ forwards, atol=1e-12)
