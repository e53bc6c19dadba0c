"""Largest angles of ball joints, against MuJoCo, SciPy and the law of impact."""

import diffrax
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.elements import along_ends, approach

pytestmark = pytest.mark.fast_compile

# The hinge comes first, so that places in q and v differ.
FILE = """<mujoco><default><geom contype="0" conaffinity="0"/></default>
<worldbody><geom name="out of reach" type="plane" size="1 1 1" pos="0 0 -9" contype="1"/>
  <body><joint name="hinge" axis="0 1 0" range="-170 170" margin="10"/>
    <geom type="capsule" fromto="0 0 0 0 0 -1" size="0.1"/>
    <body pos="0 0 -1"><joint name="ball" type="ball" range="0 60" margin="10"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 -1" size="0.1"/>
      <body pos="0 0 -1"><joint name="free ball" type="ball"/><geom size="0.1" pos="0 0.1 0" conaffinity="1"/></body>
  </body></body></worldbody></mujoco>"""
LARGEST, SPEED, AXIS = 1.0, 3.0, np.array([2.0, -1.0, 2.0]) / 3
TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-12)


def ball(largest=LARGEST):
    """A sphere that turns about its centre."""
    builder = jdyn.Builder("ball", gravity=(0, 0, 0))
    builder.add_link("body", jdyn.Ball(), mass=1.0, inertia=0.1, upper=largest)
    return builder.build()


@pytest.fixture(scope="module")
def hip():
    return jdyn.load_system(FILE).but(contact=None), mujoco.MjModel.from_xml_string(FILE)


def test_distances_and_directions_are_those_of_mujoco(hip):
    """With a large margin, MuJoCo has the rows of all ends always."""
    system, m = hip
    model, data, rng = system.model, mujoco.MjData(m), np.random.default_rng(0)
    assert isinstance(system.joint_limits, jdyn.CompliantLimits)

    @jax.jit
    def ours(q, v):
        gaps, speeds = approach(model, q, v)
        return gaps[0, 1], speeds[0, 1], along_ends(model, q, jnp.array([0.0, 1.0, 0.0])), gaps[:, 2]

    for _ in range(50):
        data.qpos[:] = rng.normal(size=m.nq)
        data.qvel[:] = rng.normal(size=m.nv)
        mujoco.mj_normalizeQuat(m, data.qpos)
        mujoco.mj_forward(m, data)
        (row,) = np.flatnonzero(data.efc_id == 1)
        J = data.efc_J.reshape(-1, m.nv)[row]
        gap, speed, direction, free = ours(jnp.asarray(data.qpos), jnp.asarray(data.qvel))
        # The angle loses digits where the scalar part of the quaternion is near one, or minus one.
        np.testing.assert_allclose(gap, data.efc_pos[row], atol=1e-12)
        np.testing.assert_allclose(direction, -J, atol=1e-12)
        np.testing.assert_allclose(speed, -J @ data.qvel, atol=1e-11)
        assert np.all(free == np.inf)


def test_a_limit_acts_where_that_of_mujoco_does(hip):
    system, m = hip
    m.jnt_margin[:] = 0
    data, stops = mujoco.MjData(m), system.joint_limits.stops(system.model)
    force = jax.jit(lambda q: stops.generalized(system.model, 0.0, q, jnp.zeros(m.nv)))
    for angle in np.radians([-61, -59, 59, 61]):
        data.qpos[1:5] = np.cos(angle / 2), *np.sin(angle / 2) * AXIS
        mujoco.mj_forward(m, data)
        pushed = force(jnp.asarray(data.qpos))
        assert bool(data.nefc) == bool(jnp.any(pushed != 0)) == (abs(angle) > np.radians(60))
        if data.nefc:
            assert pushed[1:4] @ AXIS * np.sign(angle) < 0
            np.testing.assert_allclose(np.cross(pushed[1:4], AXIS), 0, atol=1e-12)


def turned_by(q):
    return Rotation.from_quat(np.asarray(q), scalar_first=True).magnitude()


