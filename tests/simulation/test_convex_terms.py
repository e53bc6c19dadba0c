"""Friction against turning and in joints, and ends of ranges, in steps of convex contact."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.contact.scenes import ball

pytestmark = pytest.mark.fast_compile

G, END = 9.81, diffrax.SaveAt(t1=True)


def control(tolerance):
    """Tolerances are traced, so that all of them share a program."""
    return diffrax.PIDController(rtol=jnp.asarray(tolerance), atol=jnp.asarray(tolerance))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spin", "roll", "until"), [(0.0, 0.01, 1.0), (0.01, 0.0, 0.5), (0.005, 0.02, 0.5), (0.01, 0.01, 3.0)]
)
def test_a_ball_that_rolls_and_spins_is_slowed_in_closed_form_and_then_rests(spin, roll, until):
    """Torques of lengths times the weight slow rolling by 5/7 of roll g / r, and spinning by spin m g over its
    inertia."""
    model, stiffness, speed, turning = ball(), 1e7, 1.0, 10.0
    law = jdyn.ConvexContact(jdyn.contact.Material(2 * stiffness, 20.0, jnp.array([0.5, spin, roll])))
    q = model.neutral().at[2].set(0.1 - G / stiffness)
    v = jnp.zeros(6).at[3].set(speed).at[1].set(speed / 0.1).at[2].set(turning)
    options = {"contact": law, "saveat": END, "stepsize_controller": control(1e-6)}
    motion = jdyn.simulate(model, q, v, jnp.asarray(until), **options)
    velocity = model.rate(motion.q[0], motion.v[0])[:3]
    omega = motion.poses.rotation[0, 0] @ motion.v[0, :3]
    rolls, spins = max(speed - 5 / 7 * roll * G / 0.1 * until, 0), max(turning - spin * G / 4e-3 * until, 0)
    # The depth shortens the arm of friction by its half.
    np.testing.assert_allclose(velocity, [rolls, 0, 0], atol=1e-5)
    np.testing.assert_allclose(omega, [0, rolls / 0.1, spins], atol=1e-4)
    if rolls == spins == 0:
        assert jnp.max(jnp.abs(motion.v)) < 1e-5
        assert motion.stats["accepted_steps"] < 300


def arm(friction=1.5, speed=1e-3, ground=-9.0):
    """Two links with dry friction, of which the upper one has ends, and a slider that follows the lower one; above
    the ground."""
    builder = jdyn.Builder("arm")
    link = dict(mass=1.0, com=(0, 0, -0.25), inertia=(0.02, 0.02, 0.001), friction=friction, friction_speed=speed)
    builder.add_link("upper", jdyn.Revolute((0, 1, 0)), **link, lower=-0.6, upper=0.8)
    builder.add_link("lower", jdyn.Revolute((0, 1, 0)), parent="upper", placement=(0, 0, -0.5), **link)
    builder.add_link("probe", jdyn.Prismatic((0, 0, 1)), parent="lower", mass=0.3, lower=-0.5, upper=0.3,
                     friction=friction, friction_speed=speed, mimic=jdyn.Mimic("lower", 0.5, 0.1))  # fmt: skip
    builder.add_shape("lower", "sphere", 0.05, placement=(0, 0, -0.5), role="collision")
    builder.add_shape("world", "plane", (0, 0), placement=(0, 0, ground), role="collision")
    return builder.build()


CONVEX, STOPS = jdyn.ConvexContact(), jdyn.CompliantLimits()
START = jnp.array([0.3, -0.3]), jnp.array([6.0, -1.0])
ROWS = jnp.array([0.1, 0.3, 1.0, 3.0])


def falls(model, tolerance, start=START, contact=CONVEX, saveat=ROWS):
    options = {"contact": contact, "joint_limits": STOPS, "saveat": saveat}
    return jdyn.simulate(model, *start, 3.0, stepsize_controller=control(tolerance), **options)


@pytest.fixture(scope="module")
def exact():
    """Another solver, at a fine tolerance."""
    return falls(arm(), 1e-9, contact=None)


@pytest.mark.slow
def test_joints_stick_and_meet_their_ends_as_other_solvers_have_them(exact):
    """The upper joint meets its end, turns back, and both come to rest in friction."""
    motion = falls(arm(), 1e-6)
    assert exact.q[0, 0] > 0.8
    # Where joints come to rest depends a hundred times as much on where they were before.
    np.testing.assert_allclose(motion.q[0], exact.q[0], atol=1e-5)
    np.testing.assert_allclose(motion.q, exact.q, atol=1e-3)
    # What sticks creeps in proportion to its share of friction.
    share = jdyn.gravity_forces(arm(), motion.q[-1]) / 1.5
    assert abs(share[0]) < 1
    np.testing.assert_allclose(motion.v[-1, 0], -1e-3 * np.arctanh(share[0]), rtol=0.2)


@pytest.mark.slow
def test_an_arm_rests_on_its_end_in_large_steps():
    """Gravity pulls it sideways, against the spring of the upper end; the lower joint hangs. It bounces for half a
    second, in steps whose number is chance, then swings and rests. The end is stiff, 100 rad/s, and does not limit
    steps there: explicit ones could not exceed 2 / 100 s."""
    model = arm(friction=0.0).with_gravity((-G, 0, 0))
    for name in ("upper", "lower"):
        model = model.with_joint(name, damping=0.8)
    motion = falls(model, 1e-3, (jnp.array([0.79, 0.7]), jnp.zeros(2)), saveat=diffrax.SaveAt(steps=True))
    steps = motion.stats["accepted_steps"]
    stops = STOPS.stops(model)
    q, still = motion.q[steps - 1], jnp.zeros(2)
    assert q[0] > 0.8
    np.testing.assert_allclose(stops.generalized(model, 0.0, q, still), jdyn.gravity_forces(model, q), atol=5e-3)
    assert steps < 150
    assert jnp.sum((motion.ts > 1.0) & (motion.ts < 3.0)) < 20


@pytest.mark.slow
def test_single_precision_follows_double_precision_in_joints(exact):
    """What one start loses to rounding is chance: where steps are rejected depends on it."""
    model, errors = arm().astype(jnp.float32), []
    for shift in (0, 1e-6, -1e-6, 2e-6, 5e-6):
        q, v = (x.astype(jnp.float32) for x in START)
        motion = falls(model, jnp.float32(1e-5), (q + jnp.float32(shift), v), saveat=ROWS.astype(jnp.float32))
        assert motion.q.dtype == jnp.float32
        errors.append(np.max(np.abs(np.asarray(motion.q) - np.asarray(exact.q)), axis=1))
    assert np.all(np.median(errors, axis=0)[:2] < 3e-4)
    assert np.max(errors) < 5e-3


def _end(x, adjoint=None):
    """Of an arm that presses on the ground and meets its end, by its friction, end, gravity and friction against
    rolling."""
    friction, speed, upper, gravity, roll = x
    model = arm(ground=-0.92).with_gravity(jnp.array([0.0, 0.0, -1.0]) * gravity)
    model = model.with_joint("upper", friction=friction, friction_speed=speed, upper=upper)
    contact = jdyn.ConvexContact(
        jdyn.contact.Material(2e4, 0.5, jnp.array([20.0, 0.0, 1.0]) * roll), slip_speed=0.1, spin_speed=1.0
    )
    q, v = jnp.array([0.72, -0.8]), jnp.array([1.0, 1.0])
    steps = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 4e-3, "solver": jdyn.solvers.ConvexEuler(rows=1)}
    options = {"contact": contact, "joint_limits": STOPS, "saveat": END, "adjoint": adjoint}
    return jdyn.simulate(model, q, v, 0.08, **options, **steps).q[0, 0]


POINT = jnp.array([1.0, 0.5, 0.75, 9.81, 0.02])


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivatives_by_numbers_of_all_terms_are_those_of_differences_in_both_modes():
    program = jax.jit(_end)
    steps = 1e-6 * jnp.eye(len(POINT))
    differences = jnp.stack([(program(POINT + e) - program(POINT - e)) / 2e-6 for e in steps])
    backwards = jax.jit(jax.grad(_end))(POINT)
    assert jnp.all(jnp.abs(differences) > 1e-4)
    # Newton steps leave 10⁻¹⁴ or so, and differences amplify that by 10⁶.
    np.testing.assert_allclose(backwards, differences, atol=1e-7)
    way = jnp.arange(1.0, len(POINT) + 1)
    _, forwards = jax.jvp(jax.jit(lambda x: _end(x, diffrax.ForwardMode())), (POINT,), (way,))
    np.testing.assert_allclose(forwards, backwards @ way, rtol=1e-9)
