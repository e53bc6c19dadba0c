"""Simulation against closed forms, SciPy, conservation laws, and itself."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from jax.extend.core import jaxprs_in_params

import jdyn
from jdyn.simulation import Result, SimulationError, simulate
from tests.drawn import unit
from tests.simulation import test_manifold as free

pytestmark = pytest.mark.fast_compile

TIGHT = diffrax.PIDController(rtol=1e-10, atol=1e-12)
END = diffrax.SaveAt(t1=True)
INERTIA = np.array([0.03, 0.07, 0.09])


def pendulum(dtype=None, **properties):
    builder = jdyn.Builder("pendulum")
    rod = dict(mass=1.5, com=(0, 0, -0.4), inertia=(0.02, 0.02, 0.001))
    builder.add_link("rod", jdyn.Revolute((0, 1, 0)), **rod, **properties)
    return builder.build(dtype=dtype)


def satellite(gravity=(0, 0, 0)):
    """A free body that carries a wheel on a ball joint and an arm on a hinge."""
    builder = jdyn.Builder("satellite", gravity=gravity)
    builder.add_link("hull", jdyn.Free(), mass=2.0, com=(0.05, 0, 0.02), inertia=INERTIA)
    builder.add_link("wheel", jdyn.Ball(), parent="hull", placement=(0.3, 0, 0), mass=0.7, inertia=(0.02, 0.01, 0.02))
    builder.add_link("arm", jdyn.Revolute((1, 1, 0)), parent="hull", mass=0.4, com=(0, 0, 0.3), inertia=[0.01] * 3)
    return builder.build()


SATELLITE = satellite()
Q0 = unit([-0.48, -0.28, -0.96, -0.44, -0.25, -0.77, -0.39, 0.2, 0.32, -0.69, 0.62, -0.6], 3, 7)
V0 = jnp.array([-1.4, 1.43, 0.62, 0.2, 0.25, 0.52, 0.86, 1.22, -1.43, 1.14])


@pytest.fixture(scope="module")
def flight():
    """The satellite's motion over 3 s."""
    return simulate(SATELLITE, Q0, V0, 3.0, stepsize_controller=TIGHT)


@pytest.mark.slow
def test_a_damped_pendulum_agrees_with_scipy():
    model = pendulum(damping=0.3)
    trajectory = simulate(model, [2.5], [0.5], 3.0, stepsize_controller=TIGHT)
    inertia = 0.02 + 1.5 * 0.4**2

    def rate(t, y):
        return [y[1], (-1.5 * 9.81 * 0.4 * np.sin(y[0]) - 0.3 * y[1]) / inertia]

    reference = scipy.integrate.solve_ivp(
        rate, (0, 3), [2.5, 0.5], method="DOP853", rtol=1e-12, atol=1e-13, t_eval=np.linspace(0, 3, 101)
    )
    np.testing.assert_allclose(trajectory.ts, reference.t, rtol=0, atol=1e-15)
    # Global error at rtol 1e-10; dense output is of order 4 and costs a digit.
    np.testing.assert_allclose(trajectory.q[:, 0], reference.y[0], rtol=0, atol=3e-8)
    np.testing.assert_allclose(trajectory.v[:, 0], reference.y[1], rtol=0, atol=3e-7)


@pytest.mark.slow
def test_a_flying_satellite_keeps_its_momentum_and_energy(flight):
    momentum = jax.vmap(lambda q, v: jdyn.momentum(SATELLITE, q, v))(flight.q, flight.v)
    energy = jax.vmap(lambda q, v: jdyn.kinetic_energy(SATELLITE, q, v))(flight.q, flight.v)
    np.testing.assert_allclose(momentum, jnp.broadcast_to(momentum[0], momentum.shape), rtol=0, atol=1e-8)
    np.testing.assert_allclose(energy, jnp.broadcast_to(energy[0], energy.shape), rtol=1e-8)


def test_saved_quaternions_have_unit_length(flight):
    for quaternion in (flight.q[:, 3:7], flight.q[:, 7:11]):
        np.testing.assert_allclose(jnp.linalg.norm(quaternion, axis=1), 1, rtol=0, atol=1e-15)


