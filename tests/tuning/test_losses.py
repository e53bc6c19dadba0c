"""Losses of motions, against closed forms: step responses of the second order, e'' + 2 ζ ω e' + ω² e = 0."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy.integrate import quad

import jdyn
from jdyn import losses

pytestmark = pytest.mark.fast_compile

OMEGA, TIMES = 3.0, np.linspace(0, 8, 4001)


def wheel():
    """A wheel of unit inertia."""
    builder = jdyn.Builder("wheel", gravity=(0, 0, 0))
    builder.add_link("wheel", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=(1.0, 1.0, 1.0))
    return builder.build()


WHEEL = wheel()


def motion(e, de, times=TIMES, system=WHEEL):
    """With the error e to a target at 1, as `simulate` would return it."""
    times = jnp.asarray(times)
    rows = 1 - e(times)[:, None], -de(times)[:, None]
    return jdyn.Trajectory(times, *rows, {}, None, 0, {}).with_system(system)  # pyright: ignore


def underdamped(zeta):
    damped, decay = OMEGA * np.sqrt(1 - zeta**2), zeta * OMEGA

    def e(t):
        return np.exp(-decay * t) * (np.cos(damped * t) + decay / damped * np.sin(damped * t))

    def de(t):
        return -(OMEGA**2) / damped * np.exp(-decay * t) * np.sin(damped * t)

    return e, de


@pytest.mark.parametrize("zeta", [0.2, 0.5, 0.9])
def test_overshoot_is_that_of_the_damping_ratio(zeta):
    found = losses.overshoot(motion(*underdamped(zeta)), jnp.ones(1))
    # Rows 2 ms apart meet the peak to (ω h)² / 8.
    assert float(found) == pytest.approx(np.exp(-np.pi * zeta / np.sqrt(1 - zeta**2)), rel=5e-6)


def test_without_overshoot_or_distance_there_is_none():
    target = jnp.ones(1)
    assert losses.overshoot(motion(lambda t: np.exp(-t), lambda t: -np.exp(-t)), target) == 0
    still = motion(lambda t: 0 * t, lambda t: 0 * t)

    def loss(shift):
        return losses.overshoot(dataclasses.replace(still, q=still.q + shift * 0), target)

    assert losses.overshoot(still, target) == 0 and jax.grad(loss)(1.0) == 0


def test_a_start_at_the_target_up_to_rounding_is_no_distance_to_go_beyond():
    """0.1 + 0.2 is 5.6e-17 more than 0.3: a motion of 0.03 from there is not 5e14 distances long."""
    swing = motion(lambda t: 0.3 - (0.1 + 0.2) + 0.03 * np.sin(t), lambda t: 0.03 * np.cos(t))
    assert losses.overshoot(swing, jnp.ones(1)) == 0


@pytest.mark.parametrize("rate", [0.8, 2.0])
def test_settling_time_of_an_exponential_is_its_logarithm(rate):
    decaying = motion(lambda t: np.exp(-rate * t), lambda t: -rate * np.exp(-rate * t))
    found = losses.settling_time(decaying, jnp.ones(1), band=0.02)
    # Of a logistic function of time, the integral is the time of its middle.
    assert float(found) == pytest.approx(np.log(50) / rate, abs=1e-4)


def test_settling_time_of_an_oscillation_is_its_last_entry():
    """Where the envelope of the peaks, e^(-ζ ω t), is what is to come."""
    e, de = underdamped(0.2)
    outside = TIMES[np.abs(e(TIMES)) > 0.1][-1]
    found = losses.settling_time(motion(e, de), jnp.ones(1), band=0.1, softness=1e-3)
    assert float(found) == pytest.approx(outside, abs=0.01)
    # Looking back from peaks, the default is within half a period.
    assert float(losses.settling_time(motion(e, de), jnp.ones(1), band=0.1)) == pytest.approx(outside, abs=0.5)


def test_what_never_settles_takes_all_its_time():
    far = motion(lambda t: 1 + 0 * t, lambda t: 0 * t)
    assert float(losses.settling_time(far, jnp.ones(1), band=0.02)) == pytest.approx(8.0)
    here = motion(lambda t: 0 * t, lambda t: 0 * t)
    assert float(losses.settling_time(here, jnp.ones(1), band=0.02)) == pytest.approx(0, abs=1e-12)


def test_integrals_are_those_of_closed_forms():
    zeta = 0.5
    e, de = underdamped(zeta)
    pd = jdyn.PD(WHEEL, jnp.ones(1), kp=OMEGA**2, kd=2 * zeta * OMEGA)

    def tau(t):
        return OMEGA**2 * e(t) + 2 * zeta * OMEGA * de(t)

    def integral(function):
        return quad(function, 0, 8, epsabs=1e-11, limit=400)[0]

    trajectory = motion(e, de, system=jdyn.System(WHEEL, controller=pd))
    # The trapezoidal rule is exact to h² / 12 times the difference of slopes at both ends.
    found = losses.tracking_error(trajectory, jnp.ones(1), weights=3.0)
    assert float(found) == pytest.approx(3 * integral(lambda t: e(t) ** 2) / 8, rel=1e-6)
    # The same in closed form, ∫ e² = (1 + 4 ζ²) / (4 ζ ω), and of forces.
    assert float(found) == pytest.approx(3 / 8 * (1 + 4 * zeta**2) / (4 * zeta * OMEGA), rel=1e-5)
    found = losses.effort(trajectory, weights=jnp.array([0.1]))
    assert float(found) == pytest.approx(0.1 * integral(lambda t: tau(t) ** 2) / 8, rel=2e-5)
    found = losses.energy(trajectory)
    assert float(found) == pytest.approx(integral(lambda t: max(-tau(t) * de(t), 0)), rel=3e-5)
    # The largest torque is the first one.
    assert float(losses.peak_torque(trajectory, rated=2.0)) == pytest.approx(OMEGA**2 / 2)


def test_a_target_may_move():
    """A wheel that follows a sine with a lag of a tenth of a second."""
    times = jnp.asarray(TIMES)
    q, v = jnp.sin(times - 0.1)[:, None], jnp.cos(times - 0.1)[:, None]
    trajectory = jdyn.Trajectory(times, q, v, {}, None, 0, {}).with_system(WHEEL)  # pyright: ignore
    found = losses.tracking_error(trajectory, jnp.sin(times)[:, None])
    expected = quad(lambda t: (np.sin(t) - np.sin(t - 0.1)) ** 2, 0, 8)[0] / 8
    assert float(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_derivatives_are_differences():
    e, _ = underdamped(0.4)
    shape, times = jnp.asarray(e(TIMES[::40])), jnp.asarray(TIMES[::40])

    def trajectory(p):
        error = 1.1 * jnp.abs(p[0]) * shape - 0.02 * p[1] * times
        v = p[1] * jnp.cos(times)
        return jdyn.Trajectory(times, 1 - error[:, None], v[:, None], {}, None, 0, {})  # pyright: ignore

    @jax.jit
    def summed(p):
        target = jnp.ones(1)
        at = trajectory(p).with_system(jdyn.System(WHEEL, controller=jdyn.PD(WHEEL, target, kp=9.0 + p[1], kd=2.0)))
        return (
            losses.tracking_error(at, target) + losses.settling_time(at, target, band=0.1)
            + losses.overshoot(at, target) + losses.effort(at) + losses.energy(at)
            + losses.peak_torque(at)
        )  # fmt: skip

    check_grads(summed, (jnp.array([1.0, 0.3]),), order=1, modes=["fwd", "rev"], atol=1e-6, rtol=1e-6)
    # At rest at the target nothing is NaN.
    for derivative in map(jax.jit, (jax.grad(summed), jax.jacfwd(summed))):
        assert np.all(np.isfinite(derivative(jnp.zeros(2))))


def test_a_motion_that_ends_early_has_no_finite_loss():
    """Rows that were not reached are NaN, and must not look like good ones."""
    target = jnp.ones(1)
    system = jdyn.System(WHEEL, controller=jdyn.PD(WHEEL, target, kp=9.0, kd=2.0))
    failed = motion(
        lambda t: jnp.where(t < 0.5, jnp.exp(-t), jnp.nan),
        lambda t: jnp.where(t < 0.5, -jnp.exp(-t), jnp.nan),
        system=system,
    )
    found = [
        losses.tracking_error(failed, target), losses.settling_time(failed, target, band=0.1),
        losses.overshoot(failed, target), losses.effort(failed), losses.energy(failed),
        losses.peak_torque(failed),
    ]  # fmt: skip
    assert np.all(np.isnan(found))


def test_what_does_not_fit_is_refused():
    still = motion(lambda t: 0 * t, lambda t: 0 * t, TIMES[:3])
    with pytest.raises(ValueError, match="target: expected"):
        losses.tracking_error(still, jnp.ones(2))
    with pytest.raises(ValueError, match="weights: expected"):
        losses.tracking_error(still, jnp.ones(1), weights=jnp.ones(2))
    with pytest.raises(ValueError, match="softness: expected a positive number, got 0"):
        losses.settling_time(still, jnp.ones(1), band=0.1, softness=0)
    with pytest.raises(ValueError, match="does not know its system"):
        losses.overshoot(dataclasses.replace(still, known=None), jnp.ones(1))
