"""Steps that say what contact can see where they end."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.simulation.loop import Problem
from tests.contact.scenes import bouncing

MODEL, T1 = bouncing(), 0.6
STEPS = diffrax.PIDController(rtol=1e-5, atol=1e-7)


def motion(start, max_steps):
    """A ball that falls onto the ground, and is lifted as soon as it is 0.1 mm deep."""

    def lifted(t, y):
        return jdyn.State(y.q + 0.02, 0.3 * jnp.abs(y.v), y.memory, y.energy)

    event = jdyn.Event(lambda t, y: y.q[0] - 0.0999, reset=lifted)
    return jdyn.simulate(
        MODEL, start, jnp.zeros(1), T1, contact=jdyn.CompliantContact(), stepsize_controller=STEPS, events=(event,),
        max_steps=max_steps, max_events=8, saveat=diffrax.SaveAt(steps=True),
    )  # fmt: skip


@pytest.fixture(scope="module")
def ahead():
    return motion(jnp.array([0.3]), 300)


def test_motions_are_those_of_steps_that_look_where_they_begin(ahead, monkeypatch):
    monkeypatch.setattr(Problem, "looks_ahead", False)
    # Of another number of steps, since JAX knows the program of that one.
    plain = motion(jnp.array([0.3]), 301)
    happened = int(np.sum(ahead.events.which >= 0))
    assert 2 <= happened < 8
    for name in ("accepted_steps", "rejected_steps", "dynamics_calls", "implicit_steps"):
        assert ahead.stats[name] == plain.stats[name], name
    rows = int(ahead.stats["accepted_steps"])
    # Rounding of heights, times a stiffness over mass times the square of a step: of order one.
    np.testing.assert_allclose(ahead.q[:rows], plain.q[:rows], rtol=0, atol=1e-12)
    np.testing.assert_allclose(ahead.events.q[:happened], plain.events.q[:happened], rtol=0, atol=1e-12)


def test_a_start_within_the_ground_is_seen_before_the_first_step(ahead):
    assert ahead.stats["start_depth"] == 0
    deep = motion(jnp.array([0.097]), 300)
    np.testing.assert_allclose(deep.stats["start_depth"], 0.003, rtol=0, atol=1e-15)


def test_lanes_that_look_around_do_not_keep_others_from_moving(ahead):
    starts = jnp.array([[0.3], [0.12], [0.6]])
    lanes = jax.vmap(lambda start: motion(start, 300))(starts)
    for name in ("accepted_steps", "rejected_steps", "dynamics_calls"):
        assert lanes.stats[name][0] == ahead.stats[name]
    rows = int(ahead.stats["accepted_steps"])
    np.testing.assert_allclose(lanes.q[0, :rows], ahead.q[:rows], rtol=0, atol=1e-12)


def test_as_many_tries_are_allowed_as_are_asked_for():
    fixed = diffrax.ConstantStepSize()
    cut = jdyn.simulate(
        MODEL, jnp.array([0.3]), jnp.zeros(1), 0.1, dt0=0.01, contact=jdyn.CompliantContact(),
        stepsize_controller=fixed, max_steps=7, throw=False,
    )  # fmt: skip
    assert cut.stats["accepted_steps"] == 7
    assert cut.stats["rejected_steps"] == 0
    np.testing.assert_allclose(cut.stats["t_reached"], 0.07, rtol=1e-12)
