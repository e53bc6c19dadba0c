"""Motions with compliant contact against closed forms."""

import dataclasses

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.contact.scenes import ball, block, box, on_the_ground, stack, tilted

pytestmark = [pytest.mark.fast_compile, pytest.mark.slow]

G, STIFFNESS, SLIP = 9.81, 1e5, 1e-4
END = diffrax.SaveAt(t1=True)
TIGHT = diffrax.PIDController(rtol=1e-9, atol=1e-12)


def contact(friction, dissipation=5.0):
    """Surfaces that are together as stiff as `STIFFNESS`."""
    return jdyn.CompliantContact(
        material=jdyn.contact.Material(2 * STIFFNESS, dissipation, jnp.asarray(friction)), slip_speed=SLIP
    )


def pressed(model, q, height, weight, points):
    """A configuration in which springs carry a weight."""
    where = model.topology.v_offsets[-1] - 1 if model.nq == 2 else 2
    return q.at[where].set(height - weight / (points * STIFFNESS))


@pytest.mark.parametrize("angle", [0.3, 0.6])
@pytest.mark.parametrize("share", [0.7, 1.2])
def test_a_block_sticks_on_a_slope_if_friction_allows_and_slides_otherwise(angle, share):
    """What sticks creeps, by the law of friction at a speed that is known; what slides has Coulomb's friction but for
    ½ (v_s / v)² of it."""
    friction, model = share * np.tan(angle), tilted(block(), angle)
    law = contact(friction)
    q0 = pressed(model, model.neutral(), 0.1, G * np.cos(angle), 4)
    motion = jdyn.simulate(model, q0, jnp.zeros(2), 1.0, contact=law, stepsize_controller=TIGHT, saveat=END)
    if share > 1:
        creep = SLIP * np.tan(angle) / np.sqrt(friction**2 - np.tan(angle) ** 2)
        np.testing.assert_allclose(motion.v[0, 0], creep, rtol=1e-6)
    else:
        acceleration = motion.accelerations[0, 0]
        np.testing.assert_allclose(acceleration, G * (np.sin(angle) - friction * np.cos(angle)), rtol=1e-6)


@pytest.mark.parametrize("share", [0.7, 1.2])
def test_a_ball_rolls_down_a_slope_if_friction_allows_and_slips_otherwise(share):
    """Forces act half the depth above the bottom of the ball."""
    angle, radius = 0.5, 0.1
    friction, model = share * 2 / 7 * np.tan(angle), tilted(ball(), angle)
    law, weight = contact(friction), G * np.cos(angle)
    q0 = pressed(model, model.neutral(), radius, weight, 1)
    # Friction makes an acceleration of an error of the slip, 1e3 times as large.
    finer = diffrax.PIDController(rtol=1e-10, atol=1e-13)
    motion = jdyn.simulate(model, q0, jnp.zeros(6), 1.0, contact=law, stepsize_controller=finer, saveat=END)
    arm = radius - weight / STIFFNESS / 2
    rolling = G * np.sin(angle) / (1 + 0.4 * (radius / arm) ** 2)
    slipping = G * (np.sin(angle) - friction * np.cos(angle))
    found = _acceleration(model, motion, law)[0]
    np.testing.assert_allclose(found, rolling if share > 1 else slipping, rtol=1e-6)


def _acceleration(model, motion, law):
    """Of the origin of the first body at the end, in world axes."""
    a, v, R = motion.accelerations[-1], motion.v[-1], motion.poses.rotation[-1, 0]
    return R @ (a[3:] + jnp.cross(v[:3], v[3:]))


def test_a_ball_that_slides_ends_up_rolling_at_five_sevenths_of_its_speed():
    model, radius = ball(), 0.1
    q0 = pressed(model, model.neutral(), radius, G, 1)
    v0 = jnp.zeros(6).at[3].set(2.0)
    motion = jdyn.simulate(model, q0, v0, 1.0, contact=contact(0.5), stepsize_controller=TIGHT, saveat=END)
    arm = radius - G / STIFFNESS / 2
    velocity = model.rate(motion.q[0], motion.v[0])[0]
    np.testing.assert_allclose(velocity, 2.0 / (1 + 0.4 * (radius / arm) ** 2), rtol=1e-8)
    np.testing.assert_allclose(velocity, 2.0 * 5 / 7, rtol=1e-3)


