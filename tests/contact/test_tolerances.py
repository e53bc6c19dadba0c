"""What tolerances of a simulation buy where shapes touch: loose ones are cheap, and errors follow them."""

import dataclasses
import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.contact.scenes import box

pytestmark = [pytest.mark.fast_compile, pytest.mark.slow]


def landing():
    """A quadruped that falls 5 mm onto its feet and stands, 0.15 s."""
    model = jdyn.with_ground(jdyn.load("quadruped"))
    model = dataclasses.replace(model, friction=jnp.zeros(model.nv))
    q0 = model.neutral().at[2].set(0.2875).at[7:].set(jnp.tile(jnp.array([0, -0.8, 1.6]), 4))
    kp, kd = (jnp.full(model.nv, gain).at[:6].set(0) for gain in (60.0, 2.0))
    return model, q0, 0.15, jdyn.PD(model, q0, kp=kp, kd=kd)


def tumbling():
    """A box that falls on an edge, rocks and comes to rest, 1.5 s; with some roundings it still rocks after 1 s."""
    model = box()
    return model, model.neutral().at[2].set(0.3).at[3:7].set(jnp.array([np.cos(0.15), np.sin(0.15), 0, 0])), 1.5, None


@functools.cache
def program(scene):
    """The motion of a scene at a tolerance, from so far above its start, and its model."""
    model, q0, t1, controller = scene()

    def run(tolerance, raised=0.0):
        steps = diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance)
        return jdyn.simulate(
            model, q0.at[2].add(raised), jnp.zeros(model.nv), t1, controller=controller,
            contact=jdyn.CompliantContact(), stepsize_controller=steps, throw=False,
        )  # fmt: skip

    return jax.jit(run), model


LOOSE = (1e-1, 1e-2, 1e-3, 1e-4)


@pytest.mark.parametrize(("scene", "few"), [pytest.param(landing, 24, marks=pytest.mark.exhaustive), (tumbling, 550)])
def test_time_and_error_follow_the_tolerance_to_its_loosest(scene, few):
    """Against steps a thousand times as fine; friction stops what slips, so that errors of contact die out. At 1e-2,
    steps that found out by failing what they touch were 34 and 590."""
    run, _ = program(scene)
    every = []
    for raised in 1e-3 * np.arange(4):
        exact, motions = run(1e-7, raised), [run(tolerance, raised) for tolerance in LOOSE]
        errors = np.array([np.abs(found.q[-1] - exact.q[-1]).max() for found in motions])
        assert np.all(errors < 10 * np.array(LOOSE))
        every.append([found.stats["accepted_steps"] + found.stats["rejected_steps"] for found in (*motions, exact)])
    tries = np.mean(every, axis=0)
    # Rejections scatter. Where slip ends within a long step at 1e-1, some five to ten fail.
    assert np.all(tries < np.array([2, 1.5, 1.5, 1.5, 1.5]) * np.minimum.accumulate(tries[::-1])[::-1])
    assert tries[1] < few


def test_what_falls_on_an_edge_gains_no_energy_at_any_tolerance():
    """That of its motion, its height and its springs, which nobody feeds."""
    run, _ = program(tumbling)
    for tolerance in LOOSE:
        motion = run(tolerance)
        depth = motion.contacts.points.depth
        energy = motion.energy + 1e5 / 2 * jnp.sum(depth**2, axis=1)
        assert np.all(np.diff(energy) < 10 * tolerance * energy[0])
        # It keeps that of its height at rest.
        assert np.all(energy < (1 + tolerance) * energy[0]) and energy[-1] < 0.7 * energy[0]
