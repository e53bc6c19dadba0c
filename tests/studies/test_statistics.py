"""What is told of a motion and of the steps that it took, against closed forms and counts of their own."""

import dataclasses
import pathlib

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

import jdyn
from jdyn.robots import prrr
from jdyn.studies.cloutier1995 import (
    FIGURE_5_2,
    QualityControl,
    Session,
    Steps,
    WithRate,
    roundings,
    simulated,
    take_steps,
    two_links,
)

ROOT = pathlib.Path(__file__).parents[2]
G = 9.8
TAU = np.array([3.0, -1.0])


class Push(jdyn.Controller):
    """A constant torque that counts how often it is asked for."""

    def __call__(self, t, q, v):
        io_callback(lambda: calls.append(1), None)
        return jnp.asarray(TAU)


calls = []
START = jnp.array([1.0, 0.5])


def two_link_terms(lengths, masses, q, v):
    """Mass matrix, bias and energies of two rectangular links of unit width, as textbooks have them."""
    (l1, l2), (m1, m2), (q1, q2) = lengths, masses, q
    I1, I2 = (m * (l**2 + 1) / 12 for m, l in zip(masses, lengths, strict=True))
    c = m2 * l1 * l2 / 2
    M22 = I2 + m2 * l2**2 / 4
    M12 = M22 + c * np.cos(q2)
    M11 = I1 + m1 * l1**2 / 4 + m2 * l1**2 + M22 + 2 * c * np.cos(q2)
    M = np.array([[M11, M12], [M12, M22]])
    h = c * np.sin(q2) * np.array([-v[1] * (2 * v[0] + v[1]), v[0] ** 2])
    weights = G * np.array([(m1 / 2 + m2) * l1, m2 * l2 / 2])
    g2 = weights[1] * np.cos(q1 + q2)
    potential = weights @ np.sin([q1, q1 + q2])
    return M, h + np.array([weights[0] * np.cos(q1) + g2, g2]), v @ M @ v / 2, potential


def motion_through(system, q, v):
    """States as if they were those of a motion."""
    rows = np.arange(len(q))
    return Steps(system, 0.1 * rows, np.array(q), np.array(v), {}, rows, 6 * rows, jdyn.Result.success)


@pytest.mark.slow
def test_two_links_against_closed_forms():
    rng = np.random.default_rng(0)
    states = rng.uniform(-3, 3, (2, 5, 2))
    system = jdyn.System(two_links(3.0), controller=jdyn.control.Constant(TAU))
    found = jdyn.studies.statistics(motion_through(system, *states))
    for row, (q, v) in enumerate(zip(*states, strict=True)):
        M, h, kinetic, potential = two_link_terms((1, 3), (1, 3), q, v)
        np.testing.assert_allclose(found.a[row], np.linalg.solve(M, TAU - h), rtol=1e-11, atol=1e-11)
        assert found.condition[row] == pytest.approx(np.linalg.cond(M), rel=1e-11)
        np.testing.assert_allclose([found.kinetic[row], found.potential[row]], [kinetic, potential], rtol=1e-12)
    np.testing.assert_array_equal(found.energy, found.kinetic + found.potential)
    np.testing.assert_array_equal(found.evaluations, [0, 6, 6, 6, 6])


@pytest.mark.slow
def test_the_difference_follows_the_condition_number():
    """Equation 5.1: about κ times the rounding of a number. It is that of the linear solver in use."""
    states = np.linspace([0, 0.1], [0, 3.0], 20), np.zeros((20, 2))
    systems = [jdyn.System(two_links(1e4), method=method) for method in (None, jdyn.CRBA("lu"))]
    by_cholesky, by_lu = (jdyn.studies.statistics(motion_through(system, *states)) for system in systems)
    bound = np.finfo(float).eps * by_lu.condition[:, None]
    for found in (by_cholesky, by_lu):
        assert np.all(found.difference < 10 * bound) and np.max(found.difference) > 1e-3 * np.max(bound)
    assert np.any(by_cholesky.difference != by_lu.difference)
    # Only the second motion has its accelerations by CRBA.
    np.testing.assert_array_equal(by_lu.difference, np.abs((by_cholesky.a - by_lu.a) / by_cholesky.a))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_rotations_and_rows_that_were_not_reached():
    model = jdyn.random_tree(1, 2, kinds=(jdyn.Ball, jdyn.Revolute))
    motion = jdyn.simulate(model, model.random(jax.random.key(0)), jnp.ones(model.nv), 5.0, max_steps=12, throw=False)
    found = jdyn.studies.statistics(motion)
    reached = np.isfinite(motion.q[:, 0])
    assert 1 < np.sum(reached) < len(reached)
    for values in (found.a[:, 0], found.energy, found.condition, found.difference[:, 0]):
        np.testing.assert_array_equal(np.isfinite(values), reached)
    assert np.max(found.difference[reached]) < 1e-9
    singular = np.linalg.svd(np.array(jdyn.mass_matrix(model, motion.q[1])), compute_uv=False)
    assert found.condition[1] == pytest.approx(singular[0] / singular[-1], rel=1e-9)
    assert found.evaluations is None


