"""Thin shapes on the way of what turns fast."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.geometry import ConvexHull

pytestmark = pytest.mark.fast_compile

RADIUS, THIN, SPEED = 0.01, 1e-3, 100.0
# Before the arm meets the plate [rad].
STARTS = jnp.linspace(0.3, 3.0, 30)


def arm_and_plate():
    """A ball on an arm of 1 m that turns about z, where gravity does nothing, and a plate of a millimetre across its
    way."""
    builder = jdyn.Builder("arm and plate")
    builder.add_link("arm", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=(0.5, 0.5, 0.5))
    builder.add_shape("arm", "sphere", RADIUS, placement=(1, 0, 0), role="collision", name="ball")
    builder.add_shape("world", "box", (0.3, THIN, 0.3), placement=(1, 0, 0), role="collision", name="plate")
    return builder.build()


@pytest.mark.slow
def test_a_ball_on_a_fast_arm_touches_a_thin_plate():
    model = arm_and_plate()
    touch = jdyn.touch_event(model, terminate=True)

    @jax.vmap
    def touched(angle):
        motion = jdyn.simulate(model, -angle[None], jnp.array([SPEED]), 0.05, events=[touch])
        return motion.events.ts[0], motion.stats["accepted_steps"]

    times, steps = touched(STARTS)
    expected = (STARTS - np.arcsin(RADIUS + THIN / 2)) / SPEED
    np.testing.assert_allclose(times, expected, rtol=1e-9)
    # Far from the plate they are as long as before.
    assert np.all(steps < 20)


@pytest.mark.slow
def test_a_ball_on_a_fast_arm_pushes_a_thin_plate():
    model = arm_and_plate()

    @jax.vmap
    def speed(angle):
        motion = jdyn.simulate(model, -angle[None], jnp.array([SPEED]), 0.05, contact=jdyn.CompliantContact())
        return motion.v[-1, 0]

    # The plate takes a tenth of the speed at least, by its damping.
    assert np.all(speed(STARTS) < 0.9 * SPEED)


@pytest.mark.slow
def test_a_ball_on_a_fast_arm_bounces_off_a_thin_plate():
    model, contact = arm_and_plate(), jdyn.RigidContact(restitution=0.5, friction=0.0)

    @jax.vmap
    def speed(angle):
        return jdyn.simulate(model, -angle[None], jnp.array([SPEED]), 0.05, contact=contact).v[-1, 0]

    np.testing.assert_allclose(speed(STARTS), -0.5 * SPEED, rtol=1e-9)


@pytest.mark.slow
def test_what_falls_from_rest_touches_a_thin_plate_far_below():
    builder = jdyn.Builder("ball above plates")
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    builder.add_shape("ball", "sphere", RADIUS, role="collision")
    builder.add_shape("world", "box", (1, 1, THIN), role="collision", name="plate")
    model = builder.build()
    touch = jdyn.touch_event(model, terminate=True)
    for height in (0.5, 5.0, 50.0):
        motion = jdyn.simulate(model, jnp.array([height]), jnp.zeros(1), 10.0, events=[touch])
        expected = np.sqrt(2 * (height - RADIUS - THIN / 2) / 9.81)
        np.testing.assert_allclose(motion.events.ts[0], expected, rtol=1e-9)


def test_no_two_planes_about_a_hull_are_nearer_than_it_is_thick():
    directions = Rotation.random(2000, random_state=1).as_matrix()[:, 0]
    corners = functools.partial(np.random.default_rng(0).normal, size=(16, 3))
    for scale in ((1, 1, 1), (1, 0.5, 0.05)):
        hull = ConvexHull.of(corners() * np.array(scale))
        heights = np.asarray(hull.vertices) @ directions.T
        width = np.min(np.ptp(heights, axis=0))
        assert 0.25 * width < hull.thickness <= width
    box = ConvexHull.of(np.array(np.meshgrid([0, 1.0], [0, 2.0], [0, 0.3])).reshape(3, -1).T)
    np.testing.assert_allclose(box.thickness, 0.3, rtol=1e-14)
