"""Steps that say what contact can see where they end."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.simulation import adjoint
from jdyn.simulation.loop import Problem
from tests.contact.scenes import ball, bouncing, box

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


def _of_balls(max_steps):
    """Two balls over the ground, of which those points alone are known that belong to the lower one."""
    builder = jdyn.Builder("balls")
    for name in "ab":
        builder.add_link(name, jdyn.Prismatic((0, 0, 1)), mass=1.0, inertia=4e-3)
        builder.add_shape(name, "sphere", 0.1, placement=(0, ord(name) - ord("a"), 0), role="collision")
    builder.add_shape("world", "plane", (0, 0), role="collision")
    return _thrown(builder.build(), [0.12, 0.25], [0.0, 0.0], 0.4, jdyn.CompliantContact(nearest=1), max_steps)


def _thrown(model, q, v, t1, contact, max_steps):
    return jdyn.simulate(
        model, jnp.asarray(q), jnp.asarray(v), t1, contact=contact, stepsize_controller=STEPS, max_steps=max_steps,
        max_events=9, saveat=diffrax.SaveAt(steps=True),
    )  # fmt: skip


def _of_a_box(max_steps):
    """It falls on an edge, which slips."""
    q, v = [0, 0, 0.26, 0.96, 0.2, 0.1, 0.1], [1.0, -2.0, 0.5, 0.6, 0.3, -1.0]
    return _thrown(box(), q, v, 0.06, jdyn.CompliantContact(), max_steps)


def _of_steps_that_end_at_touches(max_steps):
    q, v = [0, 0, 0.12, 1.0, 0, 0, 0], [0, 5.0, 0, 0.3, 0, 0]
    return _thrown(ball(), q, v, 0.1, jdyn.CompliantContact(located=True), max_steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [*(pytest.param(x, marks=pytest.mark.exhaustive) for x in (_of_balls, _of_a_box)), _of_steps_that_end_at_touches],
)
def test_other_motions_are_those_of_steps_that_look_where_they_begin(kind, monkeypatch):
    """All steps are the same; by the end rounding has grown to less than a thousandth of the tolerance."""
    ahead = kind(400)
    monkeypatch.setattr(Problem, "looks_ahead", False)
    plain = kind(401)
    for name in ("accepted_steps", "rejected_steps", "dynamics_calls", "implicit_steps"):
        assert ahead.stats[name] == plain.stats[name], name
    end = int(ahead.stats["accepted_steps"]) - 1
    np.testing.assert_allclose(ahead.q[end], plain.q[end], rtol=0, atol=1e-8)


@pytest.mark.parametrize("apart", [pytest.param(apart, marks=pytest.mark.slow) for apart in (True, False)])
def test_lanes_that_look_around_do_not_keep_others_from_moving(ahead, apart, monkeypatch):
    """One by one, as on a CPU, or side by side."""
    simulation = adjoint._simulation
    monkeypatch.setattr(adjoint, "_simulation", lambda problem_of, _, take: simulation(problem_of, apart, take))
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
