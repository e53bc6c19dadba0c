"""Evaluations of forward dynamics that solvers say they make, against as many as happen."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.simulation.test_solvers import PENDULUM, named

pytestmark = pytest.mark.fast_compile

END = diffrax.SaveAt(t1=True)
TALLY = {"evaluations": 0, "jacobians": 0}


def tick(name):
    def tell():
        TALLY[name] += 1

    jax.debug.callback(tell)


@jax.custom_jvp
def overheard(v):
    """-v/10, which tells apart where it is evaluated and where its derivative is taken."""
    tick("evaluations")
    return -0.1 * v


@overheard.defjvp
def _derivative(primals, tangents):
    tick("jacobians")
    return -0.1 * primals[0], -0.1 * tangents[0]


class Drag(jdyn.Controller):
    """No function, of which a trajectory keeps the forces in rows."""

    def __call__(self, t, q, v):
        return overheard(v)


control = Drag()


def swing(speed, solver, rtol=1e-5):
    # The first step is too long for any solver.
    steps = diffrax.PIDController(rtol=rtol, atol=rtol)
    if not isinstance(solver, diffrax.AbstractAdaptiveSolver) and not isinstance(solver, jdyn.solvers.EnergyError):
        steps = diffrax.ConstantStepSize()
    dt0 = 0.05 if isinstance(steps, diffrax.ConstantStepSize) else 0.8
    return jdyn.simulate(
        PENDULUM, jnp.array([2.5]), speed[None], 1.0, controller=control, solver=solver, stepsize_controller=steps,
        saveat=END, dt0=dt0, throw=False,
    )  # fmt: skip


SOLVERS = [
    diffrax.Tsit5(),
    diffrax.Heun(),
    diffrax.Kvaerno5(),
    diffrax.HalfSolver(jdyn.solvers.StormerVerlet()),
    diffrax.HalfSolver(diffrax.Bosh3()),
    diffrax.HalfSolver(jdyn.solvers.Automatic()),
    jdyn.solvers.EnergyError(diffrax.Tsit5()),
    jdyn.solvers.EnergyError(jdyn.solvers.ImplicitMidpoint()),
    jdyn.solvers.Automatic(),
    jdyn.solvers.AdamsBashforthMoulton(),
    jdyn.solvers.BaderDeuflhard(),
    jdyn.solvers.BulirschStoer(),
    jdyn.solvers.CashKarp(),
    jdyn.solvers.ImplicitMidpoint(),
    jdyn.solvers.LinearlyImplicitEuler(),
    jdyn.solvers.ROSJ43(),
    jdyn.solvers.Rodas5P(),
    jdyn.solvers.SemiImplicitEuler(),
    jdyn.solvers.StormerVerlet(),
]
IMPLICIT = (
    diffrax.Kvaerno5,
    jdyn.solvers.BaderDeuflhard,
    jdyn.solvers.ImplicitMidpoint,
    jdyn.solvers.Rodas5P,
    jdyn.solvers.StormerVerlet,
)
# Wrappers and solvers whose kind others show.
OF_OTHERS = (
    "HalfSolver StormerVerlet", "EnergyError ImplicitMidpoint", "Kvaerno5", "Heun", "StormerVerlet", "CashKarp",
    "HalfSolver Bosh3", "BulirschStoer", "LinearlyImplicitEuler", "SemiImplicitEuler",
)  # fmt: skip


def label(solver):
    inner = getattr(solver, "solver", None)
    return named(solver) + (f" {named(inner)}" if inner is not None else "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver",
    [pytest.param(x, marks=[pytest.mark.exhaustive] * (label(x) in OF_OTHERS)) for x in SOLVERS],
    ids=label,
)
def test_evaluations_are_as_many_as_happen(solver):
    speeds = jnp.array([0.5, 8.0])
    alone = []
    for speed in speeds:
        TALLY.update(evaluations=0, jacobians=0)
        found = jax.block_until_ready(swing(speed, solver))
        jax.effects_barrier()
        assert found.success
        assert found.stats["dynamics_calls"] == TALLY["evaluations"]
        alone.append(found.stats)
        # Diffrax takes a derivative with weight zero in every step before the one that it uses; and that of forces in
        # joints is none of forward dynamics.
        tries = found.stats["accepted_steps"] + found.stats["rejected_steps"]
        unused = (
            tries
            if isinstance(solver, diffrax.Kvaerno5 | jdyn.solvers.LinearlyImplicitEuler | jdyn.solvers.ROSJ43)
            else 0
        )
        unused = found.stats["implicit_steps"] if isinstance(solver, jdyn.solvers.Automatic) else unused
        taken = TALLY["jacobians"] - unused
        assert found.stats["jacobians"] == taken
        assert (taken > 0) == isinstance(solver, IMPLICIT)
    together = jax.vmap(lambda speed: swing(speed, solver))(speeds).stats
    for name in ("dynamics_calls", "jacobians"):
        np.testing.assert_array_equal(together[name], [stats[name] for stats in alone])


@pytest.mark.slow
def test_an_event_takes_two_evaluations():
    TALLY.update(evaluations=0, jacobians=0)
    event = jdyn.Event(lambda t, y: y.q[0] - 2.0, terminate=True)
    found = jdyn.simulate(
        PENDULUM, jnp.array([2.5]), jnp.array([0.5]), 1.0, controller=control, events=[event], saveat=END
    )
    jax.block_until_ready(found)
    jax.effects_barrier()
    assert found.result == jdyn.Result.event
    assert found.stats["dynamics_calls"] == TALLY["evaluations"]


def test_other_solvers_do_not_say():
    found = jdyn.simulate(PENDULUM, jnp.array([2.5]), jnp.array([0.5]), 0.1, solver=diffrax.Euler(), dt0=0.01,
                          stepsize_controller=diffrax.ConstantStepSize(), saveat=END)  # fmt: skip
    assert found.stats["dynamics_calls"] is None and found.stats["jacobians"] is None


def test_rows_that_follow_steps_are_counted():
    rows = diffrax.SaveAt(t0=True, steps=True)
    motion = jdyn.simulate(PENDULUM, jnp.array([2.5]), jnp.array([1.0]), 1.0, saveat=rows, dt0=0.8, max_steps=99)
    tries, calls = motion.stats["row_tries"], motion.stats["row_dynamics_calls"]
    last = int(motion.stats["accepted_steps"])
    assert tries[0] == calls[0] == 0 and motion.stats["rejected_steps"] > 0
    assert tries[last] == last + motion.stats["rejected_steps"] and calls[last] == motion.stats["dynamics_calls"]
    assert np.all(np.diff(tries[: last + 1]) >= 1) and np.all(np.diff(calls[: last + 1]) >= 6)
    # The default solver chooses, and what it rejects it tries again in the same way.
    implicit = motion.stats["row_implicit_steps"]
    assert implicit[last] == motion.stats["implicit_steps"] > 0
    tried, of_these = np.diff(tries[: last + 1]), np.diff(implicit[: last + 1])
    assert np.all((of_these == 0) | (of_these == tried)) and np.any(of_these == 0)
    assert motion.to_xarray()["row_tries"].dims == ("time",)
    assert not any(name.startswith("row_") for name in motion.resample(jnp.linspace(0, 1, 3)).stats)
