"""Tracking: errors that are oscillators, a reference that is met, and derivatives."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.control import FeedforwardPD, Quintic, Spline, Tracking

pytestmark = pytest.mark.fast_compile

ARM = jdyn.load("double_pendulum")
TIMES = jnp.array([0.0, 0.5, 1.0])
POINTS = jnp.array([[0.1, 0.2], [0.9, -0.4], [0.3, 0.5]])
TIGHT = diffrax.PIDController(rtol=1e-9, atol=1e-11)


@pytest.mark.slow
def test_an_exact_model_stays_on_its_reference():
    reference = Spline(ARM, TIMES, POINTS)
    ts = jnp.linspace(0.0, 1.2, 13)
    motion = jdyn.simulate(
        ARM, POINTS[0], jnp.zeros(2), 1.2, saveat=ts, stepsize_controller=TIGHT,
        controller=Tracking(ARM, reference, kp=100.0, kd=20.0),
    )  # fmt: skip
    q, v, _ = jax.vmap(reference)(ts)
    np.testing.assert_allclose(motion.q, q, atol=1e-8)
    np.testing.assert_allclose(motion.v, v, atol=1e-7)


@pytest.mark.slow
def test_the_error_is_an_oscillator_on_every_joint():
    """ë + kd ė + kp e = 0 for the tangent vector e from q to the reference, at an error of radians."""
    model = jdyn.random_tree(1, 2, kinds=(jdyn.Free, jdyn.Planar))
    q, start, end = jax.vmap(model.random)(jax.random.split(jax.random.key(0), 3))
    v, v0, kp, kd = jax.random.uniform(jax.random.key(1), (4, model.nv), minval=0.5, maxval=2.0)
    reference = Quintic(model, start, end, 0.0, 1.5, v0=v0)

    @jax.jit
    def error(t):
        """e and its first two derivatives, from accelerations by forward dynamics."""
        q_ref, v_ref, a_ref = reference(t)
        a = jdyn.forward_dynamics(model, q, v, Tracking(model, reference, kp=kp, kd=kd)(t, q, v))

        def rate(q, v, q_ref, v_ref):
            return jax.jvp(model.difference, (q, q_ref), (model.rate(q, v), model.rate(q_ref, v_ref)))

        state = q, v, q_ref, v_ref
        return *rate(*state), jax.jvp(rate, state, (model.rate(q, v), a, model.rate(q_ref, v_ref), a_ref))[1][1]

    e, de, dde = error(0.6)
    assert np.max(np.abs(e)) > 1
    np.testing.assert_allclose(dde + kd * de + kp * e, 0, atol=1e-10)


def test_feedforward_and_pd():
    reference = Quintic(ARM, POINTS[0], POINTS[1], 0.0, 1.0)
    q, v, a = reference(0.3)
    controller = FeedforwardPD(ARM, reference, kp=3.0, kd=jnp.array([2.0, 1.0]))
    feedforward = jdyn.inverse_dynamics(ARM, q, v, a)
    np.testing.assert_allclose(controller(0.3, q, v), feedforward, rtol=1e-12)
    expected = feedforward - 3 * 0.1 - jnp.array([2.0, 1.0]) * 0.2
    np.testing.assert_allclose(controller(0.3, q + 0.1, v + 0.2), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Tracking, pytest.param(FeedforwardPD, marks=pytest.mark.exhaustive)])
def test_derivatives_where_there_is_no_error(kind):
    """On a ball joint at rest on its reference, at the identity, nothing is NaN, and gains have no effect."""
    model = jdyn.random_tree(1, 1, kinds=(jdyn.Ball,)).with_gravity([0, 0, 0])
    rest = model.neutral(), jnp.zeros(3)

    @jax.jit
    def torque(kp, q, v):
        return kind(model, Quintic(model, rest[0], rest[0], 0.0, 1.0), kp=kp, kd=2.0)(0.5, q, v)

    forward, reverse = (jacobian(torque, (0, 1, 2))(3.0, *rest) for jacobian in (jax.jacfwd, jax.jacrev))
    for one, other in zip(forward, reverse, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_array_equal(forward[0], 0)
    scale = jdyn.mass_matrix(model, rest[0]) if kind is Tracking else np.eye(3)
    np.testing.assert_allclose(forward[2], -2 * scale, atol=1e-12)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_loss_of_a_motion_by_gains_and_waypoints():
    pendulum, ts = jdyn.load("pendulum"), jnp.linspace(0.1, 1.0, 4)
    heavier = pendulum.with_body("link1", mass=3.0)

    @jax.jit
    def loss(kp, waypoints):
        reference = Spline(pendulum, TIMES, waypoints)
        controller = Tracking(pendulum, reference, kp=kp, kd=8.0)
        # Steps that do not depend on what is differentiated, for differences.
        motion = jdyn.simulate(
            heavier, jnp.zeros(1), jnp.zeros(1), 1.0, controller=controller, saveat=ts, dt0=0.02,
            stepsize_controller=diffrax.ConstantStepSize(),
        )  # fmt: skip
        return jnp.sum(motion.q**2)

    at = 30.0, jnp.array([[0.1], [0.9], [0.4]])
    by_kp, by_waypoints = jax.grad(loss, (0, 1))(*at)
    h = 1e-4
    np.testing.assert_allclose(by_kp, (loss(at[0] + h, at[1]) - loss(at[0] - h, at[1])) / (2 * h), rtol=1e-5)
    for k in range(3):
        step = jnp.zeros((3, 1)).at[k].set(h)
        difference = (loss(at[0], at[1] + step) - loss(at[0], at[1] - step)) / (2 * h)
        np.testing.assert_allclose(by_waypoints[k, 0], difference, rtol=1e-5, atol=1e-6)


def test_float32_and_batches():
    single = ARM.astype(jnp.float32)

    def torque(kp):
        controller = Tracking(single, Quintic(single, POINTS[0], POINTS[1], 0.0, 1.0), kp=kp, kd=1.0)
        return controller(jnp.float32(0.5), jnp.zeros(2, jnp.float32), jnp.zeros(2, jnp.float32))

    gains = jnp.array([1.0, 2.0, 4.0], jnp.float32)
    batch = jax.vmap(torque)(gains)
    assert batch.dtype == jnp.float32
    np.testing.assert_allclose(batch, jnp.stack([torque(kp) for kp in gains]), rtol=1e-5)


def test_wrong_shapes_are_named():
    reference = Quintic(ARM, POINTS[0], POINTS[1], 0.0, 1.0)
    with pytest.raises(ValueError, match=r"kp: expected a scalar or shape \(2,\)"):
        Tracking(ARM, reference, kp=jnp.ones(3), kd=1.0)
    with pytest.raises(ValueError, match=r"kd: expected a scalar or shape \(2,\)"):
        FeedforwardPD(ARM, reference, kp=1.0, kd=jnp.ones(3))
