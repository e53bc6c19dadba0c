"""Friction against turning and in joints, and ends of ranges, in steps of convex contact: against closed forms and other
solvers."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.contact.scenes import ball

pytestmark = pytest.mark.fast_compile

G, END = 9.81, diffrax.SaveAt(t1=True)
SLIP, SPIN = 0.01, 0.02


def control(tolerance):
    """Tolerances are traced, so that all of them share a program."""
    return diffrax.PIDController(rtol=jnp.asarray(tolerance), atol=jnp.asarray(tolerance))


@pytest.mark.parametrize(
    ("spin", "roll", "until"), [(0.0, 0.01, 1.0), (0.01, 0.0, 0.5), (0.005, 0.02, 0.5), (0.01, 0.01, 3.0)]
)
def test_a_ball_that_rolls_and_spins_is_slowed_in_closed_form_and_then_rests(spin, roll, until):
    """Torques of lengths times the weight slow rolling by 5/7 of roll g / r, and spinning by spin m g over its
    inertia."""
    model, stiffness, speed, turning = ball(), 1e7, 1.0, 10.0
    law = jdyn.ConvexContact(jdyn.Material(2 * stiffness, 20.0, jnp.array([0.5, spin, roll])))
    q = model.neutral().at[2].set(0.1 - G / stiffness)
    v = jnp.zeros(6).at[3].set(speed).at[1].set(speed / 0.1).at[2].set(turning)
    options = {"contact": law, "saveat": END, "stepsize_controller": control(1e-6)}
    motion = jdyn.simulate(model, q, v, jnp.asarray(until), **options)
    velocity = model.rate(motion.q[0], motion.v[0])[:3]
    omega = motion.poses(model).rotation[0, 0] @ motion.v[0, :3]
    rolls, spins = max(speed - 5 / 7 * roll * G / 0.1 * until, 0), max(turning - spin * G / 4e-3 * until, 0)
    # The depth shortens the arm of friction by its half.
    np.testing.assert_allclose(velocity, [rolls, 0, 0], atol=1e-5)
    np.testing.assert_allclose(omega, [0, rolls / 0.1, spins], atol=1e-4)
    if rolls == spins == 0:
        assert jnp.max(jnp.abs(motion.v)) < 1e-5
        assert motion.stats["accepted_steps"] < 300


def arm(friction=0.5, speed=1e-3):
    """Two links with dry friction, of which the upper one has ends, and a slider that follows the lower one; far above
    the ground."""
    builder = jdyn.Builder("arm")
    link = dict(mass=1.0, com=(0, 0, -0.25), inertia=(0.02, 0.02, 0.001), friction=friction, friction_speed=speed)
    builder.add_link("upper", jdyn.Revolute((0, 1, 0)), **link, lower=-0.6, upper=0.8)
    builder.add_link("lower", jdyn.Revolute((0, 1, 0)), parent="upper", placement=(0, 0, -0.5), **link)
    builder.add_link("probe", jdyn.Prismatic((0, 0, 1)), parent="lower", mass=0.3, lower=-0.5, upper=0.3,
                     friction=friction, friction_speed=speed, mimic=jdyn.Mimic("lower", 0.5, 0.1))  # fmt: skip
    builder.add_shape("lower", "sphere", 0.05, role="collision")
    builder.add_shape("world", "plane", (0, 0), placement=(0, 0, -9), role="collision")
    return builder.build()


CONVEX, STOPS = jdyn.ConvexContact(), jdyn.CompliantLimits()
START = jnp.array([0.3, -0.3]), jnp.array([2.0, -1.0])


def test_joints_stick_and_meet_their_ends_as_other_solvers_have_them():
    """The upper joint meets both ends, and both stick in the end."""
    model = arm()
    options = {"joint_limits": STOPS, "saveat": jnp.array([0.3, 0.6, 3.0])}
    exact = jdyn.simulate(model, *START, 3.0, stepsize_controller=control(1e-9), **options)
    steps = []
    for tolerance in (1e-4, 1e-6):
        motion = jdyn.simulate(model, *START, 3.0, contact=CONVEX, stepsize_controller=control(tolerance), **options)
        np.testing.assert_allclose(motion.q, exact.q, atol=30 * tolerance)
        steps.append(motion.stats["accepted_steps"])
    assert jnp.max(exact.q[:, 0]) > 0.7 or jnp.min(exact.q[:, 0]) < -0.6
    print(steps, exact.stats, exact.q, motion.q - exact.q)
