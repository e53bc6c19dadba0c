"""Shapes: their supports, and the distance of points from their surfaces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from jdyn.geometry import Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Sphere

pytestmark = pytest.mark.fast_compile

BOUNDED = [
    Sphere(jnp.array(0.3)),
    Capsule(jnp.array(0.1), jnp.array(0.7)),
    Box(jnp.array([0.3, 0.5, 0.8])),
    Cylinder(jnp.array(0.3), jnp.array(0.7)),
    Ellipsoid(jnp.array([0.2, 0.3, 0.5])),
]
NAMES = [type(shape).__name__ for shape in BOUNDED]
POINTS = jnp.array(np.random.default_rng(0).normal(size=(200, 3)) * 0.4)


@jax.jit
def distances(shape, points):
    return jax.vmap(jax.value_and_grad(shape.signed_distance))(points)


@pytest.mark.parametrize("shape", BOUNDED, ids=NAMES)
def test_distances_of_points_rise_at_unit_rate_from_surfaces_that_supports_touch(shape):
    found, gradients = distances(shape, POINTS)
    assert np.any(found < -0.01) and np.any(found > 0.01)
    feet = POINTS - found[:, None] * gradients
    # Planes across the gradient support the shape where its surface is nearest: outside, and inside convex shapes too.
    heights = jax.vmap(lambda normal: shape.support(normal) @ normal)(gradients)
    np.testing.assert_allclose(jnp.sum(gradients**2, axis=1), 1, atol=1e-13)
    np.testing.assert_allclose(jnp.sum(feet * gradients, axis=1), heights, atol=1e-13)
    np.testing.assert_allclose(distances(shape, feet)[0], 0, atol=1e-13)


@pytest.mark.parametrize("shape", BOUNDED, ids=NAMES)
def test_depths_of_points_are_the_least_over_all_directions(shape):
    """A convex shape is the intersection of its supporting half-spaces."""
    inside = POINTS[np.asarray(distances(shape, POINTS)[0]) < 0][:4]
    support = jax.jit(shape.support)

    def height(angles, point):
        (s, c), (s2, c2) = ((np.sin(x), np.cos(x)) for x in angles)
        normal = np.array([s * c2, s * s2, c])
        return float(np.asarray(support(normal)) @ normal - np.asarray(point) @ normal)

    for point in inside:
        starts = [(t, p) for t in (0.1, 1.5, 3.0) for p in (0.2, 1.7, 3.3, 4.8)]
        best = min(
            scipy.optimize.minimize(height, start, args=(point,), method="Nelder-Mead", options={"xatol": 1e-7}).fun
            for start in starts
        )
        np.testing.assert_allclose(-shape.signed_distance(point), best, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_points_with_several_nearest_ones_have_finite_derivatives(dtype):
    places = jnp.array([[0, 0, 0], [0, 0, 0.1], [0, 0, 0.35], [0.05, 0.05, 0.05], [0.1, 0.1, 0.4]], dtype)
    shapes = jax.tree.map(lambda x: x.astype(dtype), [HalfSpace(), *BOUNDED])

    @jax.jit
    def derivatives(shapes):
        return [
            jax.vmap(jax.value_and_grad(type(shape).signed_distance, argnums=(0, 1)), in_axes=(None, 0))(shape, places)
            for shape in shapes
        ]

    assert all(np.isfinite(leaf).all() and leaf.dtype == dtype for leaf in jax.tree.leaves(derivatives(shapes)))
