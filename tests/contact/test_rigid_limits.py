"""Rigid contact where other models end: stiffness without bound, mass ratios, and loads shared in many ways."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.contact import scenes

G = 9.81
MU, RADIUS, DROP, SPEED, END = 0.2, 0.1, 0.1, 1.0, 0.8


def rolling():
    """Way of a ball that lands with a speed along the floor, without restitution, slides, and rolls from then on."""
    lands = np.sqrt(2 * DROP / G)
    # Friction of the impact takes μ m v_n, and turns the ball.
    speed = SPEED - MU * G * lands
    slip = speed - 2.5 * MU * G * lands
    slides = slip / (3.5 * MU * G)
    assert 0 < slides < END - lands
    way = speed * slides - MU * G * slides**2 / 2
    return SPEED * lands + way + (speed - MU * G * slides) * (END - lands - slides)


def landed(contact, tolerance):
    model = scenes.ball(radius=RADIUS)
    start, v = model.neutral().at[2].set(RADIUS + DROP), jnp.zeros(6).at[3].set(SPEED)
    motion = jdyn.simulate(
        model, start, v, END, contact=contact, saveat=jnp.array([END]),
        stepsize_controller=diffrax.PIDController(tolerance, 1e-2 * tolerance),
    )  # fmt: skip
    return motion.q[-1, :3]


@pytest.mark.slow
def test_a_ball_lands_slides_and_rolls_as_in_closed_form():
    np.testing.assert_allclose(landed(jdyn.RigidContact(friction=MU), 1e-7), [rolling(), 0, RADIUS], atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "tolerance"), [("compliant", 1e-8), ("convex", 1e-6)])
def test_soft_contact_becomes_rigid_as_stiffness_grows(kind, tolerance):
    """Depth 2 m g/k of two equal surfaces; what they take to stop the ball is a share of √(m/k) of its way."""

    @jax.jit
    def end(stiffness):
        material = jdyn.contact.Material(stiffness=stiffness, dissipation=100.0, friction=MU)
        if kind == "convex":
            return landed(jdyn.ConvexContact(material=material), tolerance)
        return landed(jdyn.CompliantContact(material=material, slip_speed=1e-5), tolerance)

    errors = []
    for stiffness in (1e4, 1e6, 1e8):
        x, _, z = end(stiffness)
        # A hundred times a second is what the ball still moves with where it is soft.
        np.testing.assert_allclose(z, RADIUS - 2 * G / stiffness, rtol=0, atol=0.02 * 2 * G / stiffness + 1e-9)
        errors.append(abs(x - rolling()))
    assert errors[0] < 4e-3
    assert errors[1] < errors[0] / 10
    assert errors[2] < errors[1] / 4
    assert errors[2] < 2e-5


@pytest.mark.slow
def test_a_stack_rests_whatever_its_masses():
    """From a feather below a safe to the reverse: forces are weights, and nothing moves."""
    side = 0.2

    def resting(light, heavy):
        builder = jdyn.Builder("stack")
        for name in ("lower", "upper"):
            builder.add_link(name, jdyn.Free(), mass=1.0, inertia=side**2 / 6 * np.ones(3))
            builder.add_shape(name, "box", side * np.ones(3), role="collision")
        builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
        builder.exclude("upper", "world")
        model = builder.build()
        moments = side**2 / 6 * jnp.eye(3)
        model = model.with_body("lower", mass=light, inertia=light * moments)
        model = model.with_body("upper", mass=heavy, inertia=heavy * moments)
        q = model.neutral().at[jnp.array([2, 9])].set(jnp.array([side / 2, 3 * side / 2]))
        motion = jdyn.simulate(model, q, jnp.zeros(12), 0.5, contact=jdyn.RigidContact(friction=0.5), throw=False)
        forces = jnp.stack([motion.contacts.force(name)[-1] for name in ("lower", "upper")])
        return motion.result, jnp.max(jnp.abs(motion.q - q[None])), jnp.max(jnp.abs(motion.v)), forces

    found = jax.jit(resting)
    for ratio in (1e-4, 1e-2, 1.0, 1e2, 1e4):
        result, moved, speed, forces = found(1.0, ratio)
        assert result == jdyn.Result.success, ratio
        assert moved < 1e-8, ratio
        # The rest speed is 3e-3, and forces answer speeds with 20 a second.
        assert speed < 1e-6, ratio
        weights = np.array([[0, 0, G], [0, 0, ratio * G]])
        np.testing.assert_allclose(forces, weights, atol=20 * 1e-6 * max(1, ratio), err_msg=str(ratio))


@pytest.mark.slow
def test_a_table_shares_its_load_as_small_as_can_be():
    """Four legs under a top whose centre of mass is not in the middle: forces of least norm that bear weight and
    moment, found by the pseudo-inverse of the equations of equilibrium."""
    com, height = np.array([0.1, -0.05, 0.0]), 0.4
    feet = np.array([[x, y, -height + 0.02] for x in (-0.3, 0.3) for y in (-0.2, 0.2)])
    builder = jdyn.Builder("table")
    builder.add_link("top", jdyn.Free(), mass=5.0, com=tuple(com), inertia=0.2 * np.ones(3))
    for foot in feet:
        builder.add_shape("top", "sphere", 0.02, placement=tuple(foot), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision", name="ground")
    model = builder.build()
    start = model.neutral().at[2].set(height)
    motion = jdyn.simulate(model, start, jnp.zeros(6), 0.02, contact=jdyn.RigidContact(friction=0.6))
    np.testing.assert_allclose(motion.q[-1], start, atol=1e-10)
    arms = feet - [0, 0, 0.02] - com
    equilibrium = np.vstack([np.tile(np.eye(3), 4), np.hstack([_cross(arm) for arm in arms])])
    least = np.linalg.pinv(equilibrium) @ [0, 0, 5 * G, 0, 0, 0]
    assert np.all(least.reshape(4, 3)[:, 2] > 0)
    points = motion.contacts.points
    pushing = np.linalg.norm(points.force[-1], axis=1) > 0
    places, forces = np.asarray(points.position[-1])[pushing], np.asarray(points.force[-1])[pushing]
    found = {tuple(np.sign(place[:2])): force for place, force in zip(places, forces, strict=True)}
    for foot, force in zip(feet, least.reshape(4, 3), strict=True):
        given = found[tuple(np.sign(foot[:2]))]
        np.testing.assert_allclose(given * np.sign(given[2]), force, atol=1e-8)
    np.testing.assert_allclose(np.abs(np.sum(forces, 0)), [0, 0, 5 * G], atol=1e-10)


def _cross(arm):
    x, y, z = arm
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
