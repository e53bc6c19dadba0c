"""Where the shapes of a model may touch."""

import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.contact import colliders, contact_points

pytestmark = pytest.mark.fast_compile


def _box_above_ground():
    builder = jdyn.Builder("box")
    builder.add_link("box", jdyn.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.add_shape("box", "box", (0.2, 0.3, 0.4), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    return builder.build()


def test_a_box_may_touch_the_ground_with_its_corners():
    model = _box_above_ground()
    q = model.neutral().at[2].set(0.15)
    points, pairs = contact_points(colliders(model), jdyn.forward_kinematics(model, q))
    assert pairs.of_points.tolist() == [0] * 8
    np.testing.assert_allclose(np.sort(points.distance), [-0.05] * 4 + [0.35] * 4, atol=1e-15)
    np.testing.assert_allclose(points.b - points.a, points.distance[:, None] * points.normal, atol=1e-15)
    np.testing.assert_allclose(points.normal, jnp.tile(jnp.array([0.0, 0.0, 1.0]), (8, 1)))
