"""Forces that jump at known times, against closed forms."""

import dataclasses
import itertools

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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.exhaustive
def test_times_of_jumps_may_be_padded_out_of_order_and_passed_backwards_and_have_derivatives():
    by_jumps = jax.jit(jax.jacrev(ends))
    for t0, t1 in ((0.0, 2.0), (2.0, 0.0)):
        found = by_jumps(jnp.asarray(PULSE), t0, t1)
        np.testing.assert_allclose(found, jax.jacfwd(exact)(jnp.asarray(PULSE), t0, t1), rtol=1e-9)


@pytest.mark.slow
def test_times_of_jumps_have_derivatives_forwards():
    found = jax.jit(jax.jacfwd(lambda between: ends(between, 0.0, 2.0, diffrax.ForwardMode())))(jnp.asarray(PULSE))
    np.testing.assert_allclose(found, jax.jacfwd(exact)(jnp.asarray(PULSE), 0.0, 2.0), rtol=1e-9)


@pytest.mark.slow
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


MODES = [None, pytest.param(diffrax.ForwardMode(), marks=pytest.mark.exhaustive)]
END = {"saveat": diffrax.SaveAt(t1=True), "solver": diffrax.Tsit5()}


def derivative(function, x, adjoint):
    return jax.jit(jax.jacrev(function) if adjoint is None else jax.jacfwd(function))(x)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", MODES)
@pytest.mark.parametrize("steps", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_rows_at_a_jump_stay_where_they_are(adjoint, steps):
    """As those at an end that is fixed while `t1` moves."""
    times = jnp.array([0.5, 1.0, 1.5, 2.0])

    def rows(ends):
        saveat = diffrax.SaveAt(ts=times, steps=steps) if steps else times
        motion = pushed(ends[:2], ends[2], saveat=saveat, adjoint=adjoint, solver=diffrax.Tsit5(), max_steps=64)
        mine = jnp.searchsorted(jnp.where(jnp.isnan(motion.ts), jnp.inf, motion.ts), times)
        return motion.q[mine, 0]

    def right(ends):
        a, b = ends[:2]
        during = FORCE * (times - a) ** 2 / 2
        return jnp.where(times < a, 0, jnp.where(times < b, during, FORCE * (b - a) * (times - (a + b) / 2)))

    ends = jnp.array([0.25, 1.5, 2.0])
    np.testing.assert_allclose(derivative(rows, ends, adjoint), jax.jacfwd(right)(ends), atol=1e-9 * FORCE)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("adjoint", MODES)
def test_rows_that_follow_steps_move_with_a_jump(adjoint):
    """Those at given times do not, even of the same step."""
    between = jnp.array([0.25, 1.5])

    def rows(between):
        saveat = diffrax.SaveAt(ts=jnp.array([1.5]), steps=True)
        motion = pushed(between, saveat=saveat, adjoint=adjoint, solver=diffrax.Tsit5(), max_steps=64)
        first = jnp.argmax(motion.ts == 1.5)
        return jax.lax.dynamic_slice(motion.v[:, 0], (first,), (2,))

    found = derivative(rows, between, adjoint)
    np.testing.assert_allclose(found, [[-FORCE, 0], [-FORCE, FORCE]], atol=1e-9 * FORCE)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", MODES)
@pytest.mark.parametrize("what", ["jump", "tick"])
def test_an_end_at_a_jump_or_a_tick_moves_by_itself(adjoint, what):
    def end(t1):
        still = jnp.zeros(1)
        hold = {"controller": jdyn.control.ZeroOrderHold(lambda t, q, v: 0 * q, 0.25)} if what == "tick" else {}
        jumps = [0.5] if what == "jump" else []
        return jdyn.simulate(slider(), still, still + 3, t1, jump_times=jumps, adjoint=adjoint, **hold, **END).q[-1, 0]

    np.testing.assert_allclose(derivative(end, 0.5, adjoint), 3, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("strictly", [False, True])
def test_events_at_a_jump_keep_its_far_side(strictly, dtype):
    """One or two at one instant, also at the start."""

    @jax.jit
    def run(jump, more, by_time):
        def force(t, q, v):
            return jnp.where(t > jump if strictly else t >= jump, 100, 0).astype(dtype)[None]

        def halved(t, y):
            return dataclasses.replace(y, v=y.v / 2)

        # Times know the instant to their last digit, places better.
        def falls(t, y):
            return jnp.where(by_time, jump - t, -y.q[0])

        events = [jdyn.Event(falls, halved), jdyn.Event(lambda t, y: jnp.where(more, falls(t, y), 9), halved)]
        return jdyn.simulate(
            slider(dtype), -8 * jump[None], jnp.full(1, 8, dtype), 1.0, controller=force, jump_times=jump[None],
            events=events, dt0=0.0625, stepsize_controller=diffrax.ConstantStepSize(), **END,
        )  # fmt: skip

    for jump, more, by_time in itertools.product((0.5, 0.3, 0.0), (False, True), (False, True)):
        motion, left, rest = run(jnp.asarray(jump, dtype), more, by_time), 8 / (4 if more else 2), 1 - jump
        assert jnp.sum(motion.events.which >= 0) == 1 + more
        found, right = (motion.q[-1, 0], motion.v[-1, 0]), (left * rest + 50 * rest**2, left + 100 * rest)
        np.testing.assert_allclose(found, right, rtol=64 * jnp.finfo(dtype).eps)


@pytest.mark.slow
def test_steps_to_events_just_before_a_jump_do_not_see_it():
    """By less than single precision tells times: these are then those of the jump."""

    def pushed_on(v):
        halved = jdyn.Event(lambda t, y: -y.q[0], lambda t, y: dataclasses.replace(y, v=y.v / 2))
        motion = jdyn.simulate(
            slider(jnp.float32), -v[None] / 16, v[None], 1.0, t0=0.4375, dt0=0.0625, jump_times=[0.5], events=[halved],
            controller=lambda t, q, v: jnp.where(t >= 0.5, 100, 0).astype(v.dtype)[None],
            stepsize_controller=diffrax.ConstantStepSize(), **END,
        )  # fmt: skip
        return motion.v[-1, 0] - v / 2

    speeds = np.random.default_rng(0).uniform(4, 9, 60).astype(np.float32)
    np.testing.assert_allclose(jax.jit(jax.vmap(pushed_on))(speeds), 50, rtol=1e-6)
