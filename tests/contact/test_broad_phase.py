"""Boxes about shapes, and the pairs that are near by them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.spatial.transform

import jdyn
from jdyn.contact import broad_phase, colliders, contact_points
from jdyn.contact.broad_phase import gaps, nearest
from jdyn.geometry import Box, Capsule, ConvexHull, Cylinder, Ellipsoid, Sphere
from jdyn.geometry.bounds import Bounds, bounds

pytestmark = pytest.mark.fast_compile

POINTS = np.random.default_rng(0).normal(size=(12, 3))
# Half of the extent along an axis of the world, whose direction in the shape's frame is d.
SHAPES = {
    "sphere": (Sphere(jnp.array(0.3)), lambda d: 0.3),
    "capsule": (Capsule(jnp.array(0.3), jnp.array(0.8)), lambda d: 0.3 + 0.4 * abs(d[2])),
    "box": (Box(jnp.array([0.2, 0.4, 0.6])), lambda d: np.abs(d) @ [0.1, 0.2, 0.3]),
    "cylinder": (Cylinder(jnp.array(0.3), jnp.array(0.8)), lambda d: 0.4 * abs(d[2]) + 0.3 * np.hypot(d[0], d[1])),
    "ellipsoid": (Ellipsoid(jnp.array([0.2, 0.4, 0.6])), lambda d: np.linalg.norm(d * [0.2, 0.4, 0.6])),
    "hull": (ConvexHull.of(POINTS), lambda d: np.max(POINTS @ d)),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_boxes_are_those_of_closed_forms(kind):
    shape, reach = SHAPES[kind]
    R = scipy.spatial.transform.Rotation.from_rotvec([0.4, -1.1, 0.7]).as_matrix()
    found = bounds(shape, jdyn.Transform(jnp.array(R), jnp.array([1.0, 2, 3])))
    np.testing.assert_allclose(found.upper, np.array([1, 2, 3]) + [reach(d) for d in R], rtol=1e-14)
    np.testing.assert_allclose(found.lower, np.array([1, 2, 3]) - [reach(-d) for d in R], rtol=1e-14)


def test_gaps_are_along_the_axis_on_which_boxes_are_farthest_apart():
    def box(*lower):
        return Bounds(jnp.array(lower), jnp.array(lower) + 1)

    assert gaps(box(0.0, 0, 0), box(0.5, 3, 1.2)) == 2
    np.testing.assert_allclose(gaps(box(0.0, 0, 0), box(-0.5, -0.9, 0.2)), -0.1)


def crowd(count=10):
    """Balls on rails along x, beside a wall."""
    builder = jdyn.Builder("crowd")
    for number in range(count):
        builder.add_link(f"ball{number}", jdyn.Prismatic((1, 0, 0)), mass=1.0, inertia=0.1)
        builder.add_shape(f"ball{number}", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), placement=jdyn.pose((-1, 0, 0), (0, np.pi / 2, 0)), role="collision")
    return builder.build()


CROWD = crowd()
LINE = 0.19 * jnp.arange(10.0)


def points(nearest, q=LINE):
    def found(q):
        chosen = dataclasses.replace(colliders(CROWD), nearest=nearest)
        rows, pairs = contact_points(chosen, jdyn.forward_kinematics(CROWD, q))
        return rows, pairs.of_points

    return jax.jit(found)(q)


def test_the_nearest_pairs_touch_as_all_do():
    every, few = points(None), points(12)
    assert len(every[1]) == 10 + 45 and len(few[1]) == 10 + 12
    touching = [
        {int(pair): distance for pair, distance in zip(pairs, rows.distance.tolist(), strict=True) if distance < 0}
        for rows, pairs in (every, few)
    ]
    # Each ball touches the next one.
    assert len(touching[0]) == 9 and touching[0] == touching[1]


@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.parametrize("count", [1, 4, 5])
def test_pairs_are_as_if_sorted_by_their_gaps(count, few, monkeypatch):
    monkeypatch.setattr(broad_phase, "FEW", few)
    gaps = [jnp.array([0.3, -0.1, 0.5, -0.1, 0.0, 0.2]), jnp.array([2.0, 1e-9, -1e-300, 1e5, jnp.inf, -2.0, 1e-9])]
    for gap, touching, (found, missed) in zip(gaps, (3, 2), nearest(gaps, count), strict=True):
        np.testing.assert_array_equal(found, np.argsort(gap, stable=True)[:count])
        # Touching counts as near.
        assert missed == (count < touching)


def test_more_pairs_than_are_looked_at_are_not_lost_in_silence():
    assert np.all(np.isfinite(points(9)[0].distance))
    few = points(8)[0].distance
    assert np.all(np.isnan(few[10:])) and np.all(np.isfinite(few[:10]))


def test_boxes_are_as_large_as_margins_make_shapes():
    def distances(nearest):
        chosen = dataclasses.replace(colliders(CROWD), nearest=nearest, margins=jnp.full(11, 0.01))
        found = jax.jit(lambda q: contact_points(chosen, jdyn.forward_kinematics(CROWD, q))[0])
        return found(0.21 * jnp.arange(10.0)).distance

    # Each ball is within the margins of the next one, and touches none.
    assert jnp.sum(distances(9)[10:] < 0) == 9
    assert np.all(np.isnan(distances(8)[10:]))


def test_derivatives_are_those_of_all_pairs():
    def overlap(nearest, q):
        return jnp.sum(jnp.minimum(points(nearest, q)[0].distance, 0) ** 2)

    by_all, by_few = (jax.grad(lambda q, k=k: overlap(k, q))(LINE) for k in (None, 12))
    np.testing.assert_allclose(by_few, by_all, atol=1e-16)
    assert np.any(by_all)


@pytest.mark.slow
@pytest.mark.parametrize(
    "contact",
    [pytest.param(jdyn.CompliantContact(nearest=5), marks=pytest.mark.exhaustive), jdyn.ConvexContact(nearest=5)],
)
def test_a_lane_with_too_many_near_pairs_fails_alone(contact):
    row = 0.199 * jnp.arange(10.0)
    starts = jnp.stack([row.at[6:].multiply(2), row])
    motion = jdyn.simulate_batch(CROWD, starts, jnp.zeros((2, 10)), 0.01, contact=contact)
    assert motion.success.tolist() == [True, False]
    alone = jdyn.simulate(CROWD, starts[0], jnp.zeros(10), 0.01, contact=dataclasses.replace(contact, nearest=None))
    np.testing.assert_allclose(motion.q[0, -1], alone.q[-1], atol=1e-9)
