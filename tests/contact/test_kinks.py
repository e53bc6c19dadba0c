"""Derivatives across kinks of contact forces, in steps that do not end there."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.contact.kinks import Kinks
from tests.contact.scenes import ball, bouncing, box
from tests.contact.test_compliant_lanes_and_gradients import AT, END, RADIUS, T, elastic, height_after_a_bounce
from tests.simulation.test_steps_with_contact import motion

pytestmark = pytest.mark.fast_compile

REVERSE, FORWARD = (jax.grad, None), (jax.jacfwd, diffrax.ForwardMode())
SLOW, EXHAUSTIVE = pytest.mark.slow, pytest.mark.exhaustive
MODES = pytest.mark.parametrize(
    "mode", [pytest.param(REVERSE, marks=SLOW), pytest.param(FORWARD, marks=EXHAUSTIVE)], ids=["reverse", "forward"]
)


def simulated(height, stiffness, tolerance, adjoint=None, t1=T, **options):
    steps = diffrax.PIDController(rtol=tolerance, atol=1e-3 * tolerance)
    motion = jdyn.simulate(
        bouncing(), RADIUS + height[None], jnp.zeros(1), t1, contact=elastic(stiffness), saveat=END,
        stepsize_controller=steps, adjoint=adjoint, **options,
    )  # fmt: skip
    return motion.q[0, 0] - RADIUS


def missed(found, height=AT[0]):
    """By derivatives by height and stiffness, relative."""
    expected = jax.grad(height_after_a_bounce, (0, 1))(height, AT[1])
    return np.abs(np.array(found) / np.array(expected) - 1)


def along_z(speeds):
    """Twists."""
    return jnp.zeros((len(speeds), 6)).at[:, 5].set(speeds)


@pytest.mark.slow
def test_the_instant_is_that_of_a_flight_that_ends_in_a_spring():
    """Flight and oscillation in closed form, forwards and in reverse. A time s after the kink the distance is taken for
    a cubic one, off by u s (ω s)⁴ / 120 at a speed u, and by less for gravity."""
    rng, omega, h, g = np.random.default_rng(0), 100.0, 1e-3, 9.81
    when, speed = rng.uniform(0, 1, 50), rng.uniform(0.5, 2, 50)
    s, sag = (1 - when) * h, g / omega**2
    gaps = (
        speed * when * h - g * (when * h) ** 2 / 2,
        -speed / omega * np.sin(omega * s) - sag * (1 - np.cos(omega * s)),
    )
    rates = -speed + g * when * h, -speed * np.cos(omega * s) - omega * sag * np.sin(omega * s)
    gaps, twists, known = tuple(map(jnp.asarray, gaps)), tuple(map(along_z, rates)), jnp.ones(50, bool)
    normals = (along_z(np.ones(50))[:, 3:],) * 2
    off = 2 * (omega * h) ** 4 / 120
    begins = Kinks.between(gaps, normals, twists, jnp.array(h), known)
    np.testing.assert_allclose(begins.when, when, rtol=0, atol=off)
    np.testing.assert_allclose(begins.touching, 1 - when, rtol=0, atol=off)
    np.testing.assert_allclose(begins.middle, (1 + when) / 2, rtol=0, atol=off)
    np.testing.assert_allclose(begins.twists[:, 5], rates[0] + begins.when * (rates[1] - rates[0]), rtol=1e-12)
    ceases = Kinks.between(gaps[::-1], normals, tuple(-twist for twist in twists[::-1]), jnp.array(h), known)
    np.testing.assert_allclose(ceases.when, 1 - when, rtol=0, atol=off)
    np.testing.assert_allclose(ceases.touching, ceases.when)
    np.testing.assert_allclose(ceases.middle, ceases.when / 2)
    assert begins.exist.all() and ceases.exist.all() and not (begins.always | begins.never).any()
    unknown = Kinks.between(gaps, normals, twists, jnp.array(h), ~known)
    assert not (unknown.exist | unknown.always | unknown.never).any() and not unknown.touching.any()


def test_points_touch_throughout_or_not_at_all_unless_they_may_have_left_and_come_back():
    gaps = tuple(jnp.array(x) for x in ([-1.0, -1, -1, 1, 1, 0], [-2.0, -2, -1, 1, 1, 0]))
    twists = tuple(map(along_z, (np.array([-1.0, -1, 1, 1, -1, 1]), np.array([-1.0, 1, -1, 1, 1, 1]))))
    normals = (along_z(np.ones(6))[:, 3:],) * 2
    kinks = Kinks.between(gaps, normals, twists, jnp.array(0.1), jnp.ones(6, bool))
    assert kinks.always.tolist() == [True, True, False, False, False, False]
    assert kinks.never.tolist() == [False, False, False, True, False, True]
    assert not kinks.exist.any()


@MODES
def test_derivatives_of_a_bounce_follow_the_tolerance(mode):
    """Off by a share of (ω h)³ where a step of length h has a kink, and that by the stiffness, of the 10 ms of contact,
    by several times as much. h goes about with the fourth root of the tolerance, so that a hundredth of that makes a
    thirtieth of this, and less where steps happen to end at touches. With slopes as stages have them they are off by
    0.2 to 0.7, and by 20 where a step that ends in the ground has a stage above it, as from the last height at
    1e-5."""
    derivatives, adjoint = mode
    program = jax.jit(derivatives(functools.partial(simulated, adjoint=adjoint), (0, 1)))
    for tolerance, off in ((1e-4, 0.1), (1e-5, 1e-3), (1e-6, 1e-3), (1e-8, 3e-5)):
        for height in (0.195, 0.2, 0.22, 0.24, 0.247):
            by_height, by_stiffness = missed(program(jnp.array(height), AT[1], tolerance), height)
            assert by_height < off and by_stiffness < 10 * off, (tolerance, height)


@pytest.mark.slow
@pytest.mark.exhaustive
@MODES
def test_derivatives_of_a_bounce_in_convex_steps(mode):
    """Off by a share of ω h where a step of length h has a kink. With slopes as steps have them they are off by 4 and 9
    at 1e-4, and by 1.5 and 3 at 1e-6."""
    derivatives, adjoint = mode
    ground, ball = (
        jdyn.contact.Material(jnp.inf, 0.0, 0.0),
        functools.partial(jdyn.contact.Material, dissipation=0.0, friction=0.0),
    )

    def end(height, stiffness, tolerance):
        contact = jdyn.ConvexContact(material=ball(stiffness), materials={"ground": ground})
        return jdyn.simulate(
            bouncing(), RADIUS + height[None], jnp.zeros(1), T, contact=contact, saveat=END, adjoint=adjoint,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance),
        ).q[0, 0]  # fmt: skip

    program = jax.jit(derivatives(end, (0, 1)))
    for tolerance, off in ((1e-4, 0.1), (1e-6, 5e-3)):
        for height in (0.2, 0.22, 0.24):
            by_height, by_stiffness = missed(program(jnp.array(height), AT[1], tolerance), height)
            assert by_height < off and by_stiffness < 3 * off, (tolerance, height)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("solver", "off"),
    [
        (diffrax.Tsit5(), 1e-4),
        (diffrax.Dopri8(), 1e-4),
        (jdyn.solvers.Rodas5P(), 1e-3),
        (jdyn.solvers.ROSJ43(), 1e-3),
    ],
    ids=lambda x: type(x).__name__,
)
def test_derivatives_of_a_bounce_by_other_methods(solver, off):
    found = jax.jit(jax.grad(functools.partial(simulated, solver=solver)))(*AT, 1e-7)
    assert missed([found])[0] < off


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("level", "direction", "kept"),
    [(-1e-4, "falling", 1.0), (3e-4, "rising", 0.5)],
)
def test_events_that_end_a_step_across_a_kink(level, direction, kept):
    """Just behind the touch, where nothing changes, and behind the release, where half of the speed is lost."""

    def reset(t, y):
        return jdyn.State(y.q, kept * y.v, y.parts)

    passing = jdyn.Event(lambda t, y: y.q[0] - RADIUS - level, reset=reset, direction=direction)
    by_reverse, by_forward = (
        jax.jit(derivatives(functools.partial(simulated, adjoint=adjoint, events=[passing]), (0, 1)))(*AT, 1e-7)
        for derivatives, adjoint in (REVERSE, FORWARD)
    )
    np.testing.assert_allclose(by_reverse, by_forward, rtol=1e-6)
    if kept == 1:
        assert missed(by_reverse)[0] < 1e-5


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "mode", [REVERSE, pytest.param(FORWARD, marks=pytest.mark.exhaustive)], ids=["reverse", "forward"]
)
def test_derivatives_across_kinks_and_events(mode):
    """Of a ball that is lifted as soon as it has sunk a little; beside differences of the fourth order."""

    def end(heights, tolerance, adjoint=None):
        steps = diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance)
        return motion(heights, 300, saveat=END, stepsize_controller=steps, adjoint=adjoint).q[0, 0]

    (derivatives, adjoint), heights = mode, jnp.array([0.3])
    found = jax.jit(derivatives(functools.partial(end, adjoint=adjoint)))(heights, 1e-5)
    np.testing.assert_allclose(found, differences(jax.jit(end), heights, 1e-11), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_lanes_and_time_that_runs_backwards():
    """A bounce without losses is the same in reverse."""
    heights, by_height = jnp.array([0.195, 0.21, 0.24]), jax.grad(height_after_a_bounce)
    expected = [by_height(height, AT[1]) for height in heights]
    lanes = jax.jit(jax.vmap(jax.grad(lambda height, t1: simulated(height, AT[1], 1e-8, t1=t1)), (0, None)))
    for t1 in (T, -T):
        np.testing.assert_allclose(lanes(heights, t1), expected, rtol=1e-5)


def spun(x, tolerance, adjoint=None, contact=jdyn.CompliantContact):
    """Where a ball that spins bounces to, on a ground with friction; the last numbers are its speed and the time."""
    height, spin, friction, dissipation, speed, t1 = x
    v0 = jnp.zeros(6).at[1].set(spin).at[3].set(0.3).at[5].set(speed)
    law = contact(material=jdyn.contact.Material(2e4, dissipation, friction), slip_speed=0.1)
    motion = jdyn.simulate(
        ball(), ball().neutral().at[2].set(height), v0, t1, contact=law, saveat=END, adjoint=adjoint,
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance),
    )  # fmt: skip
    return motion.q[0] @ jnp.array([1.0, 0.0, 0.5, 0.0, 0.3, 0.0, 0.0])


def differences(value, at, tolerance, share=1e-3, count=None):
    """Of order 4, by so many of the numbers, each changed by a share of itself."""
    weights = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
    steps = share * np.diag(at)[:count]
    return [sum(w * value(at + n * step, tolerance) for n, w in weights.items()) / step.sum() for step in steps]


def tumbled(x, tolerance, adjoint=None):
    """Where a box gets to that falls on an edge."""
    height, turned, friction, dissipation = x
    q0 = jnp.stack([*jnp.zeros(2), height, jnp.cos(turned / 2), jnp.sin(turned / 2), *jnp.zeros(2)])
    contact = jdyn.CompliantContact(material=jdyn.contact.Material(2e4, dissipation, friction), slip_speed=0.1)
    motion = jdyn.simulate(
        box(), q0, jnp.zeros(6), 0.2, contact=contact, saveat=END, adjoint=adjoint,
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance),
    )  # fmt: skip
    return motion.q[0] @ jnp.array([0.0, 1.0, 0.5, 0.0, 0.3, 0.0, 0.0])


SPINNING, BACK_IN_TIME = (0.2, 20.0, 0.4, 0.1, 0.0, 0.4), (0.12, 20.0, 0.4, 0.1, 1.0, -0.1)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("end", "starts", "mode"),
    [
        (spun, (SPINNING, BACK_IN_TIME), REVERSE),
        (spun, (SPINNING, BACK_IN_TIME), FORWARD),
        (tumbled, ((0.3, 0.6, 0.4, 0.1),), REVERSE),
    ],
    ids=["ball", "ball, forward", "box"],
)
def test_derivatives_across_kinks_with_friction(end, starts, mode):
    """Beside differences of order 4 at a tighter tolerance."""
    derivatives, adjoint = mode
    value, derivative = jax.jit(end), jax.jit(derivatives(functools.partial(end, adjoint=adjoint)))
    for at in map(jnp.array, starts):
        expected = differences(value, at, 1e-11, count=4)
        np.testing.assert_allclose(derivative(at, 1e-7)[:4], expected, rtol=1e-4, atol=1e-7)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivatives_across_kinks_with_friction_in_convex_steps():
    """By height and spin; with slopes as steps have them that by the height is off by 0.04, at 1e-5 by 0.4."""
    at, end = jnp.array(SPINNING), functools.partial(spun, contact=jdyn.ConvexContact)
    found = jax.jit(jax.grad(end))(at, 1e-6)
    expected = differences(jax.jit(end), at, 1e-8, 3e-3, 2)
    np.testing.assert_allclose(found[:2], expected, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_rows_of_the_nearest_pairs_have_the_same_derivatives():
    """Two balls that meet, and others that are far away and are left out."""
    builder = jdyn.Builder("balls")
    for i in range(4):
        builder.add_link(f"ball{i}", jdyn.Prismatic((1, 0, 0)), mass=1.0 + i, inertia=1e-3 * np.ones(3))
        builder.add_shape(f"ball{i}", "sphere", 0.1, role="collision")
    model, q0 = builder.build(), jnp.array([0.0, 0.35, 3.0, 6.0])

    def end(speed, nearest):
        contact = jdyn.CompliantContact(material=jdyn.contact.Material(1e4, 0.1, 0.0), nearest=nearest)
        v0 = jnp.zeros(4).at[0].set(speed)
        steps = diffrax.PIDController(rtol=1e-6, atol=1e-8)
        return jdyn.simulate(model, q0, v0, 0.2, contact=contact, saveat=END, stepsize_controller=steps).q[0, 1]

    found = [jax.jit(jax.grad(functools.partial(end, nearest=nearest)))(1.0) for nearest in (None, 1)]
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_law_that_begins_with_a_jump_asks_for_steps_that_end_there():
    def end(height, tolerance, speed, t1, located, adjoint=None):
        contact = jdyn.CompliantContact(
            law=jdyn.contact.SpringDamper(), material=jdyn.contact.Material(1e4, 1e-3, 0.0), located=located
        )  # fmt: skip
        return jdyn.simulate(
            bouncing(), height[None], speed[None], t1, contact=contact, saveat=END, adjoint=adjoint,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance),
        ).q[0, 0]  # fmt: skip

    located = functools.partial(end, located=True)
    value, slope = jax.jit(located), jax.jit(jax.grad(located))
    # Backwards in time the force ends with a jump.
    for height, *start in map(jnp.array, ((0.3, 0.0, 0.5), (0.12, 1.0, -0.1))):
        expected = (value(height + 1e-4, 1e-10, *start) - value(height - 1e-4, 1e-10, *start)) / 2e-4
        np.testing.assert_allclose(slope(height, 1e-8, *start), expected, rtol=1e-4)
    for derivatives, adjoint in (REVERSE, FORWARD):
        with pytest.warns(jdyn.contact.ContactWarning, match="located=True"):
            jax.jit(derivatives(functools.partial(end, located=False, adjoint=adjoint))).trace(height, 1e-6, *start)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_forward_mode_has_the_motion_of_plain_steps():
    """A ball on a rod meets the ground. The rod moves ends of steps, which the rate that a step remembers of the one
    before does not know: steps that find it anew end elsewhere, by 2e-4 at this tolerance."""
    builder = jdyn.Builder("hung")
    builder.add_link("across", jdyn.Prismatic((1, 0, 0)), mass=0.1, inertia=1e-3 * np.ones(3))
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), parent="across", mass=1.0, inertia=1e-2 * np.ones(3))
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    model, rod = builder.build(), jdyn.constraints.Distance("ball", "world", length=1.0, point_b=(0.0, 0.0, 1.0))
    contact = jdyn.CompliantContact(material=jdyn.contact.Material(1e4, 0.1, 0.3), slip_speed=0.1)

    def end(angle, adjoint=None):
        return jdyn.simulate(
            model, jnp.stack([jnp.sin(angle), 1 - jnp.cos(angle)]), jnp.zeros(2), 0.8, contact=contact,
            constraints=[rod], solver=diffrax.Tsit5(), saveat=END, adjoint=adjoint,
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
        ).q[0, 0]  # fmt: skip

    angle = jnp.array(0.9)
    forwards, _ = jax.jit(
        lambda angle: jax.jvp(lambda x: end(x, diffrax.ForwardMode()), (angle,), (jnp.ones_like(angle),))
    )(angle)
    np.testing.assert_allclose(forwards, jax.jit(end)(angle), rtol=1e-9)
