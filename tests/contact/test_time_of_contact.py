"""The first contact of motions at constant velocity, against closed forms and dense samples."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import jdyn

pytestmark = pytest.mark.fast_compile


def bullet_and_wall():
    builder = jdyn.Builder("bullet and wall")
    builder.add_link("bullet", jdyn.Prismatic((1, 0, 0)), mass=0.01)
    builder.add_shape("bullet", "sphere", 0.01, role="collision")
    builder.add_shape("world", "box", (1e-3, 1, 1), placement=(2, 0, 0), role="collision", name="wall")
    return builder.build()


BULLET, AT_REST, FAST = bullet_and_wall(), jnp.zeros(1), jnp.array([1000.0])


def test_a_bullet_meets_a_wall_that_samples_miss():
    samples = jnp.linspace(0, 0.01, 100)[:, None] * FAST[None]
    assert jax.vmap(lambda q: jdyn.contact.distances(BULLET, q).distance[0])(samples).min() > 0
    found = jdyn.contact.time_of_contact(BULLET, AT_REST, FAST, 0.01)
    # What is left of √ε by one step of Newton's method is rounding.
    np.testing.assert_allclose(found, (2 - 0.01 - 5e-4) / 1000, rtol=1e-14)


def test_the_time_is_infinite_where_nothing_touches_before_the_horizon():
    assert jdyn.contact.time_of_contact(BULLET, AT_REST, FAST, 1.9e-3) == jnp.inf
    assert jdyn.contact.time_of_contact(BULLET, AT_REST, -FAST, jnp.inf) == jnp.inf
    assert jdyn.contact.time_of_contact(BULLET, AT_REST, 0 * FAST, jnp.inf) == jnp.inf


def test_the_time_is_zero_where_shapes_overlap_at_the_start():
    assert jdyn.contact.time_of_contact(BULLET, jnp.array([2.005]), FAST, 1.0) == 0


def test_derivatives_are_zero_where_nothing_moves_or_touches():
    slopes = jax.grad(jdyn.contact.time_of_contact, argnums=(0, 1, 2))
    for q, v in ((AT_REST, 0 * FAST), (AT_REST, -FAST), (jnp.array([2.005]), FAST)):
        assert all(jnp.all(x == 0) for x in jax.tree.leaves(slopes(BULLET, q, v, 1.0)))


def test_pairs_that_are_not_named_are_not_looked_at():
    assert jdyn.contact.time_of_contact(BULLET, AT_REST, FAST, 1.0, pairs=[]) == jnp.inf
    with pytest.raises(ValueError, match=r"pairs: no collision shape is called 'Wall'; there are bullet, wall"):
        jdyn.contact.time_of_contact(BULLET, AT_REST, FAST, 1.0, pairs=[("bullet", "Wall")])


def test_height_fields_are_refused():
    builder = jdyn.Builder("on a hill")
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("world", "height field", (2, 2), role="collision", heights=np.zeros((2, 2)), name="hill")
    with pytest.raises(ValueError, match="'hill' is a height field, which has no distance from afar"):
        jdyn.contact.time_of_contact(builder.build(), AT_REST, FAST, 1.0)


# A ball on an arm that turns about y, from straight down, beside a wall that stands at the distance of the arm.
ARM, RADIUS, ANGLE, SPEED = (jnp.array(x) for x in (1.0, 0.1, 0.2, 2.0))


WALL = {"size": (0.2, 9.0, 9.0), "translation": (1.1, 0.0, 0.0)}


def swung(arm, radius, angle, speed, horizon=1.0, wall=WALL, max_rounds=1000):
    builder = jdyn.Builder("swung ball")
    builder.add_link("arm", jdyn.Revolute((0, -1, 0)), mass=1.0, inertia=np.eye(3))
    builder.add_shape("arm", "sphere", 0.1, placement=(0, 0, -1), role="collision", name="ball")
    builder.add_shape("world", "box", (1, 1, 1), role="collision", name="wall")
    changes = {
        "collision:ball.size": radius[None],
        "collision:ball.translation": jnp.zeros(3, arm.dtype).at[2].set(-arm),
        **{f"collision:wall.{what}": jnp.array(numbers, arm.dtype) for what, numbers in wall.items()},
    }
    model = jdyn.vary(builder.build().astype(arm.dtype), changes)
    return jdyn.contact.time_of_contact(model, angle[None], speed[None], horizon, max_rounds=max_rounds)


def arrival(arm, radius, angle, speed):
    return (jnp.arcsin((1 - radius) / arm) - angle) / speed


def test_a_swung_ball_meets_a_wall_as_the_arc_sine_says():
    point = ARM, RADIUS, ANGLE, SPEED
    np.testing.assert_allclose(swung(*point), arrival(*point), rtol=1e-12)


def test_a_ball_that_starts_along_a_thin_plate_and_turns_into_it_is_not_missed():
    # At the lowest point of its circle nothing moves it towards the plate above, and a turn of 1 rad ends beyond it.
    plate = {"size": (9.0, 9.0, 1e-3), "translation": (0.0, 0.0, -0.9)}
    found = swung(ARM, jnp.array(0.01), jnp.array(0.0), SPEED, wall=plate)
    np.testing.assert_allclose(found, np.arccos(0.9 + 0.01 + 5e-4) / SPEED, rtol=1e-12)


def test_a_rod_that_turns_about_its_middle_touches_ground_by_its_end():
    builder = jdyn.Builder("rod")
    builder.add_link("rod", jdyn.Revolute((1, 0, 0)), placement=(0, 0, 0.85), mass=1.0, inertia=np.eye(3))
    builder.add_shape("rod", "capsule", (0.05, 2.0), role="collision")
    # The axis of a capsule is z: at an angle of -π/2 it is level.
    start = jnp.array([-jnp.pi / 4 - jnp.pi / 2])
    found = jdyn.contact.time_of_contact(jdyn.with_ground(builder.build()), start, jnp.array([-1.0]), 1.0)
    np.testing.assert_allclose(found, np.arcsin(0.85 - 0.05) - np.pi / 4, rtol=1e-12)


@pytest.mark.slow
def test_derivatives_of_both_modes_are_those_of_the_arc_sine():
    point = ARM, RADIUS, ANGLE, SPEED
    exact = jax.grad(arrival, argnums=range(4))(*point)
    for mode in (jax.jacrev, jax.jacfwd):
        # As exact as the place at which Newton's method starts, √ε away.
        np.testing.assert_allclose(mode(swung, argnums=range(4))(*point), exact, rtol=1e-6)


def test_too_few_rounds_leave_no_number():
    assert jnp.isnan(swung(ARM, RADIUS, ANGLE, SPEED, max_rounds=3))


@pytest.mark.slow
def test_batches_in_float32_are_as_exact_as_their_type():
    point = [x.astype(jnp.float32) for x in (ARM, RADIUS, ANGLE)]
    speeds = jnp.array([0.5, 1.0, 20.0, -1.0], jnp.float32)
    found = jax.vmap(lambda speed: swung(*point, speed))(speeds)
    assert found.dtype == jnp.float32
    # Lanes: too slow for the horizon; in time; fast; to the other side, where no wall is.
    expected = jnp.array([jnp.inf, arrival(*point, speeds[1]), arrival(*point, speeds[2]), jnp.inf])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def arm_among_walls():
    """An arm of all sorts of joints with balls beside the axes, between walls of a millimetre."""
    builder, parent = jdyn.Builder("arm among walls"), "world"
    joints = [
        jdyn.Planar((0, 0, 1), (1, 0, 0)), jdyn.Universal((0, 1, 0), (1, 0, 0)), jdyn.Helical((0, 0, 1), 0.2),
        jdyn.Ball(), jdyn.Revolute((0, 1, 0)), jdyn.Free(),
    ]  # fmt: skip
    for number, joint in enumerate(joints):
        name = f"link{number}"
        builder.add_link(name, joint, parent=parent, placement=(0.3, 0, 0), mass=1.0, inertia=np.eye(3))
        builder.add_shape(name, "sphere", 0.03, placement=(0.1, 0.1, 0), role="collision")
        parent = name
    for number, place in enumerate([(3.0, 0, 0), (-1.2, 0, 0)]):
        builder.add_shape("world", "box", (1e-3, 9, 9), placement=place, role="collision", name=f"wall{number}")
    builder.add_shape("world", "plane", (0, 0), placement=(0, 0, -1.5), role="collision", name="ground")
    return builder.build()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_no_sample_of_a_moving_arm_overlaps_before_the_first_contact():
    model, horizon, lanes = arm_among_walls(), 1.0, 32

    def moving(key):
        around, along = jax.random.normal(key, (2, model.nv))
        return model.integrate(model.neutral(), 0.2 * around), 2 * along

    q, v = jax.vmap(moving)(jax.random.split(jax.random.key(0), lanes))
    program = jax.jit(lambda q, v, t: jnp.min(jdyn.contact.distances(model, model.integrate(q, t * v)).distance))
    nearest = jax.jit(jax.vmap(program))
    found = jax.vmap(lambda q, v: jdyn.contact.time_of_contact(model, q, v, horizon))(q, v)
    touching = np.isfinite(found)
    apart = nearest(q, v, jnp.zeros(lanes)) > 0
    np.testing.assert_array_equal(found > 0, apart)
    touching &= np.array(apart)
    assert 8 < np.sum(touching) < np.sum(apart)
    samples = jnp.linspace(0, 1, 401)[:-1]
    ends = jnp.minimum(found, horizon)
    gaps = jax.lax.map(lambda s: nearest(q, v, s * ends), samples)
    assert np.all(gaps[:, apart] > 0)
    for lane in np.flatnonzero(touching):
        gap = functools.partial(program, q[lane], v[lane])
        root = brentq(gap, 0.999 * found[lane], 1.001 * found[lane])
        np.testing.assert_allclose(found[lane], root, rtol=1e-9)
    # The derivative along a direction of the velocity, where differences of second order are good to h² and ε / h.
    lane, h = int(np.argmax(touching)), 1e-6
    along = jax.random.normal(jax.random.key(1), v[lane].shape)

    def time(s):
        return jdyn.contact.time_of_contact(model, q[lane], v[lane] + s * along, horizon)

    _, slope = jax.jvp(time, (0.0,), (1.0,))
    np.testing.assert_allclose(slope, (time(h) - time(-h)) / (2 * h), rtol=1e-6)
