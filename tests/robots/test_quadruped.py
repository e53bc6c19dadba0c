"""Mini Cheetah: mass, feet, symmetry, and dynamics computed with Pinocchio from the published, unaltered inertias."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.contact import colliders, contact_points
from jdyn.robots import quadruped

pytestmark = pytest.mark.fast_compile

MODEL = quadruped()
FRICTIONLESS = dataclasses.replace(
    MODEL, damping=jnp.zeros_like(MODEL.damping), friction=jnp.zeros_like(MODEL.friction)
)
pose = jax.jit(jdyn.frame_pose, static_argnums=2)
mass_matrix = jax.jit(jdyn.mass_matrix)
IDENTITY = np.array([0, 0, 0, 1.0, 0, 0, 0])
CROUCH = np.concatenate([IDENTITY, np.tile([0, -0.8, 1.6], 4)])


def test_masses_are_those_of_links_and_rotors():
    assert float(jnp.sum(MODEL.inertias.mass)) == np.float64(3.3 + 4 * (0.54 + 0.634 + 0.064) + 12 * 0.055).round(12)


def test_feet_of_a_crouch():
    for leg, x, y in (("fr", 0.16561, -0.111), ("rl", -0.21439, 0.111)):
        foot = pose(MODEL, CROUCH, f"{leg}_foot").translation
        np.testing.assert_allclose(foot, [x, y, -0.267535], atol=6e-6)


@pytest.mark.slow
def test_only_feet_touch_the_ground_of_a_crouch():
    """The lowest points of the balls of the feet are 15 mm below their frames; the shanks end 5 mm above."""
    model = jdyn.with_ground(MODEL, (0, 0, -0.267535 - 0.015))
    shapes = colliders(model)
    points, pairs = contact_points(shapes, jdyn.forward_kinematics(model, CROUCH))
    names = [[shapes.entries[i].name for i in shapes.pairs[pair]] for pair in pairs.of_points]
    low = [names[i] for i in np.flatnonzero(points.distance < 1e-5)]
    assert sorted(low) == [["ground", f"{leg}_foot"] for leg in ("fl", "fr", "rl", "rr")]


def test_composite_inertia_of_a_crouch():
    M = np.asarray(mass_matrix(MODEL, CROUCH))
    np.testing.assert_allclose(np.diag(M)[:6], [0.074599, 0.25953, 0.298412, 8.912, 8.912, 8.912], atol=1e-6)
    leg = [[0.008971, 0.001009, -0.000174], [0.001009, 0.007922, 0.000462], [-0.000174, 0.000462, 0.00597]]
    np.testing.assert_allclose(M[6:9, 6:9], leg, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jdyn.center_of_mass)(MODEL, CROUCH), [-0.007132, 0, -0.009369], atol=1e-6)
    held = quadruped(floating_base=False)
    np.testing.assert_allclose(mass_matrix(held, CROUCH[7:]), M[6:, 6:], atol=1e-15)


def test_gravity_of_a_crouch():
    G = np.asarray(jax.jit(jdyn.gravity_forces)(MODEL, CROUCH))
    np.testing.assert_allclose(G[5], 87.42672, atol=1e-5)
    np.testing.assert_allclose(G[6:12], [-0.570765, -0.155889, 0.027473, 0.570765, -0.155889, 0.027473], atol=1e-6)


def test_free_motion():
    """The published thigh inertia is impossible; the one the model has instead moves alike."""
    q = np.concatenate([IDENTITY, np.tile([0.1, -0.7, 1.5], 4)])
    v = np.concatenate([[0.4, 0.5, 0.6, 0.1, 0.2, 0.3], 0.1 * np.arange(1, 13)])
    linear, angular = [-0.033297, 0.062924, -9.848735], [-0.246621, 0.128921, -0.040824]
    joints = [
        *(-0.074398, 0.611332, 0.012982, -0.106625, 0.711626, -0.032195),
        *(-0.671736, 0.770043, -0.115858, -0.424455, 0.787872, -0.255144),
    ]
    a = jax.jit(jdyn.forward_dynamics)(FRICTIONLESS, q, v, np.zeros(18))
    np.testing.assert_allclose(a, [*angular, *linear, *joints], atol=1e-6)


def test_drives():
    np.testing.assert_allclose(MODEL.limits.effort[6:9], [18, 18, 27.99])
    np.testing.assert_allclose(MODEL.armature[6:9], 63e-6 * np.array([36, 36, 9.33**2]))
