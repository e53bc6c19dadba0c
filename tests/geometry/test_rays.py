"""Rays against shapes: MuJoCo's distances and normals, derivatives, and rays that touch or miss."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
import scipy.spatial

from jdyn.array import in_type
from jdyn.geometry import (
    Box,
    Capsule,
    ConvexHull,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    HeightField,
    Plane,
    Sphere,
    ray_hit,
)

pytestmark = pytest.mark.fast_compile

_POINTS = np.random.default_rng(0).normal(size=(14, 3)) * 0.3
_HEIGHTS = np.random.default_rng(1).uniform(size=(4, 6)) * 0.5
# MuJoCo has heights in single precision, and between 0 and 1.
_HEIGHTS = ((_HEIGHTS - _HEIGHTS.min()) / np.ptp(_HEIGHTS)).astype(np.float32).astype(float)
SHAPES = {
    "sphere": Sphere(jnp.array(0.3)),
    "capsule": Capsule(jnp.array(0.2), jnp.array(0.7)),
    "box": Box(jnp.array([0.3, 0.5, 0.8])),
    "cylinder": Cylinder(jnp.array(0.3), jnp.array(0.7)),
    "ellipsoid": Ellipsoid(jnp.array([0.2, 0.3, 0.5])),
    "half-space": HalfSpace(),
    "plane": Plane(jnp.array([0.8, 0.9])),
    "hull": ConvexHull.of(_POINTS),
    "field": HeightField(jnp.array(_HEIGHTS * 0.5), jnp.array([1.2, 0.8])),
}
# MuJoCo has the row of greatest y first.
_NUMBERS = " ".join(map(str, _HEIGHTS[::-1].ravel()))
GEOMS = {
    "sphere": 'type="sphere" size=".3"',
    "capsule": 'type="capsule" size=".2 .35"',
    "box": 'type="box" size=".15 .25 .4"',
    "cylinder": 'type="cylinder" size=".3 .35"',
    "ellipsoid": 'type="ellipsoid" size=".2 .3 .5"',
    "half-space": 'type="plane" size="0 0 1"',
    "plane": 'type="plane" size=".4 .45 1"',
    "hull": 'type="mesh" mesh="m"',
    "field": 'type="hfield" hfield="h"',
}


def rays(seed=0, count=300):
    """From outside towards the shape, from inside, and past it; some along an axis."""
    rng = np.random.default_rng(seed)
    origins = rng.normal(size=(count, 3)) * rng.uniform(0, 1.2, size=(count, 1))
    ahead = rng.normal(size=(count, 3)) * 0.3 - origins
    ahead[::10] = np.eye(3)[rng.integers(3, size=len(ahead[::10]))] * rng.choice([-1, 1], size=(len(ahead[::10]), 1))
    return jnp.array(origins), jnp.array(ahead / np.linalg.norm(ahead, axis=1, keepdims=True))


@functools.cache
def hits_of(name):
    return jax.jit(jax.vmap(ray_hit, (None, 0, 0)))(SHAPES[name], *rays())


def of_mujoco(name):
    vertices = " ".join(map(str, _POINTS.ravel()))
    m = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><mesh name="m" vertex="{vertices}"/><hfield name="h" nrow="4" ncol="6" elevation="{_NUMBERS}"'
        f' size=".6 .4 .5 3"/></asset><worldbody><geom {GEOMS[name]}/></worldbody></mujoco>'
    )
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    distances, normals = [], []
    for origin, direction in zip(*map(np.asarray, rays()), strict=True):
        normal, number = np.zeros(3), np.zeros(1, np.int32)
        distance = mujoco.mj_ray(m, d, origin, direction, None, True, -1, number, normal)
        distances.append(np.inf if distance < 0 else distance), normals.append(normal)
    return np.array(distances), np.array(normals)


@pytest.mark.parametrize("name", SHAPES)
def test_distances_and_normals_are_those_of_mujoco(name):
    distances, normals = of_mujoco(name)
    found, counted = hits_of(name), np.full(len(distances), True)
    if name == "field":
        # Within its ground MuJoCo has a bottom of another body.
        x, y, z = np.asarray(rays()[0]).T
        heights, _ = jax.vmap(SHAPES[name].surface)(rays()[0][:, :2])
        counted = (np.abs(x) > 0.6) | (np.abs(y) > 0.4) | (z > heights)
    hit = np.isfinite(distances)
    np.testing.assert_array_equal(np.isfinite(found.distance)[counted], hit[counted])
    assert 0.1 < np.mean(hit) < 1
    # MuJoCo has vertices in single precision.
    bound = 1e-6 if name == "hull" else 1e-9
    np.testing.assert_allclose(found.distance[counted & hit], distances[counted & hit], atol=bound)
    np.testing.assert_allclose(found.normal[counted & hit], normals[counted & hit], atol=bound)
    assert not np.any(found.normal[~np.isfinite(found.distance)])


def test_hulls_are_met_where_a_line_is_within_all_planes():
    planes = scipy.spatial.ConvexHull(_POINTS).equations
    origins, directions = map(np.asarray, rays())
    above, rates = origins @ planes[:, :3].T + planes[:, 3], directions @ planes[:, :3].T
    start = np.max(np.where(rates < 0, -above / rates, -np.inf), axis=1)
    end = np.min(np.where(rates > 0, -above / rates, np.inf), axis=1)
    want = np.where((start > end) | (end < 0), np.inf, np.where(start >= 0, start, end))
    np.testing.assert_allclose(hits_of("hull").distance, want, atol=1e-9)


def _distance(leaves, structure, origin, direction):
    shape = jax.tree.unflatten(structure, leaves)
    return ray_hit(shape, origin, direction).distance


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_derivatives_are_finite_differences_in_both_modes(name):
    origins, directions = (x[:40] for x in rays(seed=2))
    leaves, structure = jax.tree.flatten(SHAPES[name])
    known = [jnp.issubdtype(x.dtype, jnp.floating) for x in leaves]
    rng = np.random.default_rng(3)
    changes = [jnp.array(rng.normal(size=x.shape)) for x, real in zip(leaves, known, strict=True) if real]
    turns = [jnp.array(rng.normal(size=(40, 3))) for _ in range(2)]

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, 0, 0, 0, None))
    def all_of(origin, direction, move, turn, h):
        def moved(s):
            numbers = iter(changes)
            new = [x + s * next(numbers) if real else x for x, real in zip(leaves, known, strict=True)]
            return _distance(new, structure, origin + s * move, direction + s * turn)

        zero = jnp.zeros(())
        forward = jax.jvp(moved, (zero,), (zero + 1,))[1]
        return moved(zero), forward, jax.grad(moved)(zero), (moved(h) - moved(-h)) / (2 * h)

    values, forward, backward, slope = all_of(origins, directions, *turns, 1e-6)
    assert np.all(np.isfinite(forward)) and np.all(np.isfinite(backward))
    np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-9)
    assert not np.any(forward[~np.isfinite(values)])
    hit = np.isfinite(values) & np.isfinite(slope)
    assert np.mean(hit) > 0.2
    assert np.max((np.abs(forward - slope) / (1 + np.abs(forward)) ** 2)[hit]) < 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["box", "capsule", "cylinder", "ellipsoid", "hull", "plane", "field"])
def test_no_derivative_is_nan(name, dtype):
    """Along faces and axes, from the middle and the surface, past the shape, and for a direction that is zero."""
    shape = in_type(SHAPES[name], dtype)
    places = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.25, 0], [0, 0, 0.4], [0, 0, 0.35], [2, 2, 2], [0.15, 0.25, 1]])
    ways = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1], [0, 0, 0], [1e-20, 0, 1]])
    origins, directions = (jnp.array(x, dtype) for x in (np.repeat(places, 6, axis=0), np.tile(ways, (7, 1))))
    leaves, structure = jax.tree.flatten(shape)
    real = [jnp.issubdtype(x.dtype, jnp.floating) for x in leaves]

    @jax.jit
    def slopes(origins, directions):
        def summed(numbers, origin, direction):
            rest = iter(numbers)
            new = [next(rest) if known else x for x, known in zip(leaves, real, strict=True)]
            hit = ray_hit(jax.tree.unflatten(structure, new), origin, direction)
            distance = jnp.where(jnp.isfinite(hit.distance), hit.distance, 0)
            return distance + jnp.sum(hit.normal), hit.distance

        numbers = [x for x, known in zip(leaves, real, strict=True) if known]
        return jax.vmap(jax.value_and_grad(summed, (0, 1, 2), has_aux=True), (None, 0, 0))(numbers, origins, directions)

    (_, distances), found = slopes(origins, directions)
    assert distances.dtype == dtype and not np.any(np.isnan(distances))
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(found))
    assert np.all(np.isinf(distances[4::6]))


def test_what_is_not_a_number_is_no_miss_and_other_shapes_are_named():
    lost = jnp.array([jnp.nan, 0, 0])
    assert np.isnan(ray_hit(SHAPES["box"], lost, jnp.eye(3)[0]).distance)
    with pytest.raises(ValueError, match="ray_hit: shape: expected a shape of"):
        ray_hit(1, jnp.zeros(3), jnp.eye(3)[0])
