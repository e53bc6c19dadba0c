"""Events at one instant, against closed forms."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.simulation import Result

pytestmark = pytest.mark.fast_compile

# Exact for parabolas, and a smaller program than the default's.
OPTIONS = {"solver": diffrax.Tsit5(), "throw": False, "saveat": diffrax.SaveAt(t1=True)}


def row(masses, axis=(1, 0, 0), offsets=None, dtype=jnp.float64, gravity=0.0):
    """Bodies on one line."""
    builder = jdyn.Builder("row", gravity=(0, 0, -gravity))
    for k, (mass, offset) in enumerate(zip(masses, offsets or [0.0] * len(masses), strict=True)):
        place = tuple(offset * x for x in axis)
        builder.add_link(f"body{k}", jdyn.Prismatic(axis), mass=mass, parent="world", placement=place)
    return builder.build().astype(dtype)


def hit(masses, y, first):
    """The state after an elastic impact of two neighbours."""
    one = jnp.arange(len(masses), dtype=jnp.int32)
    one, other = one == first, one == first + 1
    masses = jnp.asarray(masses, y.v.dtype)
    speed = jnp.sum(jnp.where(one, y.v, 0) - jnp.where(other, y.v, 0))
    impulse = 2 * speed / jnp.sum(jnp.where(one | other, 1 / masses, 0))
    return dataclasses.replace(y, v=y.v + impulse / masses * (jnp.where(other, 1, 0) - jnp.where(one, 1, 0)))


CRADLE = (1.0, 1.0, 1.0)
HITS = jdyn.Event(lambda t, y: jnp.diff(y.q), lambda t, y, entry: hit(CRADLE, y, entry))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_a_row_of_balls_that_touch_hands_the_speed_on(dtype):
    model = row(CRADLE, dtype=dtype)
    run = jax.jit(lambda q, v: jdyn.simulate(model, q, v, 2.0, events=[HITS], **OPTIONS))
    cases = [
        # One comes, two come from both sides, and one starts where it touches: each with what hits what, and when.
        ([-1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1], 1),
        ([-1, 0, 1], [1, 0, -1], [-1, 0, 1], [0, 1, 0], 1),
        ([0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1], 0),
        ([0, 0, 0], [0, 0, -1], [-1, 0, 0], [1, 0], 0),
    ]
    for q, v, end, which, when in cases:
        motion = run(jnp.asarray(q, dtype), jnp.asarray(v, dtype))
        count = len(which)
        assert motion.success and motion.events.entry[: count + 1].tolist() == [*which, -1]
        np.testing.assert_allclose(motion.events.ts[:count], when, rtol=4 * jnp.finfo(dtype).eps)
        np.testing.assert_allclose(motion.v[-1], end, atol=4 * jnp.finfo(dtype).eps)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "accuracy"), [(jnp.float32, 1e-5), (jnp.float64, 1e-13)])
def test_stacked_balls_that_fall_throw_up_the_upper_one(dtype, accuracy):
    """Where the lower one has turned around, it hits the other one at the same instant."""
    masses = (2.0, 1.0)
    model = row(masses, (0, 0, 1), (0.1, 0.3), dtype, gravity=9.81)

    @jax.jit
    def fall(order):
        def gaps(t, y):
            z = y.q + jnp.array([0.1, 0.3], dtype)
            return jnp.concatenate([z[:1] - 0.1, jnp.diff(z) - 0.2])[order]

        def reset(t, y, entry):
            floor = dataclasses.replace(y, v=y.v * jnp.array([-1, 1], dtype))
            return jax.tree.map(lambda a, b: jnp.where(order[entry] == 0, a, b), floor, hit(masses, y, 0))

        start = jnp.ones(2, dtype), jnp.zeros(2, dtype)
        return jdyn.simulate(model, *start, 0.6, events=[jdyn.Event(gaps, reset)], **OPTIONS).events

    speed = np.sqrt(2 * 9.81)
    for order in (jnp.array([0, 1]), jnp.array([1, 0])):
        events = fall(order)
        # By both laws of impact the lower one is left with −u/3, which the floor turns, and the upper one with 5/3 u.
        assert order[events.entry[:3]].tolist() == [0, 1, 0] and events.entry[3] == -1
        np.testing.assert_allclose(events.v[2], [speed / 3, 5 / 3 * speed], rtol=accuracy)


BALL = row((1.0,), (0, 0, 1), gravity=9.81)
BOUNCE = jdyn.Event(lambda t, y: y.q[0], lambda t, y: dataclasses.replace(y, v=-0.8 * y.v))
NOTE = jdyn.Event(lambda t, y: 3 * y.q[0], lambda t, y: y)
STOP = jdyn.Event(lambda t, y: 2 * y.q[0], terminate=True)


@pytest.mark.slow
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
@pytest.mark.parametrize("height", [1.0, 0.0])
def test_the_order_of_the_list_does_not_decide_what_happens(order, height):
    """Also where a simulation starts."""
    events = [(BOUNCE, NOTE, STOP)[k] for k in order]
    speed = -np.sqrt(2 * 9.81 * (1 - height))
    motion = jdyn.simulate(BALL, [height], [speed], 3.0, events=events, **OPTIONS)
    assert motion.result == Result.event
    happened = [order[k] for k in motion.events.which[:3]]
    assert sorted(happened) == [0, 1, 2] and happened[-1] == 2 and motion.events.which[3] == -1
    np.testing.assert_allclose(motion.events.v[2], [0.8 * np.sqrt(2 * 9.81)], rtol=1e-12)
    np.testing.assert_allclose(motion.events.ts[:3], height * np.sqrt(2 / 9.81), rtol=1e-13)


@pytest.mark.slow
def test_events_that_make_each_other_happen_end_with_a_code():
    walls = jdyn.Event(lambda t, y: jnp.stack([y.q[0], -y.q[0]]), lambda t, y, entry: dataclasses.replace(y, v=-y.v))
    motion = jdyn.simulate(row((1.0,)), [0.0], [1.0], 1.0, events=[walls], max_events=9, **OPTIONS)
    assert motion.result == Result.endless_events and motion.stats["t_reached"] == 0
    assert motion.events.entry.tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 1]


def passed_on(q, v, t1):
    """Where the balls are, and how fast, if the first hits the second and that one the third."""
    for k in (0, 1):
        t = (q[k + 1] - q[k]) / (v[k] - v[k + 1])
        q, v, t1 = q + t * v, v.at[k].set(v[k + 1]).at[k + 1].set(v[k]), t1 - t
    return jnp.stack([q + t1 * v, v])


def handed(q, v, **options):
    motion = jdyn.simulate(row(CRADLE), q, v, 2.0, events=[HITS], **OPTIONS, **options)
    return jnp.stack([motion.q[-1], motion.v[-1]])


START = jnp.array([-1.0, 0, 0]), jnp.array([1.0, 0, 0])


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivatives_are_those_of_the_order_in_which_events_happen():
    weights = jnp.array([[1.0, 2, 3], [5, 7, 11]])
    found = jax.jit(jax.grad(lambda q, v: jnp.sum(weights * handed(q, v)), (0, 1)))(*START)
    right = jax.grad(lambda q, v: jnp.sum(weights * passed_on(q, v, 2.0)), (0, 1))(*START)
    np.testing.assert_allclose(found, right, atol=1e-11)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_lanes_have_derivatives_of_their_own():
    """With two events at one instant, with two at different ones, and with none."""
    q = jnp.array([[-1.0, 0, 0], [-1, 0, 0.5], [-3, 0, 0], [-1, -0.9, 2]])
    v = jnp.array([[1.0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0]])
    found = jax.jit(jax.vmap(jax.jacrev(handed, (0, 1))))(q, v)

    def alone(q, v, t1):
        return jnp.stack([q + t1 * v, v])

    for lane, motion in enumerate((passed_on, passed_on, alone, alone)):
        for by, right in zip(found, jax.jacfwd(motion, (0, 1))(q[lane], v[lane], 2.0), strict=True):
            np.testing.assert_allclose(by[lane], right, atol=1e-11)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivatives_through_events_at_one_instant_forwards():
    found = jax.jit(jax.jacfwd(lambda q, v: handed(q, v, adjoint=diffrax.ForwardMode()), (0, 1)))(*START)
    for by, right in zip(found, jax.jacfwd(passed_on, (0, 1))(*START, 2.0), strict=True):
        np.testing.assert_allclose(by, right, atol=1e-11)


@pytest.mark.slow
def test_joints_that_start_at_their_ends_bounce_at_once():
    model = row((1.0, 1.0))
    for name in ("body0", "body1"):
        model = model.with_joint(name, lower=-1.0, upper=1.0)
    stops = jdyn.ImpactLimits(restitution=0.5)
    motion = jdyn.simulate(model, [1.0, -1.0], [0.5, -0.25], 0.5, joint_limits=stops, **OPTIONS)
    assert motion.events.entry[:3].tolist() == [0, 3, -1] and motion.events.ts[:2].tolist() == [0, 0]
    np.testing.assert_allclose(motion.v[-1], [-0.25, 0.125], rtol=1e-12)
