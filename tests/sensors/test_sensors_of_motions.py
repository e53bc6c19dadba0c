"""Sensors of simulated motions, of batches and of single steps."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn import sensors as s

pytestmark = pytest.mark.fast_compile


def ball(contact):
    """A ball that falls on the ground, with a sensor in the middle."""
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Free(), mass=2.0, inertia=4e-3 * jnp.ones(3))
    builder.add_shape("ball", "sphere", 0.1, role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    return jdyn.System(
        builder.build(), contact=contact, sensors=[s.Accelerometer("imu", "ball"), s.Touch("touch", "ball")]
    )


@pytest.fixture(scope="module")
def pendulum():
    model = jdyn.load("double_pendulum")
    tip = s.FramePosition("tip", "tip")
    return jdyn.System(
        model,
        controller=jdyn.PD(model, jnp.ones(2), kp=30.0, kd=3.0),
        sensors=[
            s.Accelerometer("imu", "tip"),
            s.Torque("joint", "link2"),
            s.Clock("t"),
            s.Imperfect(tip, noise=0.01, key=jax.random.key(0)),
            s.FramePosition("place", "tip"),
        ],
    )


@pytest.mark.slow
def test_rows_of_a_batch_agree_with_single_states(pendulum):
    starts = jnp.array([[0.1, 0.2], [1.0, -0.5]])
    motions = jdyn.simulate_batch(pendulum, jax.vmap(pendulum.state)(starts), 0.3, saveat=jnp.linspace(0, 0.3, 4))
    seen = motions.sensors
    assert {name: x.shape for name, x in seen.items()} == {
        "imu": (2, 4, 3), "joint": (2, 4, 3), "t": (2, 4), "tip": (2, 4, 3), "place": (2, 4, 3),
    }  # fmt: skip
    state = jdyn.State(motions.q[1, 2], motions.v[1, 2])
    for name, x in pendulum.sense(state, t=motions.ts[1, 2]).items():
        np.testing.assert_allclose(seen[name][1, 2], x, atol=1e-9)
    # Lanes share the noise, rows do not; damping takes none of the torque of the second joint.
    noise = seen["tip"] - seen["place"]
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-12)
    assert len(np.unique(noise[0])) == noise[0].size
    np.testing.assert_allclose(-seen["joint"][..., 1], motions.tau[..., 1], atol=1e-9)


@pytest.mark.slow
def test_steps_and_trajectories_agree(pendulum):
    state, dt = pendulum.state(jnp.array([0.1, 0.2])), 0.01
    after, info = pendulum.step(state, dt=dt, t=1.0)
    motion = jdyn.simulate(pendulum, state, jnp.array(1.01), t0=1.0, saveat=jnp.array([1.0, 1.01]))
    row = dataclasses.replace(motion, q=motion.q.at[1].set(after.q), v=motion.v.at[1].set(after.v)).sensors
    for name, x in info.sensors.items():
        np.testing.assert_allclose(x, row[name][1], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("contact", [jdyn.CompliantContact(), jdyn.ConvexContact()], ids=["compliant", "convex"])
def test_what_rests_on_the_ground_reads_gravity(contact):
    system = ball(contact)
    state = system.state(jnp.array([0.0, 0.0, 0.105, 1.0, 0.0, 0.0, 0.0]))
    motion = jdyn.simulate(system, state, 2.0, saveat=jnp.array([0.0, 2.0]))
    np.testing.assert_allclose(motion.sensors["imu"], [[0.0, 0.0, 0.0], [0.0, 0.0, 9.81]], atol=1e-3)
    np.testing.assert_allclose(motion.sensors["touch"], [0.0, 2 * 9.81], atol=1e-3)
    _, info = system.step(jdyn.State(motion.q[-1], motion.v[-1]), dt=0.002)
    np.testing.assert_allclose(info.sensors["imu"], [0.0, 0.0, 9.81], atol=1e-3)


@pytest.mark.slow
def test_a_loaded_trajectory_takes_sensors_of_a_system(pendulum, tmp_path):
    motion = jdyn.simulate(pendulum, pendulum.state(jnp.array([0.1, 0.2])), 0.3, saveat=jnp.linspace(0, 0.3, 4))
    motion.save(tmp_path / "motion.npz")
    loaded = jdyn.Trajectory.load(tmp_path / "motion.npz").with_system(pendulum)
    jax.tree.map(np.testing.assert_array_equal, loaded.sensors, motion.sensors)
    assert loaded.with_system(pendulum.model).sensors == {}


@pytest.mark.slow
def test_readings_of_a_motion_have_gradients(pendulum):
    def loss(length):
        tip = s.FramePosition(
            "tip", "link2", jdyn.Transform(jnp.eye(3), jnp.stack([0.0 * length, 0.0 * length, -length]))
        )
        imu = s.Imperfect(s.Accelerometer("imu", "tip"), noise=0.1, key=jax.random.key(0))
        system = dataclasses.replace(pendulum, sensors=[tip, imu])
        seen = jdyn.simulate(system, system.state(jnp.array([0.1, 0.2])), 0.1, saveat=jnp.array([0.0, 0.1])).sensors
        return jnp.sum(seen["tip"][:, 2]) + jnp.sum(seen["imu"][:, 0])

    value, slope = jax.value_and_grad(loss)(jnp.array(0.5))
    assert jnp.isfinite(value)
    np.testing.assert_allclose(slope, loss(jnp.array(1.5)) - loss(jnp.array(0.5)), atol=1e-9)