@pytest.fixture(scope="module")
def spins():
    """A free body simulated with ever smaller fixed steps: end and off-grid states for each, their numbers, and the
    closed form."""
    steps, times = np.array([16, 32, 64, 128]), [0.3, 0.77, 1.0]

    @jax.vmap
    def run(dt):
        constant = diffrax.ConstantStepSize()
        options = dict(stepsize_controller=constant, dt0=dt, saveat=times, throw=False)
        return simulate(free.BODY, free.BODY.neutral(), free.V0, 1.0, **options)

    return steps, run(1.0 / steps), np.array([free.exact(t) for t in times])


@pytest.mark.slow
def test_fixed_steps_converge_with_the_order_of_the_solver(spins):
    steps, runs, exact = spins
    assert np.all(np.asarray(runs.stats["accepted_steps"]) == steps)
    end = np.linalg.norm(np.asarray(runs.q)[:, -1] - exact[-1], axis=1)
    slopes = np.log2(end[:-1] / end[1:])
    assert np.all(np.abs(slopes[1:] - 5) < 0.2), slopes


def test_dense_output_converges_with_its_order(spins):
    _, runs, exact = spins
    between = np.linalg.norm(np.asarray(runs.q)[:, :2] - exact[:2], axis=2).max(axis=1)
    slopes = np.log2(between[:-1] / between[1:])
    assert np.all(slopes > 3.8), slopes


def test_backwards_in_time_returns_to_the_start(flight):
    back = simulate(SATELLITE, flight.q[-1], flight.v[-1], 0.0, t0=3.0, stepsize_controller=TIGHT)
    np.testing.assert_allclose(SATELLITE.difference(back.q[-1], Q0), 0, atol=1e-7)
    np.testing.assert_allclose(back.v[-1], V0, atol=1e-7)
    assert float(back.stats["t_reached"]) == 0.0


@pytest.mark.parametrize("end", [0.5, -0.5])
def test_steps_have_a_size_and_no_sign(end):
    def swing(dt0):
        constant = diffrax.ConstantStepSize()
        return simulate(pendulum(), [0.4], [0.1], end, saveat=END, dt0=dt0, stepsize_controller=constant)

    one, other = swing(0.02), swing(-0.02)
    assert one.stats["accepted_steps"] == other.stats["accepted_steps"] == 25
    np.testing.assert_array_equal(one.q, other.q)


# Derivatives.


class Motor(eqx.Module):
    gain: jax.Array

    def __call__(self, t, q, v):
        return -self.gain * jnp.concatenate([jnp.zeros(9, v.dtype), q[11:]]) - 0.1 * jnp.sin(t) * v


@pytest.fixture(scope="module")
def sensitivity():
    model = satellite(gravity=(0.3, 0, -9.81))
    point = {
        "dq": jnp.zeros(model.nv), "v0": V0, "gain": jnp.array(2.0), "mass": jnp.array(0.7), "gravity": model.gravity
    }  # fmt: skip

    def loss(p, adjoint=None):
        changed = model.with_body("wheel", mass=p["mass"]).with_gravity(p["gravity"])
        trajectory = simulate(
            changed, model.integrate(Q0, p["dq"]), p["v0"], 0.4, controller=Motor(p["gain"]), saveat=[0.25, 0.4],
            stepsize_controller=TIGHT, adjoint=adjoint, throw=False,
        )  # fmt: skip
        return jnp.sum(jnp.sin(trajectory.q) @ jnp.arange(1.0, model.nq + 1)) + jnp.sum(trajectory.v**2)

    return loss, point, jax.jit(jax.grad(loss))(point)


