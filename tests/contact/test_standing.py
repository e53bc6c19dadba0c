"""Robots that stand, walk and hold: what bears them bears their weight."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jdyn
from jdyn.contact import colliders
from tests.reference import test_gymnasium as gymnasium

pytestmark = [pytest.mark.slow, pytest.mark.fast_compile]

LAST = diffrax.SaveAt(t1=True)


@eqx.filter_jit
def forces(model, contact, q, v):
    """On everything but the world, a row a point."""
    return contact.between(colliders(model)).points(model.without_shapes(), q, v)[0].force


def crouching_quadruped():
    """Without the friction of its motors, which would let it creep for seconds, and its controller."""
    model = jdyn.with_ground(jdyn.load("quadruped"))
    model = dataclasses.replace(model, friction=jnp.zeros(model.nv))
    q0 = model.neutral().at[2].set(0.2925).at[7:].set(jnp.tile(jnp.array([0, -0.8, 1.6]), 4))
    kp, kd = (jnp.full(model.nv, gain).at[:6].set(0) for gain in (100.0, 8.0))
    return model, q0, jdyn.PD(model, q0, kp=kp, kd=kd)


@pytest.mark.parametrize(
    "contact",
    # Friction of 1e-5 m/s lets feet creep by about that much against each other.
    [jdyn.CompliantContact(slip_speed=1e-5), jdyn.ConvexContact()],
    ids=["compliant", "convex"],
)
def test_a_quadruped_lands_and_stands_on_its_four_feet(contact):
    model, q0, controller = crouching_quadruped()
    motion = jdyn.simulate(model, q0, jnp.zeros(model.nv), 2.5, controller=controller, contact=contact, saveat=LAST)
    q, v = motion.q[-1], motion.v[-1]
    assert np.abs(v).max() < 1e-5
    weight = 9.81 * float(model.inertias.mass.sum())
    force = np.asarray(forces(model, contact, q, v))
    np.testing.assert_allclose(force.sum(axis=0), [0, 0, weight], atol=1e-9 * weight)
    bearing = force[force[:, 2] > 0, 2]
    assert len(bearing) == 4
    # Right before left in front, then behind; the crouch is symmetric.
    np.testing.assert_allclose(bearing[::2], bearing[1::2], rtol=1e-8)


def test_a_quadruped_trots_by_the_clock():
    """Legs that follow a clock, those across from each other together, carry it forwards with a level trunk; what its
    feet bear on the average is its weight."""
    model, q0, _ = crouching_quadruped()
    contact, stride = jdyn.CompliantContact(), 0.4
    phase = jnp.array([0, jnp.pi, jnp.pi, 0])

    def trot(t, q, v):
        angle = 2 * jnp.pi * t / stride + phase
        lift = 0.5 * jnp.maximum(jnp.sin(angle), 0)
        legs = jnp.stack([jnp.zeros(4), -0.8 - 0.15 * jnp.cos(angle) + 0.5 * lift, 1.6 + lift], axis=1).ravel()
        return jnp.concatenate([jnp.zeros(6), 100 * (legs - q[7:]) - 4 * v[6:]])

    ts = jnp.linspace(1.2, 2.0, 801)
    motion = jdyn.simulate(model, q0, jnp.zeros(model.nv), 2.0, controller=trot, contact=contact, saveat=ts)
    x, y, z = np.asarray(motion.q[:, :3]).T
    assert x[-1] > 0.7 and np.abs(y).max() < 0.1 and z.min() > 0.25
    assert np.asarray(motion.q[:, 3]).min() > np.cos(0.1 / 2)
    upward = np.asarray(jax.vmap(lambda q, v: forces(model, contact, q, v)[:, 2].sum())(motion.q, motion.v))
    weight = 9.81 * float(model.inertias.mass.sum())
    np.testing.assert_allclose(np.trapezoid(upward, ts) / (2 * stride), weight, rtol=0.02)
    assert upward.max() > 1.5 * weight


def in_mujoco(m, qpos, seconds):
    """What the world bears after some seconds; links that touch each other count nothing."""
    data = mujoco.MjData(m)
    data.qpos[:] = qpos
    mujoco.mj_step(m, data, round(seconds / m.opt.timestep))
    mujoco.mj_forward(m, data)
    total, force = np.zeros(3), np.zeros(6)
    for i, contact in enumerate(data.contact):
        if m.geom_bodyid[contact.geom[0]] == 0:
            mujoco.mj_contactForce(m, data, i, force)
            total += contact.frame.reshape(3, 3).T @ force[:3]
    return total


def test_a_gripper_lifts_a_cube_where_friction_can_bear_it():
    """Fingers whose springs press with 20 N hold 4.9 N with a coefficient of 1, but not of 0.05."""
    model = jdyn.with_ground(jdyn.load("gripper"), (0, 0, -0.0305))
    raised = model.neutral().at[:3].set(jnp.array([0.1, 0.035, 0.035]))
    kp, kd = (jnp.zeros(model.nv).at[:3].set(jnp.array(gains)) for gains in ([1000.0] * 3, [60.0, 20.0, 20.0]))
    controller = jdyn.PD(model, raised, kp=kp, kd=kd)

    @jax.jit
    def lifted(friction):
        contact = jdyn.ConvexContact(material=jdyn.Material(friction=friction))
        motion = jdyn.simulate(
            model, model.neutral(), jnp.zeros(model.nv), 1.0, controller=controller, contact=contact, saveat=LAST
        )
        q, v = motion.q[-1], motion.v[-1]
        return q, contact.between(colliders(model)).points(model.without_shapes(), q, v)[0].force

    q, force = lifted(1.0)
    held = np.asarray(force)[np.abs(force[:, 1]) > 0]
    # Each finger touches the cube at four points, which share its weight and the force of the spring evenly.
    assert len(held) == 8
    np.testing.assert_allclose(held[:, 2], 0.5 * 9.81 / 8, rtol=1e-8)
    np.testing.assert_allclose(np.abs(held[:, 1]), 1000 * (0.035 - q[1]) / 4, rtol=1e-6)
    assert q[5] > 0.07
    q, force = lifted(0.05)
    assert q[5] < 0
    np.testing.assert_allclose(np.asarray(force)[:, 2].sum(), 0.5 * 9.81, rtol=1e-8)


COMPLIANT = jdyn.CompliantContact(slip_speed=1e-5)


@pytest.mark.parametrize(
    ("file", "contact"),
    [
        ("half_cheetah", COMPLIANT),
        ("hopper", jdyn.ConvexContact()),
        pytest.param("ant", COMPLIANT, marks=pytest.mark.exhaustive),
    ],
)
def test_gymnasiums_robots_rest_with_their_weight_on_the_ground_as_in_mujoco(file, contact):
    """Ten seconds after they were let go; the cheetah's springs swing longest, by 1e-7 of its weight then."""
    model, m = gymnasium.load(file)
    m.opt.timestep = 1e-3
    q0 = jdyn.load_configurations(model, gymnasium.ASSETS / f"{file}.xml")["qpos0"]
    motion = jdyn.simulate(model, q0, jnp.zeros(model.nv), 10.0, contact=contact, saveat=LAST)
    assert np.abs(motion.v[-1]).max() < 1e-4
    weight = 9.81 * float(model.inertias.mass.sum())
    ours = -np.asarray(motion.contacts(model, contact).force("floor")[-1])
    theirs = in_mujoco(m, m.qpos0, 10.0)
    np.testing.assert_allclose(ours, [0, 0, weight], atol=1e-6 * weight)
    np.testing.assert_allclose(ours, theirs, atol=1e-6 * weight)
