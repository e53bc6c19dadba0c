"""Inverse kinematics against closed forms, SciPy, and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

import jdyn
from jdyn.planning import Reached

pytestmark = pytest.mark.fast_compile

# Links of a planar arm [m].
FIRST, SECOND = 1.0, 0.7


def _arm():
    builder = jdyn.Builder("arm")
    builder.add_link("upper", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=(1, 1, 1), lower=-3.0, upper=3.0)
    builder.add_link(
        "lower", jdyn.Revolute((0, 0, 1)), parent="upper", placement=(FIRST, 0, 0), mass=1.0, inertia=(1, 1, 1),
        lower=-0.2, upper=2.0,
    )  # fmt: skip
    builder.add_frame("tip", "lower", (SECOND, 0, 0))
    return builder.build()


ARM = _arm()
GUESS = jnp.array([0.1, 0.5])


def _tip(q):
    turns = np.cumsum(q)
    return np.array([FIRST, SECOND]) @ np.stack([np.cos(turns), np.sin(turns)], axis=1)


def _elbow(x, y):
    """The arm's configuration with its elbow to the right, by the law of cosines."""
    second = np.arccos((x**2 + y**2 - FIRST**2 - SECOND**2) / (2 * FIRST * SECOND))
    first = np.arctan2(y, x) - np.arctan2(SECOND * np.sin(second), FIRST + SECOND * np.cos(second))
    return np.array([first, second])


@jax.jit
def _reach(model, x, y):
    target = jdyn.planning.FrameTarget("tip", jnp.stack([x, y, jnp.zeros_like(x)]))
    return jdyn.inverse_kinematics(model, [target], GUESS.astype(model.dtype))


_lanes = jax.jit(jax.vmap(_reach, (None, 0, 0)))
# Within reach, with the elbow at its upper end, out of reach, and nowhere.
TARGETS = np.array([[1.2, 0.5], [0.3, 0.2], [2.0, 1.5], [np.nan, 0.0]])


def test_each_lane_says_how_it_ended_and_spoils_no_other():
    found = _lanes(ARM, *jnp.asarray(TARGETS.T))
    np.testing.assert_array_equal(
        found.result,
        [
            jdyn.planning.Reach.met,
            jdyn.planning.Reach.nearest,
            jdyn.planning.Reach.nearest,
            jdyn.planning.Reach.nonfinite,
        ],
    )
    np.testing.assert_allclose(found.q[0], _elbow(*TARGETS[0]), atol=1e-11)
    assert found.missed[0] < 2e-12
    # Stretched towards the target, and never beyond the ends of its range.
    np.testing.assert_allclose(found.q[2], [np.arctan2(1.5, 2.0), 0], atol=1e-6)
    within = np.asarray(found.q[:3])
    assert np.all((within >= [-3, -0.2]) & (within <= [3, 2]))