@pytest.mark.slow
def test_gradients_agree_with_finite_differences(sensitivity):
    loss, point, gradient = sensitivity
    directions, expected = [], []
    h, stencil, weights = 1e-2, np.array([-2, -1, 1, 2]), np.array([1, -8, 8, -1]) / 12
    for name, leaf in point.items():
        direction = np.random.default_rng(1).normal(size=leaf.shape)
        direction = direction / np.linalg.norm(direction)
        expected.append(float(np.sum(direction * gradient[name])))
        for step in stencil:
            directions.append(point | {name: leaf + h * step * direction})
    values = jax.vmap(loss)(jax.tree.map(lambda *leaves: jnp.stack(leaves), *directions))
    differences = values.reshape(-1, 4) @ weights / h
    # The formula's error is h⁴/30 times a fifth derivative.
    np.testing.assert_allclose(expected, differences, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_forward_mode_agrees_with_reverse_mode(sensitivity):
    loss, point, gradient = sensitivity
    tangent = jax.tree.map(lambda x: jnp.ones_like(x), point)
    _, forward = jax.jvp(lambda p: loss(p, diffrax.ForwardMode()), (point,), (tangent,))
    reverse = sum(jnp.sum(x) for x in jax.tree.leaves(gradient))
    # Two programs round differently, so their steps may differ; either derivative errs by about the tolerance, 1e-10.
    np.testing.assert_allclose(forward, reverse, rtol=1e-8)


# Statistics, failures and options, on the pendulum.


class Blowup(eqx.Module):
    """Accelerates with v³ once switched on: infinite speed in finite time."""

    switched_on: jax.Array

    def __call__(self, t, q, v):
        return self.switched_on * 10 * v**3


PENDULUM = pendulum()


@pytest.fixture(scope="module")
def lanes():
    """A healthy lane, one that blows up, one that starts from NaN, a healthy one. And that which blows up on its way
    through a billion seconds."""
    q0, t1 = jnp.array([[0.5], [0.5], [jnp.nan], [1.0]]), jnp.full(4, 2.0)

    def run(q0, switch, t1):
        return simulate(PENDULUM, q0, jnp.ones(1), t1, controller=Blowup(switch), throw=False)

    switch = jnp.array([0.0, 1.0, 0.0, 0.0])
    run = jax.jit(run)
    alone = [run(*lane) for lane in zip(q0, switch, t1, strict=True)]
    return jax.vmap(run)(q0, switch, t1), alone, run(q0[1], switch[1], 1e9)


@pytest.mark.slow
def test_a_batch_equals_its_lanes_one_by_one(lanes):
    together, alone, _ = lanes
    for lane, single in enumerate(alone):
        of_batch = jax.tree.map(lambda leaf, lane=lane: leaf[lane], together)
        np.testing.assert_allclose(of_batch.q, single.q, rtol=1e-9, atol=1e-12)
        assert of_batch.result == single.result
        # Towards a singularity the number of steps to the resolution of the time is a matter of rounding.
        few = 0 if single.success else 4
        assert abs(of_batch.stats["accepted_steps"] - single.stats["accepted_steps"]) <= few


def test_a_step_that_fails_is_not_tried_again():
    """Where steps are constant, and where a step controller allows none that is shorter."""
    constant = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 0.5}
    allowed = {"stepsize_controller": diffrax.PIDController(rtol=1e-6, atol=1e-6, dtmin=0.5), "dt0": 0.5}

    def run(**options):
        blown = {"controller": lambda t, q, v: jnp.where(t > 3, jnp.inf, 0) * v, "saveat": diffrax.SaveAt(t1=True)}
        return simulate(PENDULUM, jnp.ones(1), jnp.ones(1), 60.0, solver=diffrax.Heun(), **blown, **options)

    for options in (constant, allowed):
        motion = run(throw=False, **options)
        assert motion.result == Result.nonfinite and motion.stats["rejected_steps"] < 8
    with pytest.raises(SimulationError, match=r"a step of 0\.5 s gives no finite state"):
        run(**constant)


def test_constant_steps_that_are_too_long_for_a_controller_end_early():
    stiff = jdyn.PD(PENDULUM, jnp.zeros(1), kp=1e4, kd=200.0)
    constant = {"stepsize_controller": diffrax.ConstantStepSize(), "dt0": 0.5}
    motion = simulate(
        PENDULUM, jnp.ones(1), jnp.ones(1), 600.0, controller=stiff, solver=diffrax.Heun(), saveat=END, throw=False,
        **constant,
    )  # fmt: skip
    assert motion.result == Result.nonfinite and np.all(np.isnan(motion.q))
    # It grows some 1e8 times a step, to what numbers can hold.
    assert motion.stats["t_reached"] < 30 and motion.stats["rejected_steps"] < 8