def test_a_box_at_rest_bears_its_weight_and_loses_no_energy_before_it_has_to():
    model, law = box(), contact(0.5)
    q0 = model.neutral().at[2].set(0.25).at[3:7].set(jnp.array([np.cos(0.15), np.sin(0.15), 0.0, 0.0]))
    motion = jdyn.simulate(model, q0, jnp.zeros(6), 3.0, contact=law, stepsize_controller=TIGHT)
    contacts = motion.contacts
    np.testing.assert_allclose(contacts.force("body")[-1], [0, 0, G], rtol=1e-9, atol=1e-9)
    springs = STIFFNESS / 2 * jnp.sum(contacts.points.depth**2, axis=1)
    energy = motion.energy + springs
    assert np.all(np.diff(energy) < 1e-8) and energy[-1] < energy[0] - 0.1


def test_a_quadruped_stands_on_stiff_feet_in_few_steps():
    """Shanks of 64 g on feet of 5e5 N/m: an explicit method takes tens of thousands of steps a second. Joints have no
    friction, and feet slip easily, since otherwise the last micrometre of creep takes minutes."""
    model = jdyn.with_ground(jdyn.load("quadruped"))
    model = dataclasses.replace(model, friction=jnp.zeros_like(model.friction))
    law = jdyn.CompliantContact(material=jdyn.contact.Material(1e6, 5.0, 0.8), slip_speed=0.03)
    q = model.neutral().at[7:].set(jnp.tile(jnp.array([0.0, -0.8, 1.6]), 4)).at[2].set(0.285)
    hold = jnp.zeros(model.nv).at[6:].set(1.0)
    legs = jdyn.PD(model, q, kp=200 * hold, kd=10 * hold)
    motion = jdyn.simulate(model, q, jnp.zeros(model.nv), 6.0, contact=law, controller=legs)
    contacts = motion.contacts
    weight = G * float(jnp.sum(model.inertias.mass))
    moved = motion.accelerations[-1]
    borne = sum(contacts.force(f"{leg}_foot")[-1, 2] for leg in ("fr", "fl", "rr", "rl"))
    np.testing.assert_allclose(borne, weight, rtol=1e-9)
    assert np.abs(moved).max() < 1e-6
    assert motion.stats["accepted_steps"] + motion.stats["rejected_steps"] < 1500


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_painleve_s_rod_has_an_answer(way):
    """A rod that slides on one end at a slope where rigid bodies have no acceleration, or several: springs have one."""
    slope, friction, length = 1.0, 2.0, 1.0
    assert 1 + 3 * np.cos(slope) * (np.cos(slope) - friction * np.sin(slope)) < 0
    model = on_the_ground("capsule", (0.01, length), (length**2 / 12, length**2 / 12, 1e-3))
    turn = (np.pi / 2 - slope) / 2
    height = 0.01 + length / 2 * np.sin(slope)
    q0 = jnp.array([0.0, 0.0, height, np.cos(turn), 0.0, np.sin(turn), 0.0])
    forwards = jdyn.forward_kinematics(model, q0).rotation[0].T @ jnp.array([way, 0.0, 0.0])
    law = contact(friction)
    motion = jdyn.simulate(model, q0, jnp.zeros(6).at[3:].set(forwards), 0.3, contact=law)
    energy = motion.energy + STIFFNESS / 2 * jnp.sum(motion.contacts.points.depth**2, axis=1)
    assert motion.success and np.all(np.diff(energy) < 1e-4)


def test_a_stack_of_ten_boxes_stands_for_ten_seconds():
    """Where four springs a layer bear all boxes above it, without falling, creeping or swinging beyond tolerances."""
    count, side = 10, 0.1
    model, q = stack(count, side)
    control = diffrax.PIDController(rtol=1e-3, atol=1e-5)
    motion = jdyn.simulate(
        model, q.ravel(), jnp.zeros(6 * count), 10.0, contact=contact(0.5), stepsize_controller=control, saveat=END
    )
    end = np.asarray(motion.q[-1]).reshape(count, 7)
    np.testing.assert_allclose(end[:, :2], q[:, :2], atol=2e-4)
    sunk = np.cumsum(G / (4 * STIFFNESS) * np.arange(count, 0, -1))
    np.testing.assert_allclose(end[:, 2], q[:, 2] - sunk, rtol=0, atol=1e-5)
    assert np.abs(motion.v[-1]).max() < 1e-4
