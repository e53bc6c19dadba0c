"""Forces that jump at known times, against closed forms."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

PULSE = np.array([1.337, 1.339])
FORCE = 500.0


def slider(dtype=jnp.float64):
    builder = jdyn.Builder("slider", gravity=(0, 0, 0))
    builder.add_link("body", jdyn.Prismatic((1, 0, 0)), mass=1.0)
    return builder.build().astype(dtype)


def pulse(t, between):
    return jnp.where((t >= between[0]) & (t < between[1]), FORCE, 0.0)[None].astype(t.dtype)


def pushed(between, t1=2.0, dtype=jnp.float64, **options):
    """1 kg, pushed between two times."""
    still = jnp.zeros(1, dtype)
    between = jnp.asarray(between, dtype)
    options = {"jump_times": between} | options
    return jdyn.simulate(slider(dtype), still, still, t1, controller=lambda t, q, v: pulse(t, between), **options)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_no_pulse_is_missed(dtype):
    between = PULSE.astype(dtype)
    motion = pushed(between, dtype=dtype)
    speed, eps = FORCE * float(between[1] - between[0]), float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(motion.v[-1], [speed], rtol=8 * eps)
    np.testing.assert_allclose(motion.q[-1], [speed * (2 - between.mean())], rtol=8 * eps)
    assert motion.stats["accepted_steps"] < 16
    # Without being told, the default steps pass it by.
    assert pushed(between, dtype=dtype, jump_times=()).v[-1] == 0


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_step_controllers_that_know_of_jumps_begin_beyond_them(dtype):
    tolerances = diffrax.PIDController(rtol=1e-5, atol=1e-6)
    known = diffrax.ClipStepSizeController(tolerances, jump_ts=jnp.asarray(PULSE, dtype))
    motion = pushed(PULSE, dtype=dtype, jump_times=(), stepsize_controller=known)
    between = PULSE.astype(dtype)
    speed, eps = FORCE * float(between[1] - between[0]), float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(motion.v[-1], [speed], rtol=8 * eps)


def ends(between, t0, t1, adjoint=None):
    padded = jnp.stack([jnp.array(jnp.nan), between[1], jnp.array(jnp.inf), between[0], between[0]])
    motion = pushed(
        between, t1, t0=t0, jump_times=padded, adjoint=adjoint, saveat=diffrax.SaveAt(t1=True), solver=diffrax.Tsit5()
    )
    return jnp.concatenate([motion.q[-1], motion.v[-1]])


def exact(between, t0, t1):
    """x = F (b − a) (t1 − (a + b) / 2), whose sign is that of time."""
    speed = jnp.sign(t1 - t0) * FORCE * (between[1] - between[0])
    return jnp.stack([speed * (t1 - between.mean()), speed])


def test_times_of_jumps_may_be_padded_out_of_order_and_passed_backwards_and_have_derivatives():
    by_jumps = jax.jit(jax.jacrev(ends))
    for t0, t1 in ((0.0, 2.0), (2.0, 0.0)):
        found = by_jumps(jnp.asarray(PULSE), t0, t1)
        np.testing.assert_allclose(found, jax.jacfwd(exact)(jnp.asarray(PULSE), t0, t1), rtol=1e-9)


@pytest.mark.slow
def test_times_of_jumps_have_derivatives_forwards():
    found = jax.jit(jax.jacfwd(lambda between: ends(between, 0.0, 2.0, diffrax.ForwardMode())))(jnp.asarray(PULSE))
    np.testing.assert_allclose(found, jax.jacfwd(exact)(jnp.asarray(PULSE), 0.0, 2.0), rtol=1e-9)


def test_lanes_of_a_batch_have_jumps_of_their_own():
    widths = jnp.array([1e-3, 2e-3, 0.4])
    pulses = 1.337 + jnp.stack([jnp.zeros(3), widths], axis=1)

    class Pulse(jdyn.Controller):
        between: jax.Array

        def __call__(self, t, q, v):
            return pulse(t, self.between)

    motions = jdyn.simulate_batch(
        slider(), jnp.zeros(1), jnp.zeros(1), 2.0, controller=Pulse(pulses), jump_times=pulses,
        in_axes={"controller": 0, "jump_times": 0}, solver=diffrax.Tsit5(),
    )  # fmt: skip
    np.testing.assert_allclose(motions.v[:, -1, 0], FORCE * widths, rtol=1e-12)


def test_times_of_jumps_are_an_array():
    with pytest.raises(ValueError, match=r"jump_times: expected an array of shape \(jumps,\), got shape \(1, 2\)"):
        pushed(PULSE, jump_times=PULSE[None])
