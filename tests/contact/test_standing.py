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
# What rests has to be still.
FINE = diffrax.PIDController(rtol=1e-6, atol=1e-8)


@eqx.filter_jit
def forces(model, contact, q, v):
    """On everything but the world, shape (rows, points, 3)."""
    between, bare = contact.between(colliders(model)), model.without_shapes()
    return jax.vmap(lambda q, v: between.points(bare, q, v)[0].force)(q, v)


class Gait(jdyn.Controller):
    """Legs under PD about a crouch, or a step about it by the clock, those across from each other together."""

    crouch: jdyn.PD
    stepping: jax.Array
    stride: float = eqx.field(static=True, default=0.4)

    def __call__(self, t, q, v):
        angle = 2 * jnp.pi * t / self.stride + jnp.array([0, jnp.pi, jnp.pi, 0])
        lift = 0.5 * jnp.maximum(jnp.sin(angle), 0)
        step = jnp.stack([jnp.zeros(4), -0.15 * jnp.cos(angle) + 0.5 * lift, lift], axis=1).ravel()
        return self.crouch(t, q.at[7:].add(-self.stepping * step), v)

    def slopes(self, model, t, q, v):
        return self.crouch.slopes(model, t, q, v)


def of_a_quadruped(contact, kd, stepping, t1):
    """Model and motion from a crouch, in rows of the last 0.8 s, and the forces at all points. Both ways to move share
    a program. The friction of motors, which would let it creep for seconds, is off."""
    model = jdyn.with_ground(jdyn.load("quadruped"))
    model = dataclasses.replace(model, friction=jnp.zeros(model.nv))
    q0 = model.neutral().at[2].set(0.2925).at[7:].set(jnp.tile(jnp.array([0, -0.8, 1.6]), 4))
    kp, kd = (jnp.full(model.nv, gain).at[:6].set(0) for gain in (100.0, kd))
    gait = Gait(jdyn.PD(model, q0, kp=kp, kd=kd), jnp.asarray(stepping))
    ts = jnp.linspace(t1 - 0.8, t1, 801)
    motion = jdyn.simulate(
        model, q0, jnp.zeros(model.nv), t1, controller=gait, contact=contact, saveat=ts, stepsize_controller=FINE
    )
    return model, motion, np.asarray(forces(model, contact, motion.q, motion.v))


@pytest.mark.parametrize(
    "contact",
    # Friction of 1e-5 m/s lets feet creep by about that much against each other.
    [
        jdyn.CompliantContact(slip_speed=jnp.array(1e-5)),
        pytest.param(jdyn.ConvexContact(), marks=pytest.mark.exhaustive),
    ],
    ids=["compliant", "convex"],
)
def test_a_quadruped_lands_and_stands_on_its_four_feet(contact):
    model, motion, force = of_a_quadruped(contact, kd=8.0, stepping=0.0, t1=2.5)
    assert np.abs(motion.v[-1]).max() < 1e-5
    weight = 9.81 * float(model.inertias.mass.sum())
    force = force[-1]
    np.testing.assert_allclose(force.sum(axis=0), [0, 0, weight], atol=1e-9 * weight)
    bearing = force[force[:, 2] > 0, 2]
    assert len(bearing) == 4
    # Right before left in front, then behind; the crouch is symmetric.
    np.testing.assert_allclose(bearing[::2], bearing[1::2], rtol=1e-8)


def test_a_quadruped_trots_by_the_clock():
    """Legs that follow a clock carry it forwards with a level trunk; on the average its feet bear its weight."""
    contact = jdyn.CompliantContact(slip_speed=jnp.array(1e-3))
    model, motion, force = of_a_quadruped(contact, kd=4.0, stepping=1.0, t1=2.0)
    x, y, z = np.asarray(motion.q[:, :3]).T
    assert x[-1] > 0.7 and np.abs(y).max() < 0.1 and z.min() > 0.25
    assert np.asarray(motion.q[:, 3]).min() > np.cos(0.1 / 2)
    upward, weight = force[:, :, 2].sum(axis=1), 9.81 * float(model.inertias.mass.sum())
    np.testing.assert_allclose(np.trapezoid(upward, motion.ts) / 0.8, weight, rtol=0.02)
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


@pytest.mark.exhaustive
def test_a_gripper_lifts_a_cube_where_friction_can_bear_it():
    """Fingers whose springs press with 20 N hold 4.9 N with a coefficient of 1, but not of 0.05."""
    model = jdyn.with_ground(jdyn.load("gripper"), (0, 0, -0.0305))
    raised = model.neutral().at[:3].set(jnp.array([0.1, 0.035, 0.035]))
    kp, kd = (jnp.zeros(model.nv).at[:3].set(jnp.array(gains)) for gains in ([1000.0] * 3, [60.0, 20.0, 20.0]))
    controller = jdyn.PD(model, raised, kp=kp, kd=kd)

    @jax.jit
    def lifted(friction):
        contact = jdyn.ConvexContact(material=jdyn.contact.Material(friction=friction))
        motion = jdyn.simulate(
            model, model.neutral(), jnp.zeros(model.nv), 1.0, controller=controller, contact=contact, saveat=LAST,
            stepsize_controller=FINE,
        )  # fmt: skip
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
    ("file", "contact", "seconds", "left"),
    [
        pytest.param("half_cheetah", COMPLIANT, 10.0, 1e-6, marks=pytest.mark.exhaustive),
        ("hopper", jdyn.ConvexContact(), 10.0, 1e-6),
        pytest.param("walker2d", jdyn.ConvexContact(), 10.0, 1e-5, marks=pytest.mark.exhaustive),
        # It lies on its back, and its arms swing.
        pytest.param("humanoid", jdyn.ConvexContact(), 30.0, 1e-5, marks=pytest.mark.exhaustive),
        pytest.param("ant", COMPLIANT, 10.0, 1e-6, marks=pytest.mark.exhaustive),
    ],
)
def test_gymnasiums_robots_rest_with_their_weight_on_the_ground_as_in_mujoco(file, contact, seconds, left):
    """Some time after they were let go, of their weight `left` swings; the cheetah's springs by 1e-7 of it."""
    model, m = gymnasium.load(file)
    m.opt.timestep = 1e-3
    q0 = jdyn.load_configurations(model, gymnasium.ASSETS / f"{file}.xml")["qpos0"]
    motion = jdyn.simulate(model, q0, jnp.zeros(model.nv), seconds, contact=contact, saveat=LAST)
    assert np.abs(motion.v[-1]).max() < 1e-4
    weight = 9.81 * float(model.inertias.mass.sum())
    ours = -np.asarray(motion.contacts.force("floor")[-1])
    theirs = in_mujoco(m, m.qpos0, seconds)
    np.testing.assert_allclose(ours, [0, 0, weight], atol=left * weight)
    np.testing.assert_allclose(ours, theirs, atol=left * weight)
