"""Rigid shapes that collide within simulations: closed forms, momentum, energy, and derivatives through impacts."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

EXACT = diffrax.PIDController(rtol=1e-10, atol=1e-10)
G = 9.81


def ball_above_ground():
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    return jdyn.with_ground(builder.build())


def landing(e, height, t):
    """Height and speed of a point after bounces, in closed form."""
    at, speed = jnp.sqrt(2 * height / G), e * jnp.sqrt(2 * G * height)
    while float(at + 2 * speed / G) < t:
        at, speed = at + 2 * speed / G, e * speed
    return speed * (t - at) - G * (t - at) ** 2 / 2, speed - G * (t - at)


@pytest.mark.slow
def test_a_ball_bounces_as_in_closed_form():
    """Three bounces, and derivatives by restitution and height."""
    model = ball_above_ground()

    def ends(e, height):
        bounces = jdyn.impact_event(model, restitution=e)
        motion = jdyn.simulate(model, jnp.stack([0.1 + height]), jnp.zeros(1), 1.2, events=[bounces],
                               stepsize_controller=EXACT)  # fmt: skip
        return jnp.stack([motion.q[-1, 0] - 0.1, motion.v[-1, 0]])

    def exact(e, height):
        return jnp.stack(landing(e, height, 1.2))

    at = jnp.array([0.6, 1.0])
    np.testing.assert_allclose(ends(*at), exact(*at), atol=1e-10)
    found = jax.jacrev(lambda x: ends(*x))(at)
    expected = (exact(*(at + 1e-5)) - exact(*(at - 1e-5))) / 2e-5
    np.testing.assert_allclose(found @ jnp.ones(2), expected, atol=1e-8 * 20)


def beads(places, mass=0.5):
    """Balls of radius 0.1 on one rail along x."""
    builder = jdyn.Builder("beads")
    for i, _ in enumerate(places):
        builder.add_link(f"bead{i}", jdyn.Prismatic((1, 0, 0)), mass=mass)
        builder.add_shape(f"bead{i}", "sphere", 0.1, role="collision")
    return builder.build()


@pytest.mark.slow
def test_a_cradle_passes_the_impulse_on_to_its_last_ball():
    """Balls that touch are hit one after another."""
    places = jnp.array([-0.5, 0.0, 0.2, 0.4, 0.6])
    model = beads(places)
    v = jnp.array([1.0, 0, 0, 0, 0])
    motion = jdyn.simulate(model, places, v, 1.0, events=[jdyn.impact_event(model, restitution=1.0)])
    np.testing.assert_allclose(motion.v[-1], [0, 0, 0, 0, 1.0], atol=1e-9)
    np.testing.assert_allclose(motion.events.ts[:4], 0.3, atol=1e-9)


@pytest.mark.parametrize("law", [jdyn.impacts.NewtonTogether(), jdyn.impacts.PoissonTogether()])
def test_a_cradle_at_once_bounces_back(law):
    """One ball on two that touch: (−1, 2, 2) / 3, by three equations of momentum, for both laws."""
    places = jnp.array([-0.5, 0.0, 0.2])
    model = beads(places)
    event = jdyn.impact_event(model, law, restitution=1.0)
    motion = jdyn.simulate(model, places, jnp.array([1.0, 0, 0]), 1.0, events=[event])
    np.testing.assert_allclose(motion.v[-1], np.array([-1, 2, 2]) / 3, atol=1e-9)
    np.testing.assert_allclose(motion.events.ts[0], 0.3, atol=1e-9)
    assert np.sum(np.isfinite(motion.events.ts)) == 1


def pair():
    """A box and a ball that move freely, without weight."""
    builder = jdyn.Builder("pair", gravity=(0.0, 0.0, 0.0))
    builder.add_link("box", jdyn.Free(), mass=2.0, inertia=jnp.array([0.02, 0.03, 0.04]))
    builder.add_shape("box", "box", (0.4, 0.3, 0.2), role="collision")
    builder.add_link("ball", jdyn.Free(), mass=0.7, inertia=4e-3 * jnp.ones(3))
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    return builder.build()


@pytest.mark.slow
def test_momentum_is_kept_and_energy_lost_as_the_law_says():
    model = pair()
    q = model.neutral().at[jnp.array([7, 8, 9])].set(jnp.array([0.6, 0.05, 0.08]))
    spin = jnp.array([0.3, -0.2, 0.5, 0.1, 0.0, 0.0])
    v = jnp.concatenate([spin, jnp.array([2.0, 1.0, -3.0, -2.0, 0.1, 0.2])])

    @jax.jit
    def moved(e, mu):
        event = jdyn.impact_event(model, jdyn.impacts.Poisson(), restitution=e, friction=mu)
        return jdyn.simulate(model, q, v, 0.5, events=[event], stepsize_controller=EXACT, throw=False)

    for e, mu in ((1.0, 0.0), (0.5, 0.3), (0.0, 2.0)):
        motion = moved(e, mu)
        assert jnp.sum(jnp.isfinite(motion.events.ts)) == 1
        before, after = (jdyn.momentum(model, motion.q[i], motion.v[i]) for i in (0, -1))
        np.testing.assert_allclose(after, before, atol=1e-8)
        energies = [motion.energy[i] for i in (0, -1)]
        assert abs(energies[1] - energies[0]) < 1e-8 if e == 1 else energies[1] < energies[0] - 1e-3


def test_an_impulse_goes_through_all_joints():
    """A double pendulum hits a wall with its tip: the tip leaves as restitution says, and the pivot bears the rest."""
    builder = jdyn.Builder("chain")
    builder.add_link("upper", jdyn.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=0.08 * jnp.ones(3))
    builder.add_link("lower", jdyn.Revolute((0, 1, 0)), parent="upper", placement=jdyn.pose((0, 0, -1.0)),
                     mass=0.5, com=(0, 0, -0.5), inertia=0.04 * jnp.ones(3))  # fmt: skip
    builder.add_shape("lower", "sphere", 0.05, placement=jdyn.pose((0, 0, -1.0)), role="collision")
    builder.add_shape("world", "box", (0.2, 2.0, 4.0), placement=jdyn.pose((-0.45, 0, -2.0)), role="collision")
    model = builder.build()
    q, v = jnp.array([0.1, 0.12]), jnp.array([0.5, 1.5])
    event = jdyn.impact_event(model, restitution=0.7)
    touch = jdyn.touch_event(model, terminate=True)
    arrives = jdyn.simulate(model, q, v, 2.0, events=[touch], stepsize_controller=EXACT)
    q1, v1 = arrives.q[-1], arrives.v[-1]
    entry = jnp.zeros((), jnp.int32)
    after = event.reset(0.0, jdyn.State(q1, v1, {}), entry).v
    J = jdyn.jacobian(model, q1, "lower")  # angular first, of the body's origin, in its frame
    R = jdyn.frame_pose(model, q1, "lower").rotation
    tip = R @ (J[3:] + jnp.cross(J[:3].T, jnp.array([0, 0, -1.0])).T)
    np.testing.assert_allclose(tip[0] @ after, -0.7 * (tip[0] @ v1), rtol=1e-9)
    # Without friction the impulse is one along x: M Δv = Jᵀ p.
    gained = jdyn.mass_matrix(model, q1) @ (after - v1)
    np.testing.assert_allclose(gained, tip[0] * (gained[1] / tip[0][1]), atol=1e-10)


def test_a_face_that_lands_is_hit_until_no_corner_approaches():
    builder = jdyn.Builder("box")
    builder.add_link("box", jdyn.Free(), mass=1.0, inertia=jnp.array([0.01, 0.02, 0.02]))
    builder.add_shape("box", "box", (0.4, 0.3, 0.2), role="collision")
    model = jdyn.with_ground(builder.build())
    q, v = model.neutral().at[2].set(0.1), jnp.array([0.1, 0.2, 0.0, 0.3, 0.0, -1.0])
    event = jdyn.impact_event(model, restitution=0.0, friction=0.2)
    after = event.reset(0.0, jdyn.State(q, v, {}), jnp.zeros((), jnp.int32)).v
    corners = jnp.array([[x, y, -0.1] for x in (-0.2, 0.2) for y in (-0.15, 0.15)])
    speeds = jax.vmap(lambda corner: after[5] + jnp.cross(after[:3], corner)[2])(corners)
    assert jnp.all(speeds > -1e-3)
    assert jdyn.kinetic_energy(model, q, after) < jdyn.kinetic_energy(model, q, v)


def test_numbers_that_no_pair_has_are_refused():
    model = ball_above_ground()
    with pytest.raises(ValueError, match=r"restitution: expected numbers from 0 to 1, got 1\.5"):
        jdyn.impact_event(model, restitution=1.5)
    with pytest.raises(ValueError, match=r"friction: expected numbers not negative, got -0\.1"):
        jdyn.impact_event(model, friction=-0.1)
    with pytest.raises(ValueError, match="friction: expected one number, or one for each of 1 pairs, got shape"):
        jdyn.impact_event(model, friction=[0.1, 0.2])
    with pytest.raises(ValueError, match="has no collision shapes"):
        jdyn.impact_event(jdyn.load("double_pendulum").without_shapes())


@pytest.mark.slow
def test_impacts_in_single_precision_stay_in_it():
    model = pair().astype(jnp.float32)
    q = model.neutral().at[7].set(0.3)
    v = jnp.zeros(12, jnp.float32).at[9].set(-1.0)
    event = jdyn.impact_event(model, jdyn.impacts.Newton(), restitution=0.5, friction=0.1)
    after = event.reset(jnp.float32(0), jdyn.State(q, v, {}), jnp.zeros((), jnp.int32)).v
    assert after.dtype == jnp.float32
    # The ball hits the middle of a face: m₁ and m₂ meet, e = 0.5.
    np.testing.assert_allclose(after[jnp.array([3, 9])], [-1.5 * 0.7 / 2.7, -1 + 1.5 * 2.0 / 2.7], atol=1e-5)
