"""Constraints beyond the tree of joints beside convex contact, against the same law as a force of the state."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.constraints import constraint_distance

pytestmark = pytest.mark.fast_compile

G, END = 9.81, diffrax.SaveAt(t1=True)
LAW = jdyn.ConvexContact(jdyn.contact.Material(4e4, 1.0, 0.4), slip_speed=1e-3)


def accuracy(tolerance):
    return diffrax.PIDController(rtol=tolerance, atol=tolerance, safety=0.8, factormax=2.0)


def hopper():
    """A body on a rail above the ground, whose leg is a parallelogram: two shanks that a foot joins, which closes the
    loop. Of the three rows that close it one is redundant."""
    builder = jdyn.Builder("hopper")
    builder.add_link("x", jdyn.Prismatic((1, 0, 0)))
    builder.add_link("body", jdyn.Prismatic((0, 0, 1)), parent="x", mass=2.0, inertia=2e-2 * np.ones(3))
    for name, x in (("front", 0.1), ("back", -0.1)):
        builder.add_link(
            name, jdyn.Revolute((0, 1, 0)), parent="body", placement=(x, 0, 0), mass=0.3, com=(0, 0, -0.15),
            inertia=2e-3 * np.ones(3),
        )  # fmt: skip
    builder.add_link(
        "foot", jdyn.Revolute((0, 1, 0)), parent="front", placement=(0, 0, -0.3), mass=0.2, inertia=1e-3 * np.ones(3)
    )
    for x in (0.0, -0.2):
        builder.add_shape("foot", "sphere", 0.03, placement=(x, 0, 0), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    model = builder.build()
    loop = jdyn.constraints.Connect("foot", "back", point_a=(-0.2, 0, 0), point_b=(0, 0, -0.3))
    return model, [loop]


def thrown(height=0.4):
    model, loop = hopper()
    lean = 0.3
    q = jnp.array([0.0, height, lean, lean, -lean])
    v = jnp.array([0.5, 0.0, 0.0, 0.0, 0.0])
    return model, loop, q, v


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_closed_leg_that_lands_goes_as_other_solvers_have_it():
    """The foot slips, sticks and parts again; errors follow the tolerance."""
    model, loop, q, v = thrown()

    def motion(solver, tolerance):
        control = (diffrax.PIDController if solver else accuracy)(*[jnp.asarray(tolerance)] * (2 if solver else 1))
        return jdyn.simulate(
            model, q, v, 0.4, contact=LAW, constraints=loop, solver=solver, stepsize_controller=control,
            saveat=jnp.linspace(0, 0.4, 9), max_steps=20000,
        )  # fmt: skip

    exact = motion(diffrax.Dopri8(), 1e-8)
    run = jax.jit(lambda tolerance: motion(None, tolerance))
    errors = []
    for tolerance in (1e-3, 1e-4, 1e-5):
        found = run(tolerance)
        errors.append(float(jnp.max(jnp.abs(found.q - exact.q))))
        # The loop is closed after every step.
        missed = jax.vmap(lambda q, v: jnp.stack(constraint_distance(model, loop, q, v)))(found.q[1:], found.v[1:])
        assert jnp.max(missed) < 1e-4
    assert np.all(np.array(errors) < [3e-2, 2e-3, 2e-4])
    # It does stand on the ground meanwhile, and slides.
    assert float(jnp.max(exact.contacts.points.force)) > 10


@pytest.mark.exhaustive
def test_flight_is_that_of_the_constraints_alone():
    model, loop, q, v = thrown(height=2.0)
    options = {"constraints": loop, "saveat": jnp.linspace(0, 0.4, 5)}
    free = jdyn.simulate(model, q, v, 0.4, stepsize_controller=accuracy(1e-10), **options)
    touching = jdyn.simulate(model, q, v, 0.4, contact=LAW, stepsize_controller=accuracy(1e-7), **options)
    np.testing.assert_allclose(touching.q, free.q, atol=2e-6)
    np.testing.assert_allclose(touching.v, free.v, atol=2e-6)


@pytest.fixture(scope="module")
def carried():
    """The speed of a ball of the mass 1 that rests on a platform and does not turn, after the platform has been told to
    accelerate for half a second."""
    builder = jdyn.Builder("conveyor")
    builder.add_link("platform", jdyn.Prismatic((1, 0, 0)), mass=3.0)
    builder.add_shape("platform", "box", (4.0, 1.0, 0.2), placement=(0, 0, -0.1), role="collision")
    builder.add_link("rail", jdyn.Prismatic((1, 0, 0)))
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), parent="rail", mass=1.0)
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    model, k = builder.build(), 1e6
    law = jdyn.ConvexContact(jdyn.contact.Material(2 * k, 20.0, 0.5))

    @jax.jit
    def speed(a):
        told = [jdyn.constraints.PrescribedJoint("platform", lambda t: a * t**2 / 2)]
        motion = jdyn.simulate(
            model, jnp.array([0.0, 0.0, 0.1 - G / k]), jnp.zeros(3), 0.5, contact=law, constraints=told, saveat=END,
            stepsize_controller=accuracy(1e-6),
        )  # fmt: skip
        return motion.v[-1]

    return speed


@pytest.mark.slow
@pytest.mark.parametrize("a", [3.0, 4.8, 5.0, 9.0])
def test_a_platform_that_is_told_to_move_carries_what_friction_holds(carried, a):
    """Up to μ g, and lets it slide beyond."""
    platform, ball, rising = carried(a)
    np.testing.assert_allclose(platform, a * 0.5, rtol=1e-6)
    # What sticks creeps in proportion to its share of friction.
    np.testing.assert_allclose(ball, min(a, 0.5 * G) * 0.5, atol=2e-6)
    np.testing.assert_allclose(rising, 0, atol=1e-6)


def _end(x, adjoint=None):
    """Of a ball that does not turn and slides on the ground, geared to a motor, by friction, gravity, the motor's mass
    and the ratio of the gear."""
    friction, gravity, mass, ratio = x
    builder = jdyn.Builder("slider")
    builder.add_link("motor", jdyn.Prismatic((1, 0, 0)), mass=0.5)
    builder.add_link("rail", jdyn.Prismatic((1, 0, 0)))
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), parent="rail", mass=1.0)
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    model = builder.build().with_gravity(jnp.array([0.0, 0.0, -1.0]) * gravity)
    model = jdyn.vary(model, {"body:motor.mass": mass})
    law = jdyn.ConvexContact(jdyn.contact.Material(4e4, 1.0, jnp.array([0.4, 0.0, 0.0]) * friction), slip_speed=0.1)
    steps = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 4e-3, "solver": jdyn.solvers.ConvexEuler(rows=1)}
    q, v = jnp.array([0.0, 0.0, 0.0999]), jnp.stack([1.0 + 0 * ratio, ratio, 0 * ratio])
    gear = [jdyn.constraints.Gear("rail", "motor", jnp.stack([0 * ratio, ratio]))]
    motion = jdyn.simulate(model, q, v, 0.08, contact=law, constraints=gear, saveat=END, adjoint=adjoint, **steps)
    return motion.q[-1, 0]


@pytest.mark.exhaustive
def test_derivatives_by_numbers_are_those_of_differences_in_both_modes():
    x = jnp.array([1.0, 9.81, 0.5, 1.5])
    steps = 1e-5 * jnp.diag(x)
    ends = jax.jit(jax.vmap(_end))(jnp.concatenate([x[None] + steps, x[None] - steps]))
    differences = (ends[:4] - ends[4:]) / (2e-5 * x)
    backwards = jax.jit(jax.grad(_end))(x)
    forwards = jax.jit(jax.jacfwd(lambda x: _end(x, diffrax.ForwardMode())))(x)
    assert jnp.all(jnp.abs(differences) > 1e-5)
    np.testing.assert_allclose(backwards, differences, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(forwards, backwards, rtol=1e-6, atol=1e-10)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_single_precision_follows_double_precision():
    def end(dtype):
        model, loop, q, v = thrown()
        loop = jax.tree.map(lambda x: x.astype(dtype), loop)
        motion = jdyn.simulate(
            model.astype(dtype), q.astype(dtype), v.astype(dtype), 0.2, contact=LAW, constraints=loop, saveat=END,
            stepsize_controller=accuracy(1e-4),
        )  # fmt: skip
        return motion.q[-1]

    single = end(jnp.float32)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, end(jnp.float64), atol=2e-3)
