"""Events where shapes touch, against closed forms."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.simulation import Result

pytestmark = pytest.mark.fast_compile

TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-12)


def dropped_ball():
    """A ball above ground, and one far above it."""
    builder = jdyn.Builder("dropped ball")
    for name, height in (("high", 5), ("ball", 0)):
        builder.add_link(name, jdyn.Prismatic((0, 0, 1)), placement=(0, 0, height), mass=1.0)
        builder.add_shape(name, "sphere", 0.1, role="collision")
    return jdyn.with_ground(builder.build())


BALL = dropped_ball()


def landing(height, radius, gravity):
    """The instant, and how the motion ended."""
    model = jdyn.vary(BALL, {"collision:ball.size": radius[None]}).with_gravity(-gravity * jnp.array([0.0, 0.0, 1.0]))
    event = jdyn.touch_event(model, terminate=True)
    # Without an error in parabolas, and with a small program.
    motion = jdyn.simulate(
        model, jnp.stack([0 * height, height]), jnp.zeros(2), 2.0, events=[event], solver=diffrax.Tsit5(),
        saveat=diffrax.SaveAt(t1=True), max_events=1,
    )  # fmt: skip
    return motion.events.ts[0], (motion.result, motion.events.entry[0])


def fallen(height, radius, gravity):
    return jnp.sqrt(2 * (height - radius) / gravity)


POINT = jnp.array(1.0), jnp.array(0.1), jnp.array(9.81)


@pytest.mark.slow
def test_a_falling_ball_lands_when_its_lowest_point_does():
    t, (result, entry) = landing(*POINT)
    np.testing.assert_allclose(t, fallen(*POINT), rtol=1e-13)
    names = jdyn.touch_event(BALL, terminate=True).condition.pairs
    assert Result(int(result)) is Result.event
    assert names == jdyn.contact.collision_pairs(BALL) and names[int(entry)] == ("ground", "ball")


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_instant_has_the_derivatives_of_the_closed_form_by_sizes_too():
    slopes, _ = jax.grad(landing, argnums=range(3), has_aux=True)(*POINT)
    np.testing.assert_allclose(slopes, jax.grad(fallen, argnums=range(3))(*POINT), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_rod_that_falls_from_rest_hits_a_wall_at_the_speed_of_its_height():
    builder = jdyn.Builder("rod")
    builder.add_link("rod", jdyn.Revolute((0, -1, 0)), mass=1.0, com=(0, 0, -1), inertia=(1e-12, 1e-12, 1e-12))
    builder.add_shape("rod", "capsule", (0.05, 2.0), placement=(0, 0, -1), role="collision", name="rod")
    builder.add_shape("world", "box", (0.2, 9, 9), placement=(-0.6, 0, 0), role="collision", name="wall")
    model = builder.build()
    hit = jdyn.touch_event(model, terminate=True)
    motion = jdyn.simulate(
        model, jnp.array([1.0]), jnp.zeros(1), 2.0, events=[hit], saveat=diffrax.SaveAt(t1=True),
        stepsize_controller=TIGHT, max_events=1,
    )  # fmt: skip
    # The middle of its lower end is then its radius in front of the wall.
    angle = -np.arcsin((0.5 - 0.05) / 2)
    np.testing.assert_allclose(motion.events.q[0], [angle], rtol=1e-9)
    speed = np.sqrt(2 * 9.81 * (np.cos(angle) - np.cos(1.0)))
    np.testing.assert_allclose(motion.events.v[0], [-speed], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("dtmax", [None, 0.1, 1e-3])
def test_a_bullet_bounces_at_a_thin_wall_however_long_its_steps_may_be(dtmax):
    """A ball at 100 m/s is within a wall of a millimetre for 0.2 ms; a step without contact takes 0.1 s."""
    builder = jdyn.Builder("bullet")
    builder.add_link("bullet", jdyn.Prismatic((1, 0, 0)), mass=1.0)
    builder.add_shape("bullet", "sphere", 0.01, role="collision")
    builder.add_shape("world", "box", (1e-3, 1, 1), placement=(2, 0, 0), role="collision", name="wall")
    model = builder.build()
    bounce = jdyn.touch_event(
        model, [("bullet", "wall")], reset=lambda t, y, entry: dataclasses.replace(y, v=-0.5 * y.v)
    )
    steps = diffrax.PIDController(rtol=1e-6, atol=1e-8, dtmax=dtmax)
    motion = jdyn.simulate(
        model, jnp.zeros(1), jnp.array([100.0]), 0.1, events=[bounce], stepsize_controller=steps,
        saveat=diffrax.SaveAt(t1=True), max_events=2, solver=diffrax.Tsit5(),
    )  # fmt: skip
    np.testing.assert_allclose(motion.events.ts, [(2 - 0.01 - 5e-4) / 100, jnp.nan], rtol=1e-12)
    np.testing.assert_allclose(motion.v[-1], [-50], rtol=1e-12)


@pytest.mark.slow
def test_a_ball_that_hits_the_first_of_two_that_touch_sends_the_last_one_off():
    """In single precision, also while the two move on."""
    builder = jdyn.Builder("cradle", gravity=(0, 0, 0))
    for k in range(3):
        place = (0.2 * k, 0, 0)
        builder.add_link(f"ball{k}", jdyn.Prismatic((1, 0, 0)), mass=1.0, parent="world", placement=place)
        builder.add_shape(f"ball{k}", "sphere", 0.1, role="collision", name=f"{k}")
    model = builder.build().astype(jnp.float32)

    def exchanged(t, y, entry):
        places = jnp.arange(3, dtype=entry.dtype)
        there = jnp.where(places == entry, entry + 1, jnp.where(places == entry + 1, entry, places))
        return dataclasses.replace(y, v=y.v[there])

    hit = jdyn.touch_event(model, [("0", "1"), ("1", "2")], reset=exchanged)
    run = jax.jit(lambda q, v: jdyn.simulate(model, q, v, 2.0, events=[hit]))
    for speed in (0.0, 0.3):
        motion = run(jnp.array([-1, 0, 0], jnp.float32), jnp.array([1, speed, speed], jnp.float32))
        assert motion.events.entry[:3].tolist() == [0, 1, -1]
        np.testing.assert_allclose(motion.v[-1], [speed, speed, 1], rtol=1e-6)
        np.testing.assert_allclose(motion.events.ts[:2], 1 / (1 - speed), rtol=1e-6)


def test_models_without_pairs_that_may_touch_are_refused():
    builder = jdyn.Builder("lonely ball")
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    with pytest.raises(ValueError, match="touch_event: no two collision shapes of 'lonely ball' may touch"):
        jdyn.touch_event(builder.build(), terminate=True)


def test_unknown_shapes_are_refused_where_the_event_is_made():
    with pytest.raises(ValueError, match=r"pairs: no collision shape is called 'bal'"):
        jdyn.touch_event(BALL, [("ground", "bal")], terminate=True)