def test_the_nearest_within_limits_is_that_of_scipy():
    found = _reach(ARM, *jnp.asarray(TARGETS[1]))
    expected = least_squares(
        lambda q: _tip(q) - TARGETS[1], GUESS, bounds=([-3, -0.2], [3, 2]), xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    assert found.q[1] == 2.0
    np.testing.assert_allclose(found.q, expected.x, atol=1e-6)
    np.testing.assert_allclose(found.missed, np.max(np.abs(expected.fun)), atol=1e-6)


@pytest.mark.slow
def test_float32():
    found = _reach(ARM.astype(jnp.float32), *jnp.asarray(TARGETS[0], jnp.float32))
    assert found.q.dtype == found.missed.dtype == jnp.float32
    assert found.result == jdyn.planning.Reach.met
    np.testing.assert_allclose(found.q, _elbow(*TARGETS[0]), atol=2e-5)


def _moved(numbers):
    """The arm with another link, limit and target."""
    length, limit, x, y = numbers
    placement = jnp.stack([length, jnp.zeros_like(length), jnp.zeros_like(length)])
    return _reach(ARM.with_joint(ARM.joint_names[1], placement=placement, upper=limit), x, y)


# The target is met, on the end of a joint's range, and out of reach.
NUMBERS = np.stack([[FIRST, 2.0, *target] for target in TARGETS[:3]])
_derivatives = {mode: jax.jit(jax.vmap(mode(lambda x: _moved(x)[:2]))) for mode in (jax.jacfwd, jax.jacrev)}


@pytest.mark.slow
def test_derivatives_by_lengths_limits_and_targets():
    found, missed = _derivatives[jax.jacfwd](NUMBERS)
    # Minima that are not met are found to the root of the cost's rounding, 1e-8.
    step = 1e-3
    moves = step * np.concatenate([np.eye(4), -np.eye(4)])
    ends = jax.jit(jax.vmap(_moved))((NUMBERS[:, None] + moves).reshape(-1, 4))
    for derivative, values in ((found, ends.q), (missed[..., None, :], ends.missed[..., None])):
        values = np.asarray(values).reshape(3, 2, 4, -1)
        expected = np.swapaxes(values[:, 0] - values[:, 1], 1, 2) / (2 * step)
        # Third derivatives are below 30.
        np.testing.assert_allclose(derivative, expected, atol=30 / 6 * step**2 + 1e-8 / step)


@pytest.mark.slow
def test_derivatives_in_both_modes():
    for forwards, backwards in zip(*(derivative(NUMBERS) for derivative in _derivatives.values()), strict=True):
        np.testing.assert_allclose(forwards, backwards, atol=1e-9)


def _tree():
    """A floating base that carries a ball joint, and a joint that another one follows."""
    builder = jdyn.Builder("tree")
    builder.add_link("base", jdyn.Free(), mass=1.0, inertia=(1, 1, 1))
    builder.add_link("ball", jdyn.Ball(), parent="base", placement=(0.1, 0.2, 0.3), mass=1.0, inertia=(1, 1, 1))
    builder.add_link(
        "slide", jdyn.Prismatic((0, 1, 0)), parent="base", joint_name="slide", mass=1.0, inertia=(1, 1, 1),
        lower=-0.5, upper=0.5,
    )  # fmt: skip
    builder.add_link(
        "twin", jdyn.Prismatic((1, 0, 0)), parent="slide", mimic=jdyn.Mimic("slide", -2.0, 0.1), mass=1.0,
        inertia=(1, 1, 1), lower=-0.3, upper=0.9,
    )  # fmt: skip
    builder.add_frame("hand", "ball", (0.0, 0.0, 0.4))
    return builder.build()


@pytest.mark.slow
def test_several_targets_on_free_and_ball_joints():
    model = _tree()
    meant = model.integrate(model.neutral(), jnp.array([0.9, -1.2, 2.0, 0.3, -0.2, 1.0, -0.7, 1.1, 0.4, 0.15]))
    poses = [jdyn.frame_pose(model, meant, name) for name in ("base", "hand", "twin")]

    @jax.jit
    def errors(q):
        hand = jdyn.planning.FrameTarget("hand", poses[1]).checked(model)

        def error(e):
            return hand.error(model, model.integrate(q, e))[0]

        return hand.error(model, q)[1], jax.jacfwd(error)(jnp.zeros(model.nv))

    # At the target itself, too.
    for q in (model.neutral(), meant):
        np.testing.assert_allclose(*errors(q), atol=1e-12)

    @jax.jit
    def reach(q0):
        names = "base", "hand", "twin"
        pose, turned, place = (jdyn.planning.FrameTarget(name, X) for name, X in zip(names, poses, strict=True))
        return jdyn.inverse_kinematics(
            model, [pose, turned, jdyn.planning.FrameTarget("twin", place.target.translation)], q0
        )

    found = reach(model.neutral())
    assert found.result == jdyn.planning.Reach.met
    np.testing.assert_allclose(model.difference(found.q, meant), 0, atol=1e-10)


def test_limits_of_joints_that_follow():
    """The twin is at 0.1 − 2 q: it ends at q = −0.4 and 0.2, the slide itself at ±0.5."""
    model = _tree()
    lower, upper = model.room(model.neutral())
    np.testing.assert_array_equal(lower[:9], -np.inf)
    np.testing.assert_array_equal(upper[:9], np.inf)
    np.testing.assert_allclose([lower[9], upper[9]], [-0.4, 0.2], rtol=1e-14)


def test_a_weight_of_zero_leaves_a_component_free():
    """Two joints place the tip in the plane; of its pose they cannot have the turn as well."""
    pose = jdyn.pose((*TARGETS[0], 0.0))
    weight = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    found = jdyn.inverse_kinematics(ARM, [jdyn.planning.FrameTarget("tip", pose, weight)], GUESS)
    assert found.result == jdyn.planning.Reach.met
    np.testing.assert_allclose(found.q, _elbow(*TARGETS[0]), atol=1e-10)


def test_the_best_of_many_starts():
    """From its ends the arm gets stuck; half-way between them it finds the target."""
    target = [jdyn.planning.FrameTarget("tip", jnp.array([*TARGETS[0], 0.0]))]
    starts = jnp.array([[jnp.nan, 0.0], [0.1, 0.5], [-2.9, -0.2]])
    found = jdyn.best_inverse_kinematics(ARM, target, starts)
    assert found.result == jdyn.planning.Reach.met
    np.testing.assert_allclose(found.q, _elbow(*TARGETS[0]), atol=1e-10)
    nowhere = jdyn.best_inverse_kinematics(ARM, [jdyn.planning.FrameTarget("tip", jnp.array([2.0, 1.5, 0.0]))], starts)
    assert nowhere.result == jdyn.planning.Reach.nearest
    np.testing.assert_allclose(nowhere.missed, np.max(np.abs(1.7 * np.array([0.8, 0.6]) - [2, 1.5])), atol=1e-9)


@pytest.mark.parametrize(
    "targets, q0, message",
    [
        ([], GUESS, "targets: expected a list of one or more jdyn.planning.FrameTarget, got"),
        ([jdyn.planning.FrameTarget("hand", np.zeros(3))], GUESS, "no body or frame is called 'hand'"),
        ([jdyn.planning.FrameTarget("tip", np.zeros(2))], GUESS, r"target: expected shape \(3,\), got \(2,\)"),
        (
            [jdyn.planning.FrameTarget("tip", np.zeros(3), np.ones(6))],
            GUESS,
            r"weight: expected a scalar or shape \(3,\)",
        ),
        (
            [jdyn.planning.FrameTarget("tip", np.zeros(3))],
            jnp.zeros(3),
            r"q0: expected shape \(2,\) for 'arm', got \(3,\)",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_refused(targets, q0, message):
    with pytest.raises(ValueError, match=message):
        jdyn.inverse_kinematics(ARM, targets, q0)


def test_starts_are_rows():
    with pytest.raises(ValueError, match=r"starts: expected shape \(starts, 2\) for 'arm', one or more, got \(2,\)"):
        jdyn.best_inverse_kinematics(ARM, [jdyn.planning.FrameTarget("tip", np.zeros(3))], GUESS)


@pytest.mark.slow
def test_a_panda_reaches_what_it_can_reach():
    model, poses, starts = jdyn.load("panda"), 1000, 16
    meant = jax.vmap(model.random)(jax.random.split(jax.random.key(0), poses))
    keys = jax.random.split(jax.random.key(1), poses)

    def reach(lane):
        q, key = lane
        guesses = jax.vmap(model.random)(jax.random.split(key, starts))
        target = jdyn.planning.FrameTarget("flange", jdyn.frame_pose(model, q, "flange"))
        found = jdyn.best_inverse_kinematics(model, [target], guesses)
        return Reached(*found), jdyn.frame_pose(model, found.q, "flange"), target.target

    found, reached, target = jax.jit(lambda lanes: jax.lax.map(reach, lanes, batch_size=8))((meant, keys))
    q, limits = np.asarray(found.q), model.limits
    within = np.all((q >= np.asarray(limits.lower)) & (q <= np.asarray(limits.upper)), axis=1)
    off = np.max(np.abs(reached.translation - target.translation), axis=1)
    turned = np.max(np.abs(reached.rotation - target.rotation), axis=(1, 2))
    assert np.mean(within & (off < 1e-6) & (turned < 1e-6)) >= 0.999


@pytest.mark.slow
def test_derivatives_by_each_number_alone():
    """Of what is differentiated by one thing, all others stand still."""

    def reached(x, which):
        numbers = [x if which == i else NUMBERS[0, i] for i in range(4)]
        return _moved(jnp.stack([jnp.asarray(number) for number in numbers])).q

    both = _derivatives[jax.jacfwd](NUMBERS)[0][0]
    for which in (1, 2):
        alone = jax.jacfwd(lambda x, which=which: reached(x, which))(jnp.asarray(NUMBERS[0, which]))
        np.testing.assert_allclose(alone, both[:, which], atol=1e-9)


def test_entries_that_are_no_targets_are_refused():
    for targets in ([("hand", jnp.zeros(3))], [], jdyn.planning.FrameTarget(ARM.body_names[1], jnp.zeros(3))):
        with pytest.raises(ValueError, match=r"targets: expected a list of one or more jdyn\.planning\.FrameTarget"):
            jdyn.inverse_kinematics(ARM, targets, ARM.neutral())
