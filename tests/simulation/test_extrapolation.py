"""Extrapolation methods: order of their columns, tolerances, stiff joints, batches."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jdyn
from tests.simulation.test_solvers import (
    BUOY,
    END,
    PENDULUM,
    Q0,
    STARTS,
    SWING,
    U0,
    WAVES,
    distances,
    fly,
    in_lanes,
    named,
    reference,
    run,
    slopes,
)  # fmt: skip

pytestmark = pytest.mark.fast_compile

__all__ = ["reference"]


@pytest.mark.parametrize(
    ("solver", "order", "steps"),
    [
        pytest.param(jdyn.solvers.BulirschStoer(columns=2), 4, [16, 32, 64], marks=pytest.mark.slow),
        pytest.param(
            jdyn.solvers.BulirschStoer(columns=3), 6, [16, 32, 64], marks=[pytest.mark.slow, pytest.mark.exhaustive]
        ),
        pytest.param(
            jdyn.solvers.BaderDeuflhard(columns=2), 3, [64, 128, 256], marks=[pytest.mark.slow, pytest.mark.exhaustive]
        ),
        pytest.param(
            jdyn.solvers.BaderDeuflhard(columns=3), 5, [32, 64, 128], marks=[pytest.mark.slow, pytest.mark.exhaustive]
        ),
    ],
    ids=lambda x: f"{named(x)}{getattr(x, 'columns', '')}",
)
def test_order_of_columns_on_se3(solver, order, steps, reference):
    errors = distances(*fly(solver, jax.tree.map(in_lanes, STARTS), steps), *reference)
    found = slopes(errors, steps)
    assert np.all(np.abs(found[-1, :, 1] - order) < 0.2), found
    # Dense output, at a third of a step.
    assert np.all(found.mean(axis=0)[:, 0] > order - 0.2), found


@pytest.mark.slow
@pytest.mark.parametrize("solver", [jdyn.solvers.BulirschStoer(), jdyn.solvers.BaderDeuflhard()], ids=named)
def test_order_and_step_follow_the_tolerance(solver, reference):
    evaluations = []
    for tolerance in (1e-5, 1e-8, 1e-11):
        control = diffrax.PIDController(rtol=jnp.array(tolerance), atol=jnp.array(tolerance))
        found = run(solver, BUOY, WAVES, Q0, U0, control)
        steps = int(found.stats["accepted_steps"])
        errors = distances(found.q, found.v, reference[0][1], reference[1][1])
        # The motion is damped, so errors of steps add up at most; each may be the tolerance times 1 + |y|, |y| < 5, in
        # the mean of 13 entries' squares. Estimates are of long steps: a factor of 2 is left to them.
        assert errors[1] < 2 * 6 * np.sqrt(13) * tolerance * steps + 1e-12, errors
        evaluations.append(int(found.stats["dynamics_calls"]))
    # Six digits more would take order 8 this many times the evaluations.
    assert evaluations[2] < 10 ** (6 / 8) * evaluations[0]


@pytest.mark.slow
@pytest.mark.parametrize("solver", [jdyn.solvers.BulirschStoer(), jdyn.solvers.BaderDeuflhard()], ids=named)
def test_rows_within_steps_are_as_exact_as_ends(solver):
    """A double pendulum, against small steps of another method. Steps are judged by their dense output, too: it was off
    by 5e-5 and 3e-4 at a tolerance of 1e-8, velocities by 8e-3 and 0.16."""
    model, start, times = jdyn.load("double_pendulum"), jnp.array([1.0, 2.0]), jnp.linspace(0, 5, 501)

    def motion(solver, rtol, **options):
        steps = diffrax.PIDController(rtol=rtol, atol=rtol, **options)
        found = jdyn.simulate(model, start, 0 * start, 5.0, solver=solver, saveat=times, stepsize_controller=steps)
        return found.q, found.v, found.stats["accepted_steps"]

    q, v, _ = motion(diffrax.Dopri8(), 1e-12, dtmax=0.02)
    found_q, found_v, steps = jax.jit(jax.vmap(lambda rtol: motion(solver, rtol)))(jnp.array([1e-6, 1e-8, 1e-10]))
    misses = np.abs(np.stack([found_q, found_v]) - np.stack([q, v])[:, None]).max((0, 2, 3))
    # Errors of ends grow a thousandfold in five seconds.
    assert np.all(misses < 1e4 * np.array([1e-6, 1e-8, 1e-10]))
    assert np.all(np.asarray(steps) < [100, 150, 200])


@pytest.mark.slow
def test_lanes_have_orders_of_their_own():
    def swing(tolerance):
        control = diffrax.PIDController(rtol=tolerance, atol=tolerance)
        return run(jdyn.solvers.BulirschStoer(), PENDULUM, None, *SWING, control)

    # Smaller ones are near rounding, which then decides about steps.
    tolerances = jnp.array([1e-4, 1e-8])
    together = jax.vmap(swing)(tolerances)
    for lane, tolerance in enumerate(tolerances):
        alone = swing(tolerance)
        np.testing.assert_allclose(together.q[lane], alone.q, rtol=0, atol=1e-11)
        for name in ("accepted_steps", "rejected_steps", "dynamics_calls"):
            assert together.stats[name][lane] == alone.stats[name]


@pytest.mark.slow
def test_a_stiff_joint_takes_few_steps():
    """A controller that draws a link to its target at a rate of 1 1/s, with a mode that dies at 1e4 1/s."""
    inertia, weight = 0.02 + 1.5 * 0.4**2, 1.5 * 0.4 * 9.81
    gain = 1e4 * inertia
    controller = jdyn.PD(PENDULUM, jnp.array([0.5]), kp=gain, kd=gain)
    control = diffrax.PIDController(rtol=1e-8, atol=1e-8)
    start = jnp.array([0.0]), jnp.array([1.0])

    def end(solver):
        return jdyn.simulate(
            PENDULUM, *start, 2.0, controller=controller, solver=solver, stepsize_controller=control, saveat=END,
            max_steps=50_000,
        )  # fmt: skip

    def rate(t, y):
        return [y[1], (gain * (0.5 - y[0]) - gain * y[1] - weight * np.sin(y[0])) / inertia]

    exact = solve_ivp(rate, (0, 2), [0.0, 1.0], method="Radau", rtol=1e-11, atol=1e-12).y[:, -1]
    stiff, explicit = end(jdyn.solvers.BaderDeuflhard()), end(diffrax.Tsit5())
    np.testing.assert_allclose([stiff.q[-1, 0], stiff.v[-1, 0]], exact, rtol=0, atol=1e-7)
    assert stiff.stats["accepted_steps"] + stiff.stats["rejected_steps"] < 50
    # Explicit steps are stable up to 3.3 / rate.
    assert int(explicit.stats["accepted_steps"]) > 2e4 / 3.5


def test_works_in_diffrax_alone_and_says_what_it_needs():
    def decay(t, y, args):
        return -y * jnp.cos(t)

    def solved(solver):
        control = diffrax.PIDController(rtol=1e-10, atol=1e-10)
        return diffrax.diffeqsolve(
            diffrax.ODETerm(decay), solver, 0.0, 3.0, 0.5, jnp.ones(2), stepsize_controller=control
        ).ys[-1]  # fmt: skip

    np.testing.assert_allclose(
        solved(jdyn.solvers.BulirschStoer(rtol=1e-10, atol=1e-10)), np.exp(-np.sin(3)), rtol=1e-9
    )
    with pytest.raises(ValueError, match=r"BulirschStoer: expected tolerances; .* BulirschStoer\(rtol=, atol=\)"):
        solved(jdyn.solvers.BulirschStoer())
    with pytest.raises(ValueError, match="columns: expected 2 to 7, or None, got 1"):
        jdyn.solvers.BulirschStoer(columns=1)