@pytest.mark.slow
def test_a_sphere_meets_its_end_as_a_number_does():
    """About one axis the motion is that of one coordinate, with k = I (50 rad/s)²."""
    limits = jdyn.CompliantLimits(frequency=50.0, dissipation=0.2, onset=3e-3)
    ts, v0 = jnp.linspace(0, 1, 11), jnp.asarray(SPEED * AXIS)
    found = jdyn.simulate(ball(), ball().neutral(), v0, 1.0, joint_limits=limits, stepsize_controller=TIGHT, saveat=ts)

    def rate(t, y):
        beyond = max(y[0] - LARGEST, 0)
        return [y[1], -(50**2) * beyond**2 / (beyond + 3e-3) * max(1 + 0.2 * y[1], 0)]

    # Within a second it comes back through its start, and turns to the other side.
    exact = scipy.integrate.solve_ivp(
        rate, (0, 1), [0.0, SPEED], method="DOP853", rtol=1e-11, atol=1e-12, max_step=1e-3, t_eval=np.asarray(ts)
    )
    np.testing.assert_allclose(turned_by(found.q), np.abs(exact.y[0]), rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.v, exact.y[1][:, None] * AXIS, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_sphere_bounces_off_its_end():
    limits = jdyn.ImpactLimits(restitution=0.8)
    run = jdyn.simulate(ball(), ball().neutral(), jnp.asarray(SPEED * AXIS), 0.5, joint_limits=limits)
    assert run.success
    np.testing.assert_allclose(run.events.ts[0], LARGEST / SPEED, rtol=1e-9)
    np.testing.assert_allclose(run.v[-1], -0.8 * SPEED * AXIS, rtol=1e-9)


@pytest.mark.slow
def test_impulses_hold_a_hip_as_forces_do(hip):
    """In steps of impulses, whose errors fall with their length, and in motions with other stops."""
    system, _ = hip
    system = system.but(joint_limits=jdyn.CompliantLimits(frequency=60.0))
    start = system.state(jnp.array([0.5, 1.0, 0, 0, 0, 1.0, 0, 0, 0]), jnp.array([0.0, 4.0, 1.0, 0.5, 0, 0, 0]))
    exact = jdyn.simulate(system, start, 1.0, stepsize_controller=TIGHT)
    angles = turned_by(exact.q[:, 1:5])
    # At u rad/s a joint goes about u over the frequency beyond its end.
    assert np.radians(60) < np.max(angles) < np.radians(60) + 6 / 60
    control = diffrax.PIDController(rtol=1e-6, atol=1e-6)
    system = system.but(contact=jdyn.ConvexContact())
    convex = jdyn.simulate(system, start, 1.0, stepsize_controller=control)
    np.testing.assert_allclose(convex.q, exact.q, atol=1e-4)


def test_derivatives_at_the_identity_are_finite():
    model = ball()
    stops = jdyn.CompliantLimits().stops(model)

    def force(dq, v, largest):
        q = model.integrate(model.neutral(), dq)
        return stops.generalized(model.with_joint("body", upper=largest), 0.0, q, v)

    slopes = jax.jit(jax.jacrev(force, (0, 1, 2)))
    assert all(jnp.all(x == 0) for x in jax.tree.leaves(slopes(jnp.zeros(3), jnp.zeros(3), 1.0)))


@pytest.mark.slow
def test_derivatives_through_a_stop():
    """By the largest angle: later, and so further from it, by twice the change where it leaves as fast as it comes."""
    model, limits = ball(), jdyn.CompliantLimits(frequency=50.0, dissipation=0.0)
    start, options = (model.neutral(), jnp.asarray(SPEED * AXIS)), {"stepsize_controller": TIGHT}

    def end(largest):
        limited = model.with_joint("body", upper=largest)
        motion = jdyn.simulate(limited, *start, 0.5, joint_limits=limits, **options)
        return 2 * jnp.arctan2(motion.q[-1, 1:] @ AXIS, motion.q[-1, 0])

    # The spring is the same at any end, so that 2 is exact; steps err by 1e-10 each, and their derivatives more.
    np.testing.assert_allclose(jax.jit(jax.grad(end))(LARGEST), 2, rtol=1e-5)


@pytest.mark.parametrize("largest", [0.2, 2.5])
def test_random_rotations_are_uniform_within_the_limit(largest):
    model = ball(largest)
    draws = jax.jit(jax.vmap(model.random))(jax.random.split(jax.random.key(0), 2000))
    share = scipy.stats.kstest(turned_by(draws), lambda x: (x - np.sin(x)) / (largest - np.sin(largest))).pvalue
    assert share > 0.01
    assert np.max(turned_by(draws)) <= largest * (1 + 1e-6)
