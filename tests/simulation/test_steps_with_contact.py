"""Steps with contact begin by detecting what touches."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.simulation import adjoint
from tests.contact.scenes import bouncing

MODEL, T1 = bouncing(), 0.6
STEPS = diffrax.PIDController(rtol=1e-5, atol=1e-7)


def motion(start, max_steps, **options):
    """A ball that falls onto the ground, and is lifted as soon as it is 0.1 mm deep."""

    def lifted(t, y):
        return jdyn.State(y.q + 0.02, 0.3 * jnp.abs(y.v), y.parts)

    event = jdyn.Event(lambda t, y: y.q[0] - 0.0999, reset=lifted)
    options = {"stepsize_controller": STEPS, "saveat": diffrax.SaveAt(steps=True), **options}
    return jdyn.simulate(
        MODEL, start, jnp.zeros(1), T1, contact=jdyn.CompliantContact(), events=(event,), max_steps=max_steps,
        max_events=8, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def single():
    return motion(jnp.array([0.3]), 300)


@pytest.mark.slow
def test_a_start_within_the_ground_is_told(single):
    assert single.stats["start_depth"] == 0
    deep = motion(jnp.array([0.097]), 300)
    np.testing.assert_allclose(deep.stats["start_depth"], 0.003, rtol=0, atol=1e-15)


@pytest.mark.parametrize("apart", [pytest.param(apart, marks=pytest.mark.slow) for apart in (True, False)])
def test_lanes_do_not_wait_for_each_other(single, apart, monkeypatch):
    """One by one, as on a CPU, or side by side."""
    simulation = adjoint._simulation
    monkeypatch.setattr(adjoint, "_simulation", lambda problem_of, _, take: simulation(problem_of, apart, take))
    starts = jnp.array([[0.3], [0.12], [0.6]])
    lanes = jax.vmap(lambda start: motion(start, 300))(starts)
    for name in ("accepted_steps", "rejected_steps", "dynamics_calls"):
        assert lanes.stats[name][0] == single.stats[name]
    rows = int(single.stats["accepted_steps"])
    np.testing.assert_allclose(lanes.q[0, :rows], single.q[:rows], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_as_many_tries_are_allowed_as_are_asked_for():
    fixed = diffrax.ConstantStepSize()
    cut = jdyn.simulate(
        MODEL, jnp.array([0.3]), jnp.zeros(1), 0.1, dt0=0.01, contact=jdyn.CompliantContact(),
        stepsize_controller=fixed, max_steps=7, throw=False,
    )  # fmt: skip
    assert cut.stats["accepted_steps"] == 7
    assert cut.stats["rejected_steps"] == 0
    np.testing.assert_allclose(cut.stats["t_reached"], 0.07, rtol=1e-12)
