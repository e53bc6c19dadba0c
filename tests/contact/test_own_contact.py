"""A model of contact of one's own: two classes, of which one says forces at points and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.contact import Colliders, Contact, ContactForces, TouchingPoints, contact_points
from jdyn.dynamics import forward_kinematics
from tests.contact.scenes import bouncing

pytestmark = pytest.mark.fast_compile


class Springs(ContactForces):
    """Springs without dampers and without friction, for shapes on a vertical slider."""

    colliders: Colliders
    stiffness: jax.Array

    def points(self, model, q, v):
        found, pairs = contact_points(self.colliders, forward_kinematics(model, q))
        depth = jnp.maximum(-found.distance, 0)
        force = self.stiffness * depth[:, None] * found.normal
        return TouchingPoints((found.a + found.b) / 2, found.normal, depth, force, 0 * force), pairs.of_points

    def force(self, model, q, v):
        return jnp.sum(self.points(model, q, v)[0].force[:, 2:], axis=0)


class SpringContact(Contact):
    stiffness: float | jax.Array = 1e4

    def between(self, colliders):
        return Springs(colliders, jnp.asarray(self.stiffness, colliders.sizes.dtype))


@pytest.mark.slow
def test_a_ball_bounces_on_springs_of_its_own_and_is_differentiated():
    """It keeps its energy, and has the derivative of half a period of the spring by the stiffness."""
    model, height = bouncing(), jnp.array([0.1])
    speed = -0.5

    def motion(stiffness, **options):
        contact = SpringContact(stiffness)
        return jdyn.simulate(model, height, jnp.array([speed]), 0.02, contact=contact, **options)

    stiffness, mass, g = jnp.array(2e4), float(model.inertias.mass[0]), 9.81
    moved = motion(stiffness)
    rate = np.sqrt(stiffness / mass)
    # In the depth x: x'' = g − ω² x.
    x = g / rate**2 * (1 - np.cos(0.02 * rate)) - speed / rate * np.sin(0.02 * rate)
    assert 0 < x and 0.02 * rate < np.pi
    np.testing.assert_allclose(moved.q[-1, 0], 0.1 - x, atol=1e-6)
    np.testing.assert_allclose(moved.contacts.force("ball")[-1, 2], stiffness * x, rtol=1e-3)
    eps = 10.0
    expected = (motion(stiffness + eps).q[-1, 0] - motion(stiffness - eps).q[-1, 0]) / (2 * eps)
    np.testing.assert_allclose(jax.grad(lambda k: motion(k).q[-1, 0])(stiffness), expected, rtol=1e-3)
