"""Certain times of contact along motions that accelerate and turn, against closed forms, samples and bisection."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import jdyn
from jdyn.contact import earliest_contact, earliest_contacts, first_contact, may_touch, swept_boxes

pytestmark = pytest.mark.fast_compile


def test_the_earliest_time_closes_the_distance():
    rng = np.random.default_rng(0)
    distance, acceleration = rng.uniform(0.1, 3, size=(2, 100))
    speed = rng.normal(size=100)
    t = np.asarray(earliest_contact(distance, speed, acceleration))
    np.testing.assert_allclose(speed * t + acceleration * t**2 / 2, distance, rtol=1e-13)
    assert np.all(t > 0)
    # Nothing closes what leaves or rests; what touches does so now.
    np.testing.assert_array_equal(earliest_contact(1.0, jnp.array([-1.0, 0.0])), jnp.inf)
    np.testing.assert_array_equal(earliest_contact(jnp.array([0.0, -1.0]), -1.0, 1.0), 0)
    assert earliest_contact(jnp.ones(2, jnp.float32), 1.0).dtype == jnp.float32
    slopes = jax.vmap(jax.grad(earliest_contact, argnums=(0, 1, 2)))(
        jnp.ones(3), jnp.array([0.0, 2.0, -1.0]), jnp.zeros(3)
    )
    assert all(np.all(np.isfinite(x)) for x in slopes)


def balls_and_ground():
    """Two balls that slide along x above ground, and one that slides along z."""
    builder = jdyn.Builder("balls and ground")
    for name, axis, place in (("a", (1, 0, 0), (0, 0, 1)), ("b", (1, 0, 0), (1, 0, 1)), ("c", (0, 0, 1), (0, 5, 2))):
        builder.add_link(name, jdyn.Prismatic(axis), placement=place, mass=1.0)
        builder.add_shape(name, "sphere", 0.1, role="collision")
    return jdyn.with_ground(builder.build())


def test_times_are_exact_where_nothing_turns():
    model, q, v = balls_and_ground(), jnp.zeros(3), jnp.array([2.0, -1.0, 0.0])
    found = earliest_contacts(model, q, v, 10.0, jnp.array([0.0, 0.0, 9.81]))
    time = dict(zip(found.names, np.asarray(found.time), strict=True))
    np.testing.assert_allclose(time["a", "b"], 0.8 / 3, rtol=1e-6)
    np.testing.assert_allclose(time["ground", "c"], np.sqrt(2 * 1.9 / 9.81), rtol=1e-6)
    assert time["a", "b"] <= 0.8 / 3 and time["ground", "c"] <= np.sqrt(2 * 1.9 / 9.81)
    assert time["ground", "a"] == time["ground", "b"] == np.inf


def test_swept_boxes_tell_which_pairs_cannot_touch():
    model, q = balls_and_ground(), jnp.zeros(3)
    names = jdyn.contact.collision_pairs(model)
    touching = jax.vmap(lambda window, v, a: may_touch(model, q, v, window, a), (0, 0, 0))
    windows = jnp.array([0.26, 0.27, 0.61, 0.63, jnp.inf])
    v = jnp.array([[2.0, -1.0, 0.0]] * 2 + [[0.0, 0.0, 0.0]] * 3)
    found = np.asarray(touching(windows, v, jnp.array([[0, 0, 9.81]] * 5)))
    expected = [[], [("a", "b")], [], [("ground", "c")], names]
    assert [[names[i] for i in np.flatnonzero(row)] for row in found] == [list(pairs) for pairs in expected]


@pytest.mark.slow
def test_a_fast_arm_meets_a_thin_plate():
    """What defect W17 has missed: 1 mm of plate, 100 rad/s."""
    radius, thin, speed = 0.01, 1e-3, 100.0
    builder = jdyn.Builder("arm and plate")
    builder.add_link("arm", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=(0.5, 0.5, 0.5))
    builder.add_shape("arm", "sphere", radius, placement=(1, 0, 0), role="collision", name="ball")
    builder.add_shape("world", "box", (0.3, thin, 0.3), placement=(1, 0, 0), role="collision", name="plate")
    model = builder.build()

    @jax.jit
    @jax.vmap
    def found(start):
        return first_contact(model, lambda t: (speed * t - start)[None], 0.05, 0.0)

    starts = jnp.linspace(0.3, 3.0, 30)
    result = found(starts)
    expected = (starts - np.arcsin(radius + thin / 2)) / speed
    np.testing.assert_allclose(result.time, expected, rtol=1e-13)
    assert np.all(result.earliest <= expected) and np.all(result.rounds < 30)
    # Of one look: a lower bound that is not too low, and later ones are nearer.
    bound = jax.vmap(lambda start: earliest_contacts(model, -start[None], jnp.array([speed]), 0.05).time[0])
    ratio = np.asarray(bound(starts) / expected)
    assert np.all((ratio > 0.1) & (ratio <= 1)) and np.all(ratio[starts < 0.35] > 0.7)


def test_derivatives_are_those_of_a_falling_ball():
    builder = jdyn.Builder("ball above plate")
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("world", "box", (1, 1, 1e-3), placement=(0, 0, -5e-4), role="collision", name="plate")
    model = builder.build()

    def time(height, gravity):
        return first_contact(model, lambda t: (height + 0.1 - gravity * t**2 / 2)[None], 10.0, 20.0).time

    point = jnp.array(3.0), jnp.array(9.81)
    exact = np.sqrt(2 * 3.0 / 9.81)
    np.testing.assert_allclose(time(*point), exact, rtol=1e-14)
    for mode in (jax.jacrev, jax.jacfwd):
        np.testing.assert_allclose(mode(time, (0, 1))(*point), [exact / 6, -exact / 2 / 9.81], rtol=1e-9)


@pytest.mark.slow
def test_trajectories_and_references_are_motions():
    builder = jdyn.Builder("cart and wall")
    builder.add_link("cart", jdyn.Prismatic((1, 0, 0)), mass=2.0)
    builder.add_shape("cart", "box", (0.2, 0.1, 0.1), role="collision")
    builder.add_shape("world", "box", (1e-3, 1, 1), placement=(1, 0, 0), role="collision", name="wall")
    model = builder.build()
    motion = jdyn.simulate(model, jnp.zeros(1), jnp.zeros(1), 3.0, controller=jdyn.control.Constant(jnp.ones(1)))
    found = first_contact(model, motion.interpolate, 3.0, 0.51)
    np.testing.assert_allclose(found.time, np.sqrt(2 * (0.9 - 5e-4) / 0.5), rtol=1e-9)
    reference = jdyn.control.Quintic(model, [0.0], [0.8], 0.0, 2.0)
    assert first_contact(model, reference, 2.0, 2.0).time == jnp.inf
    assert first_contact(model, reference, 2.0, 2.0).earliest == 2.0
    few = first_contact(model, motion.interpolate, 3.0, 0.51, max_rounds=2)
    assert jnp.isnan(few.time) and 0 < few.earliest < found.time and few.rounds == 2


def tumblers():
    """Two bodies that slide and turn about three axes each, between plates of a millimetre."""
    builder = jdyn.Builder("tumblers")
    axes = np.eye(3)
    for name, x in (("brick", -0.4), ("rod", 0.4)):
        parent = "world"
        for number, axis in enumerate((*axes, *axes[::-1])):
            joint = jdyn.Prismatic(axis) if number < 3 else jdyn.Revolute(axis)
            link = name if number == 5 else f"{name}{number}"
            place = (x, 0, 0) if number == 0 else (0, 0, 0)
            builder.add_link(link, joint, parent=parent, placement=place, mass=1.0, inertia=np.eye(3))
            parent = link
    builder.add_shape("brick", "box", (0.4, 0.2, 0.1), placement=(0.1, 0, 0), role="collision")
    builder.add_shape("rod", "capsule", (0.05, 0.5), placement=(0, 0.1, 0), role="collision")
    for number, x in enumerate((-1.5, 1.5)):
        builder.add_shape("world", "box", (1e-3, 9, 9), placement=(x, 0, 0), role="collision", name=f"plate{number}")
    return builder.build()


@pytest.mark.slow
def test_no_bound_is_later_than_the_touch_of_what_tumbles():
    """Cubic motions, whose accelerations are bounded by those of their ends."""
    model, lanes, horizon, window = tumblers(), 64, 1.0, 0.03
    rng = np.random.default_rng(0)
    slides = np.tile([True] * 3 + [False] * 3, 2)
    q = jnp.asarray(rng.normal(size=(lanes, 12)) * np.where(slides, 0.05, 2))
    v = jnp.asarray(rng.normal(size=(lanes, 12)) * np.where(slides, 1.0, 4.0))
    a = jnp.asarray(rng.normal(size=(lanes, 12)) * np.where(slides, 2.0, 4.0))
    jerk = jnp.asarray(rng.normal(size=(lanes, 12)) * 4.0)

    def at(q, v, a, jerk, t):
        return q + v * t + a * t**2 / 2 + jerk * t**3 / 6

    @jax.jit
    @jax.vmap
    def found(q, v, a, jerk):
        most = jnp.maximum(jnp.abs(a), jnp.abs(a + jerk * horizon))
        first = first_contact(model, lambda t: at(q, v, a, jerk, t), horizon, most)
        looked = earliest_contacts(model, q, v, horizon, most).time, may_touch(model, q, v, horizon, most)
        boxes = swept_boxes(model, q, v, window, most)
        return first, *looked, jnp.stack([boxes.lower, boxes.upper])

    distances = jax.jit(lambda q: jdyn.contact.distances(model, q).distance)
    first, bounds, may, boxes = jax.tree.map(np.asarray, found(q, v, a, jerk))
    apart = np.asarray(jax.vmap(distances)(q)).min(axis=1) > 0
    np.testing.assert_array_equal(first.time > 0, apart)
    touching = np.isfinite(first.time) & apart
    assert 16 < np.sum(touching) < lanes - 8
    ends = np.minimum(first.earliest, horizon)
    for s in np.linspace(0, 1, 200):
        gaps = np.asarray(jax.vmap(distances)(at(q, v, a, jerk, jnp.asarray(s * ends)[:, None])))
        assert np.all(gaps[apart] > 0)
    for lane in np.flatnonzero(touching):

        def gap(t, lane=lane):
            return float(distances(at(q[lane], v[lane], a[lane], jerk[lane], t)).min())

        time, pair = first.time[lane], first.pair[lane]
        assert first.earliest[lane] <= time
        assert 0 < gap(first.earliest[lane]) < 2e-8
        root = brentq(gap, first.earliest[lane] * (1 - 1e-6), time + 1e-6)
        np.testing.assert_allclose(time, root, rtol=1e-9)
        assert bounds[lane, pair] <= time and np.all(bounds[lane][np.isfinite(bounds[lane])] <= horizon)
        assert may[lane, pair]
    # A corner of the brick stays within its box.
    corner = jnp.array([0.3, 0.1, 0.05])

    @jax.jit
    @jax.vmap
    def place(q):
        return jdyn.frame_pose(model, q, "brick").point_to_parent(corner)

    brick = [entry.name for entry in model.shapes.entries].index("brick")
    for t in np.linspace(0, window, 20):
        points = np.asarray(place(at(q, v, a, jerk, t)))
        assert np.all((boxes[:, 0, brick] <= points + 1e-12) & (points - 1e-12 <= boxes[:, 1, brick]))
    size = np.max(boxes[:, 1, brick] - boxes[:, 0, brick], axis=1)
    assert np.max(size) < 3, np.sort(size)
    # One look is conservative, where twelve joints turn and slide. Many are not, and not too many.
    ratios = [bounds[lane, first.pair[lane]] / first.time[lane] for lane in np.flatnonzero(touching)]
    assert min(ratios) > 0.05 and np.max(first.rounds) <= 100 and np.median(first.rounds) < 45
