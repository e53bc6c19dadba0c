"""The flyball governor, whose dampers are so strong that slider and rods nearly move as one, against Lagrange's
equations."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.reference import flyball

pytestmark = pytest.mark.fast_compile

RTOL = 1e-6


def simulated(times, solver=None):
    model = flyball.governor()
    springs = flyball.Springs(model)
    motion = jdyn.simulate(
        model, *map(jnp.asarray, flyball.START), times[-1], controller=springs, solver=solver,
        saveat=jnp.asarray(times), stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=RTOL / 100),
    )  # fmt: skip
    return model, springs, motion


def compare(motion, times):
    """With Radau's solution, which changes by less than 1e-9 if its tolerance is a hundredth.

    Errors of slider and rods grow at most 1.04-fold until ten seconds, and make the shaft err three times as much. A
    step's fourth-order estimate is held to the tolerance, its fifth-order result is better: hundreds of steps together
    err less than ten times the tolerance.
    """
    shaft, slider, rods = flyball.solution(times)[:3]
    np.testing.assert_allclose(motion.q[:, 1], slider, rtol=0, atol=10 * RTOL)
    np.testing.assert_allclose(motion.q[:, 2], rods, rtol=0, atol=10 * RTOL)
    np.testing.assert_allclose(motion.q[:, 0], shaft, rtol=0, atol=30 * RTOL)
    np.testing.assert_allclose(motion.q[:, 3], motion.q[:, 2], rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_flyball_governor():
    """Ten seconds by `Rodas5P`, which knows how the springs couple joints and tries 750 steps."""
    times = np.linspace(0, 10, 101)
    model, springs, motion = simulated(times, jdyn.solvers.Rodas5P())
    assert motion.stats["accepted_steps"] + motion.stats["rejected_steps"] < 1000
    compare(motion, times)
    # Nothing turns the shaft.
    momentum = jax.vmap(lambda q, v: jdyn.momentum(model, q, v))(motion.q, motion.v)[:, 2]
    np.testing.assert_allclose(momentum, flyball.MOMENTUM, rtol=10 * RTOL)
    stretched = jax.vmap(springs.lengths)(motion.q) - flyball.LENGTH
    energy = motion.energy + flyball.STIFFNESS / 2 * jnp.sum(stretched**2, 1)
    assert np.max(np.diff(energy)) < 10 * RTOL * energy[0]
    assert energy[-1] < energy[0]


@pytest.mark.slow
def test_the_default_solver_follows_the_springs_in_short_steps():
    """It is implicit in each joint's own force, and the springs couple joints: steps stay as short as explicit ones.
    Ten seconds would take 22000, which is more than `max_steps`."""
    times = np.linspace(0, 1, 11)
    motion = simulated(times)[2]
    compare(motion, times)
    assert motion.stats["accepted_steps"] + motion.stats["rejected_steps"] > 1000
