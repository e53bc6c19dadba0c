"""Sensors with dead time, a rate of their own and drift: against what was measured, statistics and MuJoCo."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn import sensors as s

pytestmark = pytest.mark.fast_compile

# A step; its multiples are exact.
H = 1 / 128
COUNT = 32


def angle(name):
    return s.JointPosition(name, "joint1")


def pendulum(*sensors):
    return jdyn.System(jdyn.load("double_pendulum"), sensors=sensors)


@pytest.fixture(scope="module")
def seen():
    """What a trajectory shows in each row, and steps after each step; and the true angles."""
    noisy = s.Imperfect(angle("noisy"), noise=0.1, drift=0.3, quantum=0.01, key=jax.random.key(1))
    system = pendulum(
        angle("now"),
        s.Sampled(angle("late"), delay=5 * H),
        s.Sampled(angle("between"), delay=2.25 * H, interpolation="linear"),
        s.Sampled(angle("slow"), period=4 * H),
        s.Sampled(angle("odd"), period=2.5 * H),
        s.Sampled(noisy, delay=3 * H, period=4 * H),
        s.Sampled(angle("lines"), delay=5 * H, period=4 * H, interpolation="linear"),
        s.Sampled(s.Accelerometer("imu", "tip"), delay=H, samples=4),
        s.Sampled(angle("forgotten"), delay=10 * H, samples=4),
    )
    start, solver = system.state(jnp.array([1.0, 0.5])), jdyn.solvers.SemiImplicitEuler()
    motion = jdyn.simulate(
        system, start, COUNT * H, solver=solver, stepsize_controller=diffrax.ConstantStepSize(), dt0=H,
        saveat=H * jnp.arange(COUNT + 1.0),
    )  # fmt: skip

    def after(state, i):
        state, info = system.step(state, dt=H, t=i * H, solver=solver)
        return state, (info.sensors, system.sense(state, t=(i + 1) * H))

    _, (stepped, sensed) = jax.lax.scan(after, start, jnp.arange(COUNT, dtype=float))
    return motion.sensors, stepped, sensed


def test_steps_and_trajectories_show_the_same(seen):
    rows, stepped, sensed = seen
    for name in set(rows) - {"forgotten"}:
        np.testing.assert_allclose(stepped[name], rows[name][1:], rtol=0, atol=1e-13, err_msg=name)
        np.testing.assert_allclose(sensed[name], stepped[name], rtol=0, atol=1e-13, err_msg=name)
    # A memory of four steps does not reach back ten; that of a trajectory does.
    assert np.isnan(stepped["forgotten"][12:]).all() and np.isfinite(rows["forgotten"]).all()


def test_what_is_shown_is_what_was_measured(seen):
    rows, now = seen[0], np.asarray(seen[0]["now"])
    i = np.arange(COUNT + 1)
    np.testing.assert_array_equal(rows["late"], now[np.maximum(i - 5, 0)])
    line = np.interp(i - 2.25, i, now)
    np.testing.assert_allclose(rows["between"], line, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(rows["slow"], now[i // 4 * 4])
    # The first rows from 2.5, 5, 7.5, ... on.
    measured = np.ceil(np.floor(i / 2.5) * 2.5).astype(int)
    np.testing.assert_array_equal(rows["odd"], now[measured])
    # Noise is that of the instant of measurement, and rounded before it is shown.
    noisy = np.asarray(rows["noisy"])
    np.testing.assert_array_equal(noisy[3:], np.repeat(noisy[3::4], 4)[: COUNT - 2])
    np.testing.assert_allclose(noisy, 0.01 * np.round(noisy / 0.01), atol=1e-12)
    assert len(np.unique(noisy)) > 5
    np.testing.assert_allclose(rows["lines"], np.interp(i - 5, i[::4], now[::4]), rtol=0, atol=1e-14)


def test_derivatives_by_delays_are_slopes_of_lines():
    system, ages, values = pendulum(), jnp.array([0.3, 0.2, 0.1, 0.0]), jnp.array([1.0, 2.0, 4.0, 8.0])

    def shown(delay):
        return s.Sampled(angle("a"), delay, interpolation="linear").shown(ages, values)

    value, slope = jax.value_and_grad(shown)(0.15)
    np.testing.assert_allclose((value, slope), (3.0, -20.0), rtol=1e-12)
    lanes = jax.vmap(lambda delay: pendulum(s.Sampled(angle("a"), delay)))(jnp.array([0.0, 0.1]))
    start = system.state(jnp.array([1.0, 0.0]))
    motions = jdyn.simulate_batch(lanes, start, 0.3, in_axes={"system": 0}, saveat=jnp.linspace(0, 0.3, 4))
    np.testing.assert_array_equal(motions.sensors["a"][1, 1:], motions.sensors["a"][0, :-1])


def test_drift_is_a_random_walk():
    """Independent increments, whose variance is the time that they take, times drift²: of 4000 walks to 1 ± √(2/4000),
    within four of these standard deviations."""
    times, count = jnp.array([0.0, 0.5, 0.75, 2.0, 300.0]), 4000

    def walk(key, t):
        drifting = s.Imperfect(s.Clock("bias"), drift=2.0, key=key)
        return drifting.value(s.Reading.of(jdyn.load("pendulum"), jnp.zeros(1), jnp.zeros(1), t=t)) - t

    of_all = jax.jit(jax.vmap(jax.vmap(walk, (None, 0)), (0, None)))
    walks = np.asarray(of_all(jax.random.split(jax.random.key(0), count), times))
    np.testing.assert_array_equal(walks[:, 0], 0)
    steps = np.diff(walks, axis=1) / (2 * np.sqrt(np.diff(times)))
    np.testing.assert_allclose(steps.T @ steps / count, np.eye(4), atol=4 * np.sqrt(2 / count))
    again = of_all(jax.random.split(jax.random.key(0), count)[:1], times)
    np.testing.assert_allclose(again[0], walks[0], rtol=1e-12)


def test_what_does_not_fit_is_said():
    for wrong, said in (
        (
            lambda: s.Sampled(angle("a"), delay=-0.1),
            r"Sampled\.delay: expected a number that is not negative, got -0\.1",
        ),
        (lambda: s.Sampled(angle("a"), period=0.0), r"Sampled\.period: expected a positive number, got 0\.0"),
        (lambda: s.Sampled(s.Sampled(angle("a"))), r"Sampled\.sensor: it is sampled already"),
        (lambda: s.Imperfect(s.Sampled(angle("a")), bias=1.0), r"what is imperfect is what is sampled"),
        (lambda: s.Imperfect(angle("a"), drift=1.0), r"Imperfect\.key: drift needs a key"),
        (lambda: s.Sampled("a"), r"Sampled\.sensor: expected a sensor"),
        (lambda: s.Sampled(angle("a"), interpolation="cubic"), r'expected "hold" or "linear", got \'cubic\''),
        (lambda: s.Sampled(angle("a"), samples=1), r"Sampled\.samples: expected at least 2, got 1"),
    ):
        with pytest.raises(ValueError, match=said):
            wrong()


HISTORIES = {
    "late": f'delay="{5 * H}" nsample="9"',
    "between": f'delay="{2.5 * H}" nsample="9" interp="linear"',
    "slow": f'interval="{4 * H} 0" nsample="9"',
    "odd": f'interval="{2.5 * H} 0" nsample="9"',
    "slow and late": f'delay="{3 * H}" interval="{4 * H} 0" nsample="9"',
    "lines": f'delay="{5.5 * H}" interval="{4 * H} 0" nsample="9" interp="linear"',
    "at once": f'interval="{4 * H} 0"',
}


def test_histories_of_mujoco_files():
    """MuJoCo's sensors with a history, by those without one, in its own steps; before the first value it shows zero.
    Lines are longer than a period ago, since a value is in its history one step later than here."""
    sensors = "".join(f'<jointpos name="{name}" joint="j" {history}/>' for name, history in HISTORIES.items())
    text = f"""<mujoco><option timestep="{H}"/><worldbody><body><joint name="j" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 1 0 0" size="0.1"/></body></worldbody>
      <actuator><motor name="push" joint="j" delay="0.1" nsample="99"/></actuator>
      <sensor><jointpos name="now" joint="j"/>{sensors}
      <jointpos name="smooth" joint="j" delay="0.1" nsample="9" interp="cubic"/>
      <jointpos name="shifted" joint="j" interval="0.1 -0.05" nsample="9"/></sensor></mujoco>"""
    with pytest.warns(jdyn.ModelWarning) as said:
        system = jdyn.load_system(text)
    message = str(said[0].message)
    assert "delay of actuators push" in message and "sensors smooth, shifted" in message
    compiled = mujoco.MjModel.from_xml_string(text)
    data, rows = mujoco.MjData(compiled), []
    data.qpos[0] = 1.0
    for _ in range(COUNT):
        mujoco.mj_step1(compiled, data)
        mujoco.mj_step2(compiled, data)
        rows.append(data.sensordata.copy())
    rows = dict(zip(("now", *HISTORIES), np.array(rows).T, strict=False))
    motion = jdyn.simulate(system, system.state(), (COUNT - 1) * H, saveat=H * jnp.arange(float(COUNT)))
    # In MuJoCo's motion, not in jdyn's.
    told = dataclasses.replace(motion, q=jnp.asarray(rows["now"])[:, None]).sensors
    assert set(told) == set(rows)
    for name, expected in rows.items():
        arrived = slice(8, None) if "late" in name or name in ("between", "lines") else slice(None)
        np.testing.assert_allclose(told[name][arrived], expected[arrived], rtol=0, atol=1e-14, err_msg=name)
