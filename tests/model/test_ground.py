"""Ground under any model."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.contact import colliders, contact_points
from jdyn.model import WORLD

pytestmark = pytest.mark.fast_compile


def ball():
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Free(), mass=1.0, inertia=0.1)
    builder.add_shape("ball", "sphere", 0.1)
    return builder.build()


def height(placement, q):
    model = jdyn.with_ground(ball(), placement)
    points, _ = contact_points(colliders(model), jdyn.forward_kinematics(model, q))
    return points.distance[0]


def test_ground_is_the_last_shape_and_leaves_the_rest_as_it_was():
    bare, model = ball(), jdyn.with_ground(ball(), (0, 0, -2))
    assert model.shapes.entries[:-1] == bare.shapes.entries
    assert model.shapes.entries[-1] == jdyn.Shape("plane", "collision", WORLD, "world", "ground")
    jax.tree.map(np.testing.assert_array_equal, model.without_shapes(), bare.without_shapes())
    lower = jdyn.vary(model, {"collision:ground.translation": (0, 0, -3)})
    np.testing.assert_array_equal(lower.shapes.placements.translation[-1], [0, 0, -3])


def test_ground_has_the_friction_asked_for():
    for given, kept in ((0.5, [0.5, 0, 0]), ([0.5, 0.01, 0.001], [0.5, 0.01, 0.001])):
        model = jdyn.with_ground(ball(), friction=given)
        np.testing.assert_array_equal(model.shapes.friction[-1], kept)


def test_a_slope_is_as_far_from_a_ball_as_geometry_says_and_can_be_differentiated():
    q = jnp.array([2.0, 0, 3, 1, 0, 0, 0])

    def slope(angle):
        c, s = jnp.cos(angle), jnp.sin(angle)
        rotation = jnp.array([[1, 0, 0], [0, 1, 0], [0, 0, 1.0]]).at[::2, ::2].set(jnp.array([[c, s], [-s, c]]))
        return height(jdyn.Transform(rotation, jnp.zeros(3)), q)

    distance, derivative = jax.value_and_grad(slope)(0.3)
    np.testing.assert_allclose(distance, 2 * np.sin(0.3) + 3 * np.cos(0.3) - 0.1, rtol=1e-14)
    np.testing.assert_allclose(derivative, 2 * np.cos(0.3) - 3 * np.sin(0.3), rtol=1e-14)


def test_ground_has_the_type_of_the_model():
    model = jdyn.with_ground(jdyn.load("quadruped", dtype=jnp.float32), jdyn.pose((0, 0, -0.3)))
    assert {leaf.dtype for leaf in jax.tree.leaves(model)} == {jnp.dtype(jnp.float32)}


def test_a_second_ground_and_wrong_placements_are_refused():
    with pytest.raises(ValueError, match=r"'ball' has a collision shape named 'ground' already: move it"):
        jdyn.with_ground(jdyn.with_ground(ball()))
    with pytest.raises(ValueError, match=r"placement: expected shape \(3,\), got \(2,\)"):
        jdyn.with_ground(ball(), (0, 0))
    with pytest.raises(ValueError, match=r"placement.rotation: expected shape \(3, 3\)"):
        jdyn.with_ground(ball(), dataclasses.replace(jdyn.Transform.identity(), rotation=jnp.eye(2)))
    with pytest.raises(ValueError, match=r"friction: expected a scalar or shape \(3,\), got \(2,\)"):
        jdyn.with_ground(ball(), friction=(1, 1))
    with pytest.raises(ValueError, match=r"model: expected a jdyn.Model"):
        jdyn.with_ground("quadruped")
