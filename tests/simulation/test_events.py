"""Events against closed forms."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipk

import jdyn
from jdyn.simulation import Result, SimulationError

pytestmark = pytest.mark.fast_compile

TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-12)


def mover(joint, **properties):
    builder = jdyn.Builder("mover")
    builder.add_link("body", joint, mass=1.0, **properties)
    return builder.build()


BALL = mover(jdyn.Prismatic((0, 0, 1)))
PENDULUM = mover(jdyn.Revolute((0, 1, 0)), com=(0, 0, -1.0), inertia=(1e-9, 1e-9, 1e-9))


def bounce(restitution):
    return jdyn.Event(lambda t, y: y.q[0], lambda t, y: dataclasses.replace(y, v=-restitution * y.v))


def dropped(height, gravity, restitution, t1=3.5, **options):
    none = jnp.zeros_like(gravity)
    model = BALL.with_gravity(jnp.stack([none, none, -gravity]))
    # Exact for parabolas, and a smaller program than the default's.
    options = dict(events=[bounce(restitution)], solver=diffrax.Tsit5()) | options
    return jdyn.simulate(model, height[None], jnp.zeros(1), t1, **options)


def bounces(height, gravity, restitution, count=5):
    """Times of the bounces and velocities after them."""
    t, v = jnp.sqrt(2 * height / gravity), restitution * jnp.sqrt(2 * gravity * height)
    times, speeds = [t], [v]
    for _ in range(count - 1):
        times.append(times[-1] + 2 * speeds[-1] / gravity)
        speeds.append(restitution * speeds[-1])
    return jnp.stack(times), jnp.stack(speeds)


def flight(height, gravity, restitution, t, count=5):
    """Height and velocity at `t`, after that many bounces."""
    times, speeds = bounces(height, gravity, restitution, count)
    s = t - times[-1]
    return jnp.stack([speeds[-1] * s - gravity * s**2 / 2, speeds[-1] - gravity * s])


POINT = jnp.array(1.3), jnp.array(9.81), jnp.array(0.8)


@pytest.fixture(scope="module")
def fall():
    """Of the ball: times and velocities of five bounces, the state at 3.1 s, and derivatives of all."""

    def observed(*point):
        trajectory = dropped(*point, saveat=jnp.array([0.1, 3.1]))
        events = trajectory.events
        seen = jnp.concatenate([events.ts[:5], events.v[:5, 0], trajectory.q[1], trajectory.v[1]])
        return seen, (seen, trajectory)

    return jax.jit(jax.jacrev(observed, (0, 1, 2), has_aux=True))(*POINT)


def expected(*point):
    return jnp.concatenate([*bounces(*point), flight(*point, 3.1)])


@pytest.mark.slow
def test_a_bouncing_ball(fall):
    _, (seen, trajectory) = fall
    np.testing.assert_allclose(seen, expected(*POINT), rtol=0, atol=1e-12)
    assert trajectory.success and trajectory.events.which[:5].tolist() == [0] * 5
    assert np.all(np.isnan(trajectory.events.ts[-1])) and trajectory.events.which[-1] == -1


def test_derivatives_go_through_five_bounces(fall):
    for found, exact in zip(fall[0], jax.jacfwd(expected, (0, 1, 2))(*POINT), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_forward_mode_goes_through_events():
    def height(restitution):
        return dropped(*POINT[:2], restitution, saveat=[3.1], adjoint=diffrax.ForwardMode()).q[0, 0]

    exact = jax.jacfwd(lambda e: flight(*POINT[:2], e, 3.1)[0])(POINT[2])
    np.testing.assert_allclose(jax.jit(jax.jacfwd(height))(POINT[2]), exact, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_every_lane_has_events_of_its_own():
    heights = jnp.linspace(0.5, 3.0, 80)
    lanes = jax.jit(jax.vmap(lambda h: dropped(h, *POINT[1:], t1=2.0, throw=False)))(heights)
    for k in (0, 40, 79):
        times = bounces(heights[k], *POINT[1:], 8)[0]
        count = int(np.sum(times < 2.0))
        np.testing.assert_allclose(lanes.events.ts[k, :count], times[:count], rtol=1e-12)
        assert np.all(np.isnan(lanes.events.ts[k, count:]))
    total = jax.jit(
        jax.grad(lambda h: jnp.sum(jax.vmap(lambda h: dropped(h, *POINT[1:], t1=2.0, throw=False).q[-1])(h)))
    )
    single = jax.grad(lambda h: flight(h, *POINT[1:], 2.0, int(np.sum(bounces(h, *POINT[1:], 8)[0] < 2.0)))[0])
    np.testing.assert_allclose(total(heights)[40], single(heights[40]), rtol=1e-9)


@pytest.mark.slow
def test_bounces_that_accumulate_end_with_a_code():
    trajectory = dropped(jnp.array(0.1), jnp.array(9.81), jnp.array(0.3), throw=False, max_events=20)
    assert trajectory.result == Result.max_events
    # Where they accumulate: t₁ (1 + e) / (1 − e).
    np.testing.assert_allclose(trajectory.stats["t_reached"], np.sqrt(0.2 / 9.81) * 1.3 / 0.7, rtol=1e-6)
    with pytest.raises(SimulationError, match="max_events have happened"):
        dropped(jnp.array(0.1), jnp.array(9.81), jnp.array(0.3), max_events=20)


@pytest.mark.slow
def test_an_event_may_end_the_simulation():
    floor = jdyn.Event(lambda t, y: y.q[0], terminate=True)
    trajectory = jdyn.simulate(BALL, [1.0], [0.0], 5.0, events=[floor], saveat=[0.2, 1.0])
    assert trajectory.result == Result.event and trajectory.success
    np.testing.assert_allclose(trajectory.events.ts[0], np.sqrt(2 / 9.81), rtol=1e-13)
    assert np.all(np.isfinite(trajectory.q[0])) and np.all(np.isnan(trajectory.q[1]))


@pytest.mark.parametrize("known_from, happens", [(0.05, True), (0.5, False)])
def test_what_is_not_a_number_does_not_fall(known_from, happens):
    """A condition that is known too late has not been seen above zero."""
    floor = jdyn.Event(lambda t, y: jnp.where(t < known_from, jnp.nan, y.q[0] - 0.9), terminate=True)
    trajectory = jdyn.simulate(BALL, [1.0], [0.0], 0.6, events=[floor], solver=diffrax.Tsit5())
    assert (trajectory.result == Result.event) == happens
    if happens:
        np.testing.assert_allclose(trajectory.events.ts[0], np.sqrt(0.2 / 9.81), rtol=1e-12)


@pytest.mark.slow
def test_a_pendulum_hits_a_wall():
    """At the bottom, where the closed form of its period says when (Landau and Lifshitz, Mechanics, section 11)."""
    amplitude, restitution = 0.8, 0.9
    wall = jdyn.Event(
        lambda t, y: -y.q[0], lambda t, y: dataclasses.replace(y, v=-restitution * y.v), direction="falling"
    )
    other = jdyn.Event(lambda t, y: y.q[0] - 10, terminate=True, direction="rising")
    trajectory = jdyn.simulate(
        PENDULUM, [-amplitude], [0.0], 2.0, events=[other, wall], stepsize_controller=TIGHT, solver=diffrax.Dopri8()
    )
    quarter = ellipk(np.sin(amplitude / 2) ** 2) / np.sqrt(9.81)
    speed = 2 * np.sqrt(9.81) * np.sin(amplitude / 2)
    swing = 2 * np.arcsin(restitution * speed / (2 * np.sqrt(9.81)))
    half = 2 * ellipk(np.sin(swing / 2) ** 2) / np.sqrt(9.81)
    assert trajectory.events.which[:2].tolist() == [1, 1]
    np.testing.assert_allclose(trajectory.events.ts[:2], [quarter, quarter + half], rtol=1e-8)
    np.testing.assert_allclose(trajectory.events.v[0, 0], -restitution * speed, rtol=1e-8)


class Latch(jdyn.control.DynamicController):
    """Once it is shut, a stiff damped spring holds the body where it was caught."""

    stiffness: jax.Array

    def start(self, t, q, v):
        return {"shut": jnp.zeros_like(t), "where": jnp.zeros_like(q)}

    def force(self, t, q, v, memory):
        return -memory["shut"] * (self.stiffness * (q - memory["where"]) + 2 * jnp.sqrt(self.stiffness) * v)


@pytest.mark.slow
def test_a_latch_catches_the_ball():
    def caught(t, y):
        return jdyn.State(y.q, y.v, {"controller": {"shut": jnp.ones_like(t), "where": y.q}})

    catch = jdyn.Event(lambda t, y: y.q[0] - 0.5 + 10 * y.parts["controller"]["shut"], caught)
    latch = Latch(jnp.array(400.0))
    trajectory = jdyn.simulate(
        BALL, [1.0], [0.0], 3.0, controller=latch, events=[catch], stepsize_controller=TIGHT, solver=diffrax.Dopri8()
    )
    assert np.sum(np.isfinite(trajectory.events.ts)) == 1
    # Critically damped: e(t) = e∞ + (c₁ + c₂ s) exp(−ω s), where the spring carries the weight.
    s = trajectory.ts - trajectory.events.ts[0]
    sag, omega, speed = -9.81 / 400, 20.0, -np.sqrt(9.81)
    exact = 0.5 + sag + (-sag + (speed - omega * sag) * s) * np.exp(-omega * s)
    np.testing.assert_allclose(trajectory.q[:, 0][s > 0], exact[s > 0], rtol=0, atol=1e-8)
    shut = trajectory.parts["controller"]["shut"]
    assert shut[0] == 0 and shut[-1] == 1


def test_steps_of_constant_length_go_on_as_planned():
    trajectory = dropped(
        *POINT, t1=1.0, stepsize_controller=diffrax.ConstantStepSize(), dt0=0.1, saveat=diffrax.SaveAt(steps=True),
        max_steps=30,
    )  # fmt: skip
    first = float(bounces(*POINT)[0][0])
    ends = trajectory.ts[np.isfinite(trajectory.ts)]
    np.testing.assert_allclose(ends, np.sort([*np.linspace(0.1, 1, 10), first]), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"direction": "both", "terminate": True}, "direction: expected 'falling' or 'rising', got 'both'"),
        ({}, "reset: expected a function"),
    ],
)
def test_wrong_events_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        jdyn.Event(lambda t, y: y.q[0], **arguments)


def test_a_reset_returns_a_state():
    event = jdyn.Event(lambda t, y: y.q[0], lambda t, y: dataclasses.replace(y, v=jnp.zeros(3)))
    with pytest.raises(ValueError, match="reset: expected a state like the one that it is given"):
        jdyn.simulate(BALL, [1.0], [0.0], 1.0, events=[event])


@pytest.mark.slow
def test_an_event_that_ends_a_simulation_with_its_last_step_is_what_ended_it():
    model = jdyn.load("pendulum")
    below = jdyn.Event(lambda t, y: y.q[0] - 0.5, terminate=True)

    def steps(max_steps):
        motion = jdyn.simulate(model, [1.0], [0.0], 2.0, events=(below,), max_steps=max_steps, throw=False)
        return motion.result, motion.stats["accepted_steps"] + motion.stats["rejected_steps"]

    result, tried = steps(1000)
    assert result == jdyn.Result.event
    assert steps(int(tried))[0] == jdyn.Result.event and steps(int(tried) - 1)[0] == jdyn.Result.max_steps