def test_a_batch_is_refused():
    batch = motion_through(jdyn.System(prrr(2)), np.zeros((5, 3, 2)), np.zeros((5, 3, 2)))
    with pytest.raises(ValueError, match="of a batch take one lane"):
        jdyn.studies.statistics(batch)


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver", [None, pytest.param(diffrax.Tsit5(), marks=pytest.mark.exhaustive)], ids=["thesis", "Tsit5"]
)
def test_evaluations_are_as_many_as_happen(solver):
    """Each one asks for the torque once."""
    calls.clear()
    control = None if solver is None else diffrax.PIDController(rtol=1e-6, atol=1e-6)
    system = jdyn.System(prrr(2), controller=Push())
    steps = take_steps(system, system.state(START), 1.0, solver=solver, stepsize_controller=control, dt0=0.5)
    jax.effects_barrier()
    assert steps.result == jdyn.Result.success
    assert steps.tries[-1] > len(steps.ts) - 1
    assert steps.evaluations[-1] == len(calls)
    silent = dataclasses.replace(steps, system=jdyn.System(prrr(2), controller=jdyn.control.Constant(TAU)))
    found = jdyn.studies.statistics(silent.thinned(0.1, 100))
    assert np.sum(found.evaluations) == len(calls) and found.evaluations[0] == 0


def test_a_step_that_is_too_short_ends_the_motion():
    control = QualityControl(accuracy=1e-4, smallest=1e-3)
    system = jdyn.System(prrr(2))
    steps = take_steps(system, system.state(), 1.0, stepsize_controller=control)
    assert steps.result != jdyn.Result.success and list(steps.ts) == [0]
    assert len(steps.thinned(0.1, 10).ts) == 1


def test_the_rule_and_the_rate_go_together():
    system = jdyn.System(prrr(2))
    with pytest.raises(ValueError, match="wrap it as WithRate"):
        take_steps(system, system.state(), 1.0, solver=jdyn.solvers.CashKarp())
    with pytest.raises(ValueError, match="expected an explicit Runge-Kutta method, got Rodas5P"):
        WithRate(jdyn.solvers.Rodas5P())


def test_rows_are_thinned_as_the_thesis_saves_them():
    system = jdyn.System(prrr(2))
    steps = take_steps(system, system.state(START), 1.0)
    saved = steps.thinned(0.1, 100)
    assert saved.ts[0] == 0 and saved.ts[-1] == steps.ts[-1] == 1
    assert np.all(np.diff(saved.ts[:-1]) > 0.1)
    assert len(steps.thinned(0.0, 100).ts) == len(steps.ts)
    few = steps.thinned(0.0, 3)
    assert list(few.ts) == [0, steps.ts[1], 1] and few.evaluations[-1] == steps.evaluations[-1]


def recipe(rate, y, t1, accuracy):
    """`odeint` of Numerical Recipes: times of the steps, and how many were tried."""
    solver = jdyn.solvers.CashKarp().tableau
    rows = [np.zeros(0), *solver.a_lower[:-1]]
    t, h, times, tries = 0.0, 0.01, [0.0], 0
    while t < t1:
        scale = np.abs(y) + np.abs(h * rate(y)) + 1e-30
        h = min(h, t1 - t)
        while True:
            tries += 1
            k = np.zeros((6, len(y)))
            for i, row in enumerate(rows):
                k[i] = h * rate(y + row @ k[: len(row)])
            worst = np.max(np.abs(solver.b_error[:6] @ k) / scale) / accuracy
            if worst <= 1:
                break
            h = max(0.9 * h * worst**-0.25, 0.1 * h)
        t, y = t + h, y + solver.b_sol[:6] @ k
        times.append(t)
        h = min(0.9 * worst**-0.2, 5.0) * h
    return np.array(times), tries


def test_steps_are_those_of_numerical_recipes():
    def rate(y):
        M, h, *_ = two_link_terms((1, 3), (1, 3), y[:2], y[2:])
        return np.concatenate([y[2:], np.linalg.solve(M, TAU - h)])

    q0, v0 = np.array([0.4, -0.7]), np.array([1.0, 2.0])
    system = jdyn.System(two_links(3.0), controller=jdyn.control.Constant(TAU))
    steps = take_steps(system, system.state(q0, v0), 3.0)
    times, tries = recipe(rate, np.concatenate([q0, v0]), 3.0, 1e-4)
    assert tries == steps.tries[-1] > len(times)
    np.testing.assert_allclose(steps.ts, times, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_the_session_of_figure_5_2():
    """Rounding decides how long the first step is, and with it all counts. Of starts that differ by units in the last
    place most take the thesis' good and bad steps and save as many rows; some need its evaluations, too, and their mean
    energies surround the printed one."""
    runs, (energy, *counts) = roundings(Session(), 201), FIGURE_5_2
    steps = "successful steps", "bad steps", "steps saved"
    assert {name: runs.most_frequent(name) for name in steps} == {name: FIGURE_5_2[name] for name in steps}
    assert runs.share(steps) > 0.3 and 0 < runs.share(tuple(counts)) < runs.share(steps)
    assert runs.nearest_energy(tuple(counts)) == pytest.approx(FIGURE_5_2[energy], abs=1e-3)
    assert 1e-10 < min(runs.first_steps) and max(runs.first_steps) < 1e-7


@pytest.mark.slow
def test_an_outcome_is_one_of_the_roundings():
    """The start in the middle is that of the session. Two programs give its energies, by sums of some fifty terms."""
    outcome, runs = simulated(Session(t1=2.0)), roundings(Session(t1=2.0), 3)
    found = {
        "average energy [J]": pytest.approx(outcome.average_energy, rel=50 * np.finfo(float).eps),
        "successful steps": outcome.steps.good_steps,
        "bad steps": outcome.steps.bad_steps,
        "function evaluations": outcome.thesis_evaluations,
        "steps saved": len(outcome.statistics.ts),
    }
    assert found == {name: numbers[1] for name, numbers in runs.numbers.items()}
    assert abs(outcome.drift) < 0.2
    with pytest.raises(ValueError, match="expected 'rka'"):
        roundings(Session(integration="rk"))