def test_failed_lanes_end_early_with_code_and_nan(lanes):
    together, *_ = lanes
    expected = [Result.success, Result.step_too_small, Result.bad_configuration, Result.success]
    assert together.result.tolist() == expected
    assert together.success.tolist() == [True, False, False, True]
    tried = together.stats["accepted_steps"] + together.stats["rejected_steps"]
    assert tried[2] == 0
    # The distance to the singularity shrinks geometrically: 36 binary orders to the resolution of the time.
    assert tried[1] < 400
    late = together.ts[1] > together.stats["t_reached"][1]
    assert 0 < late.sum() < late.size
    assert np.array_equal(np.isnan(together.q[1, :, 0]), late)
    assert np.all(np.isnan(together.q[2]))
    assert np.all(np.isfinite(together.q[0])) and np.all(np.isfinite(together.v[3]))


def test_steps_may_be_as_short_in_a_long_simulation_as_in_a_short_one(lanes):
    _, alone, on_a_long_way = lanes
    # Sixteen roundings of a billion seconds are a microsecond or two.
    np.testing.assert_allclose(on_a_long_way.stats["t_reached"], alone[1].stats["t_reached"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("solver", [diffrax.Tsit5(), diffrax.Heun()], ids=["first-same-as-last", "plain"])
def test_calls_of_forward_dynamics_are_counted_exactly(solver):
    calls = []

    def controller(t, q, v):
        jax.debug.callback(lambda: calls.append(1))
        return jnp.zeros_like(v)

    loose = diffrax.PIDController(rtol=1e-4, atol=1e-6)
    trajectory = simulate(
        PENDULUM, [3.0], [9.0], 1.0, controller=controller, solver=solver, stepsize_controller=loose, saveat=END
    )
    jax.block_until_ready(trajectory)
    jax.effects_barrier()
    assert trajectory.stats["rejected_steps"] > 0
    # And once for the row, whose force is kept.
    assert len(calls) == trajectory.stats["dynamics_calls"] + 1


@pytest.mark.slow
def test_an_end_that_is_no_number_fails_its_lane_alone():
    run = jax.vmap(lambda t1: simulate(PENDULUM, jnp.ones(1), jnp.zeros(1), t1, throw=False, saveat=END))
    lanes = run(jnp.array([0.1, jnp.nan, jnp.inf]))
    assert lanes.result[0] == Result.success and np.all(np.isfinite(lanes.q[0]))
    assert Result.success not in lanes.result[1:].tolist() and np.all(np.isnan(lanes.q[1:]))


@pytest.mark.slow
def test_implicit_solvers_run_on_quaternions():
    builder = jdyn.Builder("top")
    builder.add_link("top", jdyn.Ball(), mass=1.0, com=(0, 0, 0.2), inertia=(0.02, 0.02, 0.01))
    model = builder.build()
    q0, v0 = unit([-0.2, 0.8, -0.4, 0.5], 0), jnp.array([0.6, -1.3, 0.9])
    implicit = simulate(model, q0, v0, 0.3, solver=diffrax.Kvaerno5(), saveat=END)
    explicit = simulate(model, q0, v0, 0.3, saveat=END)
    np.testing.assert_allclose(implicit.q, explicit.q, rtol=0, atol=1e-5)


def test_failure_raises_and_says_what_and_when():
    with pytest.raises(SimulationError, match=r"'pendulum' stopped at t = 0\.\d+ s of 2 s.*max_steps"):
        simulate(PENDULUM, [0.5], [1.0], 2.0, max_steps=5)
    with pytest.raises(SimulationError, match=r"t = 0 s of 2 s.*not finite"):
        simulate(PENDULUM, [0.5], [jnp.inf], 2.0, max_steps=5)


@pytest.mark.slow
def test_failure_raises_in_a_compiled_batch():
    @eqx.filter_jit
    @jax.vmap
    def run(v):
        return simulate(PENDULUM, [0.5], v, 2.0, max_steps=5).q

    with pytest.raises(RuntimeError, match=r"stopped after \d+ % of the time: max_steps"):
        jax.block_until_ready(run(jnp.ones((2, 1))))


@pytest.mark.slow
def test_rows_are_those_asked_for():
    def rows(saveat, **options):
        return simulate(PENDULUM, [0.5], [1.0], 1.0, saveat=saveat, solver=diffrax.Tsit5(), **options)

    times = jnp.array([0.1, 0.4])
    both = rows(diffrax.SaveAt(t0=True, ts=times, t1=True))
    np.testing.assert_array_equal(both.ts, [0, 0.1, 0.4, 1])
    np.testing.assert_array_equal(rows(times).q, both.q[1:3])
    steps = rows(diffrax.SaveAt(steps=True), max_steps=100)
    taken = int(steps.stats["accepted_steps"])
    assert steps.q.shape == (100, 1) and np.isfinite(steps.ts).sum() == taken == np.isfinite(steps.q[:, 0]).sum()
    np.testing.assert_allclose(steps.q[taken - 1], both.q[-1], atol=1e-12)


@pytest.mark.slow
def test_float32_stays_float32():
    trajectory = simulate(pendulum(jnp.float32), np.float32([0.5]), np.float32([1.0]), 2.0)
    assert {trajectory.ts.dtype, trajectory.q.dtype, trajectory.v.dtype} == {jnp.dtype("float32")}
    exact = simulate(PENDULUM, [0.5], [1.0], 2.0)
    np.testing.assert_allclose(trajectory.q, exact.q, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q0": jnp.zeros(2)}, r"q: expected shape \(1,\)"),
        ({"v0": jnp.zeros((3, 1))}, r"v: expected shape \(1,\)"),
        (
            {"controller": lambda t, q, v: jnp.zeros(3)},
            r"controller: expected tau of shape \(1,\) for 'pendulum', .* got \(3,\)",
        ),
        ({"controller": lambda q, v: v}, r"controller: expected a function of \(t, q, v\), got <lambda>\(q, v\)"),
        ({"controller": 3.0}, r"controller: expected a function of \(t, q, v\), .* got 3.0"),
        ({"solver": "RK4"}, "solver: expected a solver of jdyn or of diffrax, .* got 'RK4'"),
        ({"stepsize_controller": 1e-6}, "stepsize_controller: expected one of diffrax, .* got 1e-06"),
        ({"method": "rnea"}, "method: expected one such as jdyn.ABA.*got 'rnea'"),
        ({"t1": jnp.ones(2)}, "t0 and t1: expected scalars"),
        ({"saveat": jnp.zeros((2, 2))}, "saveat: expected a non-empty array of times"),
        ({"saveat": [0.5, 2.0]}, "saveat: expected times in order between t0 = 0.0 and t1 = 1.0"),
        ({"saveat": [0.5, 0.2]}, "saveat: expected times in order"),
        ({"saveat": diffrax.SaveAt(dense=True)}, "saveat: simulate saves rows"),
        ({"saveat": diffrax.SaveAt(t1=True, fn=lambda t, y, args: y[0])}, "saveat: simulate saves rows"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    arguments = {"q0": jnp.zeros(1), "v0": jnp.zeros(1), "t1": 1.0} | change
    with pytest.raises(ValueError, match=message):
        simulate(PENDULUM, **arguments)


def _whiles(jaxpr):
    """All loops of a program, outer ones first."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "while":
            yield equation
        for inner in jaxprs_in_params(equation.params):
            yield from _whiles(inner)


@pytest.mark.parametrize("transform", [lambda f: f, jax.grad], ids=["motion", "gradient"])
def test_the_loop_goes_on_by_two_entries(transform):
    """XLA takes others for loops that count, and copies all of the step to find out how far: see `Run.unfinished`."""
    model, v = jdyn.load("pendulum"), jnp.zeros(1)

    def end(x):
        return jdyn.simulate(model, x[None], v, 0.1, throw=False).q[-1, 0]

    loop = next(_whiles(jax.make_jaxpr(transform(end))(0.3).jaxpr))
    condition = loop.params["cond_jaxpr"].jaxpr
    used = {id(x) for equation in condition.eqns for x in equation.invars}
    assert sum(id(x) in used for x in condition.invars) > 1
