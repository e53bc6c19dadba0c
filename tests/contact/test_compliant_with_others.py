"""Compliant contact beside limits of joints, events, constraints and control by energy, against closed forms."""

import dataclasses

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.contact.scenes import bouncing

pytestmark = pytest.mark.fast_compile

G, RADIUS = 9.81, 0.1
END = diffrax.SaveAt(t1=True)


def elastic(stiffness):
    return jdyn.CompliantContact(
        material=jdyn.contact.Material(stiffness, 0.0, 0.0),
        materials={"ground": jdyn.contact.Material(jnp.inf, 0.0, 0.0)},
    )


def contact_time(speed, weight, omega):
    """Until what arrives with a speed at an elastic spring leaves it again, under a weight for each unit of mass."""
    return 2 * (np.pi - np.arctan(speed * omega / weight)) / omega


@pytest.mark.slow
def test_a_ball_bounces_between_ground_and_joint_limit_and_an_event_slows_it_in_single_precision():
    """It is thrown up, turns at the end of its rail with all of its speed, bounces off the ground, and loses half of
    its speed at a mark on the way up."""
    start, ceiling, mark, speed, stiffness, end = 0.12, 0.2, 0.1, 2.0, 1e4, 0.3
    model = bouncing().with_joint("ball", upper=RADIUS + ceiling).astype(jnp.float32)
    slower = jdyn.Event(
        lambda t, y: y.q[0] - (RADIUS + mark), lambda t, y: dataclasses.replace(y, v=y.v / 2), direction="rising"
    )
    motion = jdyn.simulate(
        model, jnp.float32([RADIUS + start]), jnp.float32([speed]), end, contact=elastic(stiffness), events=[slower],
        joint_limits=jdyn.ImpactLimits(restitution=1.0), saveat=END,
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6),
    )  # fmt: skip
    at_ceiling = np.sqrt(speed**2 - 2 * G * (ceiling - start))
    at_ground, at_mark = (np.sqrt(at_ceiling**2 + 2 * G * (ceiling - height)) for height in (0.0, mark))
    # Speeds change by g in every second of flight.
    flying = ((speed - at_ceiling) + (at_ground - at_ceiling) + (at_ground - at_mark)) / G
    left = end - flying - contact_time(at_ground, G, np.sqrt(stiffness))
    assert motion.q.dtype == jnp.float32 and motion.events.which[:3].tolist() == [1, 0, -1]
    # Ten times the tolerance, at speeds of 2 m/s.
    np.testing.assert_allclose(motion.q[0, 0], RADIUS + mark + at_mark / 2 * left - G * left**2 / 2, atol=2e-4)
    np.testing.assert_allclose(motion.v[0, 0], at_mark / 2 - G * left, atol=2e-3)


@pytest.mark.slow
def test_a_ball_geared_to_a_weight_bounces_as_one_of_more_inertia_and_keeps_its_energy():
    """A constraint couples what is in contact to what is not; steps are judged by their energy, too."""
    mass, other, ratio, stiffness, height, end = 1.0, 0.5, 1.5, 1e5, 0.2, 0.6
    builder = jdyn.Builder("geared")
    for name, axis, weight in (("ball", [0.0, 0.0, 1.0], mass), ("cart", [1.0, 0.0, 0.0], other)):
        builder.add_link(name, jdyn.Prismatic(jnp.array(axis)), mass=weight, inertia=0.01 * np.ones(3))
    builder.add_shape("ball", "sphere", RADIUS, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    model = builder.build()
    q0 = jnp.array([RADIUS + height, ratio * (RADIUS + height)])
    motion = jdyn.simulate(
        model, q0, jnp.zeros(2), end, contact=elastic(stiffness), constraints=[jdyn.constraints.Gear("cart", "ball",
        (0.0, ratio))],
        solver=jdyn.solvers.EnergyError(jdyn.solvers.Automatic()), saveat=END,
        stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-11),
    )  # fmt: skip
    inertia = mass + ratio**2 * other
    weight, omega = G * mass / inertia, np.sqrt(stiffness / inertia)
    speed = np.sqrt(2 * weight * height)
    left = end - speed / weight - contact_time(speed, weight, omega)
    np.testing.assert_allclose(motion.q[0, 0] - RADIUS, speed * left - weight * left**2 / 2, atol=1e-7)
    np.testing.assert_allclose(motion.q[0, 1], ratio * motion.q[0, 0], rtol=1e-12)
    np.testing.assert_allclose(motion.energy[0], mass * G * (RADIUS + height), rtol=1e-7)
