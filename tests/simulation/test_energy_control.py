"""Steps judged by their energy, against closed forms and the account of the energy itself."""

import dataclasses
import importlib.util
import pathlib

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

LOOSE = diffrax.PIDController(rtol=1e-2, atol=1e-2)


def pair(stiffness, damping):
    """Two particles of 1 kg on a line, with a spring and a damper between them."""
    builder = jdyn.Builder("pair", gravity=(0, 0, 0))
    builder.add_link("one", jdyn.Prismatic((1, 0, 0)), mass=1.0)
    builder.add_link("other", jdyn.Prismatic((1, 0, 0)), parent="one", mass=1.0, stiffness=stiffness, damping=damping)
    return builder.build()


def tree():
    """Every kind of passive force, on a branching mechanism with rotations."""
    builder = jdyn.Builder("tree")
    passive = dict(damping=0.3, friction=0.2, stiffness=2.0)
    builder.add_link("hull", jdyn.Ball(), mass=2.0, com=(0.1, 0, 0.2), inertia=(0.03, 0.04, 0.05), **passive)
    builder.add_link("arm", jdyn.Revolute((1, 0, 0)), parent="hull", mass=0.5, com=(0, 0, 0.3), **passive)
    builder.add_link("leg", jdyn.Prismatic((0, 0, 1)), parent="hull", mass=0.5, com=(0.2, 0, 0), **passive)
    return builder.build()


def pushed(t, q, v):
    return jnp.sin(3 * t) - 0.1 * v


@pytest.mark.slow
def test_work_is_accounted_for():
    """The energy that a state ought to have is the one it has, with every force at work."""
    model = tree()
    trajectory = jdyn.simulate(
        model, model.random(jax.random.key(0)), jnp.ones(model.nv), 1.0, controller=pushed,
        solver=jdyn.solvers.EnergyError(diffrax.Dopri8()), stepsize_controller=diffrax.PIDController(rtol=1e-10,
        atol=1e-10),
    )  # fmt: skip
    energy = jax.vmap(lambda q, v: jdyn.kinetic_energy(model, q, v) + jdyn.potential_energy(model, q))
    given = trajectory.parts["supplied"]
    assert np.ptp(given) > 0.5
    np.testing.assert_allclose(energy(trajectory.q, trajectory.v), given, rtol=0, atol=2e-8)


@pytest.mark.parametrize("rule", [LOOSE, jdyn.solvers.HalveOrGrow(1e-4)], ids=["PID", "RobotPhi"])
def test_energy_holds_the_steps_of_a_solver_without_an_estimate(rule):
    model = pair(100.0, 5.0)
    q0, v0 = jnp.array([0.0, 0.3]), jnp.zeros(2)
    trajectory = jdyn.simulate(
        model, q0, v0, 2.0, solver=jdyn.solvers.EnergyError(diffrax.Heun()), stepsize_controller=rule, saveat=[0.4, 1.0]
    )
    # The relative motion: half the mass, on the spring and the damper.
    omega, decay = np.sqrt(200.0 - 5.0**2), 5.0
    t = np.array([0.4, 1.0])
    exact = 0.3 * np.exp(-decay * t) * (np.cos(omega * t) + decay / omega * np.sin(omega * t))
    np.testing.assert_allclose(trajectory.q[:, 1], exact, atol=5e-3)
    assert 10 < trajectory.stats["accepted_steps"] < 400


def test_steps_settle_that_are_judged_by_energy_alone():
    """The step controller knows the order of what it is shown; else every other step is too long."""
    model = pair(100.0, 5.0)
    trajectory = jdyn.simulate(
        model, [0.0, 0.1], [0.0, 0.0], 4.0, solver=jdyn.solvers.EnergyError(jdyn.solvers.SemiImplicitEuler()),
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-4),
    )  # fmt: skip
    # 46 to 152; with the order of the solver itself 162 to 194.
    assert int(trajectory.stats["rejected_steps"]) < 0.5 * int(trajectory.stats["accepted_steps"])


def test_steps_are_halved_and_grow_by_half():
    model = pair(100.0, 0.0)
    trajectory = jdyn.simulate(
        model, [0.0, 0.3], [0.0, 0.0], 1.0, solver=jdyn.solvers.EnergyError(diffrax.Heun()), dt0=0.05,
        stepsize_controller=jdyn.solvers.HalveOrGrow(1e-5), saveat=diffrax.SaveAt(steps=True), max_steps=4000,
    )  # fmt: skip
    ends = np.concatenate([[0], trajectory.ts[np.isfinite(trajectory.ts)]])
    # The end cuts the last few short.
    steps = np.diff(ends)[:-5]
    ratios = np.log(steps[1:] / steps[:-1])
    # Each is 3/2 of the one before, halved some number of times.
    halved = (np.log(1.5) - ratios) / np.log(2)
    np.testing.assert_allclose(halved, np.round(halved), atol=1e-6)
    assert np.all(np.round(halved) >= 0)
    stored = jax.vmap(lambda q, v: jdyn.kinetic_energy(model, q, v) + jdyn.potential_energy(model, q))(
        trajectory.q[: len(ends) - 1], trajectory.v[: len(ends) - 1]
    )
    assert np.max(np.abs(np.diff(stored))) < 1e-5


def test_steps_grow_no_longer_than_the_longest():
    # At rest every step is exact.
    trajectory = jdyn.simulate(
        pair(100.0, 5.0), [0.0, 0.0], [0.0, 0.0], 1.0, solver=jdyn.solvers.EnergyError(diffrax.Heun()), dt0=0.3,
        stepsize_controller=jdyn.solvers.HalveOrGrow(1e-5, longest=0.125), saveat=diffrax.SaveAt(steps=True),
        max_steps=20,
    )  # fmt: skip
    np.testing.assert_allclose(trajectory.ts[:8], np.arange(1, 9) / 8, rtol=1e-12)
    assert np.all(~np.isfinite(trajectory.ts[8:]))


@pytest.mark.slow
def test_figure_21():
    """Joukhadar's comparison, by the benchmark: steps that follow the energy are better than as many of one length."""
    path = pathlib.Path(__file__).parents[2] / "benchmarks" / "energy_control.py"
    spec = importlib.util.spec_from_file_location("energy_control", path)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    adaptive, constant = benchmark.figure_21(stretch=0.5, longest=0.065)
    assert len(constant.steps) == len(adaptive.steps)
    # 5.9 times; 4.5 at 0.2 m and 6.5 at 1 m, so much does it depend on which steps are halved.
    assert adaptive.mean < constant.mean / 4
    assert adaptive.largest < constant.largest / 4


@pytest.mark.slow
def test_events_do_work():
    builder = jdyn.Builder("ball")
    builder.add_link("ball", jdyn.Prismatic((0, 0, 1)), mass=1.0)
    bounce = jdyn.Event(lambda t, y: y.q[0], lambda t, y: dataclasses.replace(y, v=-0.5 * y.v))
    trajectory = jdyn.simulate(
        builder.build(),
        [1.0],
        [0.0],
        1.0,
        events=[bounce],
        solver=jdyn.solvers.EnergyError(diffrax.Tsit5()),
        saveat=[0.1, 0.6],
    )
    np.testing.assert_allclose(trajectory.parts["supplied"], [9.81, 9.81 / 4], rtol=1e-12)


def test_halving_needs_an_energy():
    with pytest.raises(ValueError, match=r"wrap it as jdyn\.solvers\.EnergyError"):
        jdyn.simulate(pair(1.0, 0.0), [0.0, 0.1], [0.0, 0.0], 1.0, stepsize_controller=jdyn.solvers.HalveOrGrow(1e-3))
