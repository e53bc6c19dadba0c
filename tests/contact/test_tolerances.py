"""What tolerances of a simulation buy where shapes touch: loose ones are cheap, and errors follow them."""

import dataclasses

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
    """A box that falls on an edge, rocks and comes to rest, 1 s."""
    model = box()
    return model, model.neutral().at[2].set(0.3).at[3:7].set(jnp.array([np.cos(0.15), np.sin(0.15), 0, 0])), 1.0, None


@pytest.mark.parametrize("scene", [landing, tumbling])
def test_time_and_error_follow_the_tolerance_to_its_loosest(scene):
    """Against steps a thousand times as fine. Relative tolerances measure configurations of about 1 and absolute ones
    speeds near rest; friction stops what slips, so that errors of contact die out."""
    model, q0, t1, controller = scene()

    @jax.jit
    def run(tolerance):
        steps = diffrax.PIDController(rtol=tolerance, atol=1e-2 * tolerance)
        return jdyn.simulate(
            model, q0, jnp.zeros(model.nv), t1, controller=controller, contact=jdyn.CompliantContact(),
            stepsize_controller=steps, saveat=diffrax.SaveAt(t1=True), throw=False,
        )  # fmt: skip

    exact = run(1e-7)
    tries = []
    for tolerance in (1e-1, 1e-2, 1e-3, 1e-4):
        found = run(tolerance)
        tries.append(int(found.stats["accepted_steps"] + found.stats["rejected_steps"]))
        assert np.abs(found.q - exact.q).max() < 10 * tolerance
    # Rejections scatter.
    assert np.all(np.array(tries) < 1.5 * np.minimum.accumulate(tries[::-1])[::-1])
    assert tries[-1] < exact.stats["accepted_steps"] + exact.stats["rejected_steps"]
