"""Derivatives through compliant contact against closed forms, and lanes that differ."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.contact.scenes import bouncing

pytestmark = pytest.mark.fast_compile

G, RADIUS, T = 9.81, 0.1, 0.6
END = diffrax.SaveAt(t1=True)


def elastic(stiffness, **options):
    ground = jdyn.contact.Material(jnp.inf, 0.0, 0.0)
    material = jdyn.contact.Material(stiffness, 0.0, 0.0)
    return jdyn.CompliantContact(material=material, materials={"ground": ground}, **options)


def height_after_a_bounce(height, stiffness):
    speed, omega = jnp.sqrt(2 * G * height), jnp.sqrt(stiffness)
    left = T - speed / G - 2 * (jnp.pi - jnp.arctan(speed * omega / G)) / omega
    return speed * left - G * left**2 / 2


def simulated(height, stiffness, tolerance=1e-8, adjoint=None, **options):
    steps = diffrax.PIDController(rtol=tolerance, atol=1e-3 * tolerance)
    motion = jdyn.simulate(
        bouncing(), RADIUS + height[None], jnp.zeros(1), T, contact=elastic(stiffness, **options), saveat=END,
        stepsize_controller=steps, adjoint=adjoint,
    )  # fmt: skip
    return motion.q[0, 0] - RADIUS


AT = jnp.array(0.2), jnp.array(1e5)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_derivatives_through_a_bounce_in_closed_form(mode):
    """They follow the tolerance as the motion does, since steps end at kinks. That by the stiffness is of the 10 ms of
    0.6 s in which the ball touches, which leaves 100 times the tolerance."""
    expected = np.array(jax.grad(height_after_a_bounce, (0, 1))(*AT))
    adjoint, derivatives = (None, jax.grad) if mode == "reverse" else (diffrax.ForwardMode(), jax.jacfwd)
    program = jax.jit(derivatives(functools.partial(simulated, adjoint=adjoint, located=True), (0, 1)))
    for tolerance in (1e-5, 1e-8):
        np.testing.assert_allclose(program(*AT, tolerance), expected, rtol=100 * tolerance)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_located_kinks_are_events_of_touch_and_release():
    motion = jdyn.simulate(
        bouncing(), jnp.array([0.3]), jnp.zeros(1), T, contact=elastic(1e5, located=True), stepsize_controller=
        diffrax.PIDController(rtol=1e-9, atol=1e-12),
    )  # fmt: skip
    speed, omega = np.sqrt(2 * G * 0.2), np.sqrt(1e5)
    touch = speed / G
    release = touch + 2 * (np.pi - np.arctan(speed * omega / G)) / omega
    np.testing.assert_allclose(motion.events.ts[:2], [touch, release], rtol=1e-8)
    assert motion.events.which[:3].tolist() == [0, 1, -1]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_reach_changes_no_motion_and_gives_derivatives_before_contact():
    """A ball that has not yet come down: what the ground will do shows in derivatives with a reach, upwards."""

    def end(stiffness, reach):
        contact = elastic(stiffness, gradient_reach=reach)
        return jdyn.simulate(bouncing(), jnp.array([0.2]), jnp.zeros(1), 0.1, contact=contact, saveat=END).q[0, 0]

    (value, slope), (still, none) = (jax.value_and_grad(end)(jnp.array(1e4), reach) for reach in (0.02, None))
    np.testing.assert_allclose(value, still, rtol=1e-14)
    assert slope > 0 and none == 0
    with pytest.raises(ValueError, match="Rodas5P: it needs exact Jacobians of contact"):
        jdyn.simulate(
            bouncing(), jnp.array([0.2]), jnp.zeros(1), 0.1, contact=elastic(1e4, gradient_reach=0.1),
            solver=jdyn.solvers.Rodas5P(),
        )  # fmt: skip


@pytest.mark.slow
def test_a_lane_that_fails_spoils_no_other_and_depths_at_the_start_are_known():
    """Stiffness differs between lanes; the one of the third is not a number, nor is the force of the last."""
    stiffness = jnp.array([1e4, 1e5, jnp.nan, 1e5, 1e5])
    heights = jnp.array([[0.3], [0.3], [0.3], [0.09], [0.3]])
    law, forces = jax.vmap(elastic)(stiffness), jdyn.control.Constant(jnp.zeros((5, 1)).at[4].set(jnp.nan))
    motions = jdyn.simulate_batch(
        bouncing(), heights, jnp.zeros((5, 1)), T, contact=law, controller=forces, saveat=END,
        in_axes={"q0": 0, "v0": 0, "contact": 0, "controller": 0},
        stepsize_controller=diffrax.PIDController(rtol=1e-9, atol=1e-12),
    )  # fmt: skip
    assert motions.success.tolist() == [True, True, False, True, False]
    expected = [height_after_a_bounce(0.2, k) for k in (1e4, 1e5)]
    np.testing.assert_allclose(motions.q[:2, 0, 0] - RADIUS, expected, atol=1e-7)
    np.testing.assert_allclose(motions.stats["start_depth"][3], 0.01)


def dropped(height, tolerance):
    """Tolerances are traced, so that all of them share a program."""
    contact = jdyn.CompliantContact(material=jdyn.contact.Material(2e4, 0.2, 0.0))
    return jdyn.simulate(
        bouncing(), jnp.array([height]), jnp.zeros(1), 1.0, contact=contact, solver=diffrax.Dopri8(),
        saveat=diffrax.SaveAt(steps=True), max_steps=2000,
        stepsize_controller=diffrax.PIDController(rtol=jnp.array(tolerance), atol=jnp.array(1e-2 * tolerance)),
    )  # fmt: skip


def test_deep_starts_are_warned_of():
    with pytest.warns(jdyn.contact.ContactWarning, match="overlap by 0.05 m at the start"):
        dropped(0.05, 1e-4)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6])
def test_no_step_goes_through_the_ground_unseen(tolerance):
    """Stages of an explicit method that meet the ground may have no weight, and throw those behind them out of it. What
    falls 0.3 m goes √(2 g h m / k) deep, and a little."""
    motion = dropped(0.4, tolerance)
    assert RADIUS - jnp.nanmin(motion.q) < 1.1 * np.sqrt(2 * G * 0.3 / 1e4) + G / 1e4
