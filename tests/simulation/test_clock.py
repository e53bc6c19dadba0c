"""Times in more digits than their type has, and motions late in time."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.simulation.state import Instant
from tests.contact.scenes import bouncing

pytestmark = pytest.mark.fast_compile

LATE = 1024.0
END = diffrax.SaveAt(t1=True)


@pytest.mark.parametrize(("dtype", "duration"), [(jnp.float32, 1e-7), (jnp.float64, 1e-17)])
def test_steps_below_the_rounding_of_the_time_add_up(dtype, duration):
    """A hundred thousand of them: t alone would not move."""
    count, start = 100_000, jnp.asarray(100.0, dtype)
    duration = jnp.asarray(duration, dtype)
    assert start + duration == start
    now = jax.jit(lambda: jax.lax.fori_loop(0, count, lambda _, at: at.after(duration), Instant.at(start)))()
    passed = (np.float64(now.t) - 100.0) + np.float64(now.remainder)
    np.testing.assert_allclose(passed, count * float(duration), rtol=1e-4)
    # What is left of the way is known as well.
    ahead = jnp.asarray(np.nextafter(np.asarray(now.t), np.asarray(jnp.inf, dtype)))
    np.testing.assert_allclose(float(now.until(ahead)), float(ahead) - float(now.t) - float(now.remainder), rtol=1e-6)


def test_instants_move_with_what_they_are_made_of():
    def moved(t, duration):
        at = Instant.at(t).after(duration).after(duration)
        return jnp.stack([at.t, at.remainder, at.until(3 * t)])

    by_t, by_duration = jax.jit(jax.jacfwd(moved, (0, 1)))(jnp.float32(100.0), jnp.float32(1e-7))
    np.testing.assert_array_equal(by_t, [1, 0, 2])
    np.testing.assert_array_equal(by_duration, [2, 0, -2])
    np.testing.assert_array_equal(jax.jit(jax.jacrev(moved))(jnp.float32(100.0), jnp.float32(1e-7)), by_t)


@pytest.fixture(scope="module")
def falls():
    """How far a ball has come after half a second and two impacts, in how many steps, by the time at which it
    begins; and that by its height at the start."""
    model = bouncing(mass=0.1).astype(jnp.float32)
    contact = jdyn.CompliantContact(material=jdyn.contact.Material(4e6, 0.0))
    control = diffrax.PIDController(rtol=1e-4, atol=1e-5)

    def end(height, t0):
        motion = jdyn.simulate(
            model, height[None], jnp.zeros(1, jnp.float32), t0 + 0.5, t0=t0, contact=contact, saveat=END, throw=False,
            stepsize_controller=control,
        )  # fmt: skip
        return motion.q[-1, 0], (motion.stats["accepted_steps"] + motion.stats["rejected_steps"], motion.success)

    return jax.jit(jax.value_and_grad(end, has_aux=True))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_motions_do_not_depend_on_when_they_begin(falls):
    """In single precision, times about 1024 s differ by 1.2e-4 s, a third of what an impact takes."""
    (height, (steps, good)), slope = falls(jnp.float32(0.2), jnp.float32(0.0))
    (late, (late_steps, late_good)), late_slope = falls(jnp.float32(0.2), jnp.float32(LATE))
    assert good and late_good
    # The last step ends at 0.5 s, and its length is rounded otherwise.
    assert abs(int(late_steps) - int(steps)) <= 1
    np.testing.assert_allclose(late, height, atol=1e-6)
    np.testing.assert_allclose(late_slope, slope, rtol=1e-4)


@pytest.mark.slow
def test_forces_that_know_the_time_and_events_are_as_late_as_the_motion():
    """A mass that is pushed by t − 1024 s: x = x₀ + τ³/6, with every row, and one at which x has risen to 0.1 m."""
    builder = jdyn.Builder("mass", gravity=(0, 0, 0))
    builder.add_link("mass", jdyn.Prismatic((1, 0, 0)), mass=1.0)
    model = builder.build().astype(jnp.float32)
    passing = jdyn.Event(lambda t, y: y.q[0] - 0.1, terminate=True, direction="rising")
    taus = np.array([0.125, 0.5, 0.75], np.float32)
    motion = jdyn.simulate(
        model, jnp.zeros(1, jnp.float32), jnp.zeros(1, jnp.float32), jnp.float32(LATE + 2), t0=jnp.float32(LATE),
        controller=lambda t, q, v: (t - LATE)[None], saveat=jnp.asarray(LATE + taus), events=[passing],
    )  # fmt: skip
    # Forces see the nearest time of the type.
    seen = np.spacing(np.float32(LATE)) / 2
    assert np.all(np.abs(motion.q[:, 0] - taus**3 / 6) <= seen * taus**2 / 2 + 1e-5 * taus**3)
    np.testing.assert_allclose(float(motion.events.ts[0]) - LATE, 0.6 ** (1 / 3), atol=2 * seen)


PENDULUM = jdyn.load("pendulum")


@pytest.mark.slow
@pytest.mark.parametrize("mode", [None, diffrax.ForwardMode()], ids=["reverse", "forward"])
def test_rows_at_the_ends_of_planned_steps_follow_the_start(mode):
    def angle(t0):
        motion = jdyn.simulate(
            PENDULUM, jnp.array([1.0]), jnp.array([0.5]), 1.0, t0=t0, dt0=1 / 64, saveat=jnp.array([0.5]),
            stepsize_controller=diffrax.ConstantStepSize(), solver=diffrax.Dopri5(), adjoint=mode,
        )  # fmt: skip
        return motion.q[0, 0], motion.v[0, 0]

    by_start = jax.jit(jax.jacfwd(angle) if mode else lambda t0: jax.grad(lambda t0: angle(t0)[0])(t0))(0.0)
    found = by_start[0] if mode else by_start
    # To begin later is to arrive sooner.
    np.testing.assert_allclose(found, -jax.jit(angle)(0.0)[1], rtol=1e-8)


def test_planned_times_are_met_to_the_last_digit():
    times = np.array([-1000.0, -999.7, -3.3, 0.1, 0.3])
    motion = jdyn.simulate(
        PENDULUM, jnp.array([0.1]), jnp.zeros(1), 0.3, t0=-1000.0, saveat=diffrax.SaveAt(steps=True), max_steps=8,
        stepsize_controller=diffrax.StepTo(jnp.asarray(times)), solver=diffrax.Dopri5(), throw=False,
    )  # fmt: skip
    np.testing.assert_array_equal(motion.ts[:4], times[1:])


@pytest.mark.slow
def test_a_lane_of_a_batch_does_not_tick_because_another_does():
    """Late in single precision, where times are at a tick before the motion is."""
    model = PENDULUM.astype(jnp.float32)
    pd = jdyn.PD(model, jnp.ones(1, jnp.float32), kp=4.0, kd=1.0)
    control = diffrax.PIDController(rtol=1e-4, atol=1e-6, dtmax=2e-6)

    def end(q0, dt0):
        motion = jdyn.simulate(
            model, q0[None], jnp.zeros(1, jnp.float32), 100.0 + 16 * 2.0**-17, t0=100.0, max_steps=400, saveat=END,
            controller=jdyn.control.ZeroOrderHold(pd, 2.0**-15), stepsize_controller=control, dt0=dt0, throw=False,
        )  # fmt: skip
        return motion.v[-1], motion.stats["accepted_steps"]

    # Of first steps that differ, so that lanes are at ticks in different rounds.
    starts = jnp.array([[0.1, 0.5, 0.9], [1e-6, 5e-7, 2e-7]], jnp.float32)
    together = jax.jit(jax.vmap(end))(*starts)
    alone = [jax.jit(end)(*start) for start in starts.T]
    np.testing.assert_array_equal(together[1], [steps for _, steps in alone])
    np.testing.assert_allclose(together[0], [v for v, _ in alone], rtol=1e-5)
