"""jdyn's own solvers: order, symmetry, energy and gradients, against closed forms and Dormand and Prince's order 8."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.simulation.solvers import (
    ROSJ43,
    AdamsBashforthMoulton,
    CashKarp,
    ImplicitMidpoint,
    LinearlyImplicitEuler,
    Rodas5P,
    SemiImplicitEuler,
    StormerVerlet,
)
from jdyn.simulation.state import State
from tests.drawn import unit
from tests.simulation.free_body import INERTIA
from tests.simulation.test_manifold import COM, DRIFT, EXACT, V0, exact

pytestmark = pytest.mark.fast_compile

END = diffrax.SaveAt(t1=True)


def named(solver):
    return type(solver).__name__ if isinstance(solver, diffrax.AbstractSolver) else ""


def body(gravity=(0, 0, 0), **properties):
    builder = jdyn.Builder("body", gravity=gravity)
    builder.add_link("hull", jdyn.Free(), mass=1.3, com=COM, inertia=INERTIA, **properties)
    return builder.build()


class Waves(jdyn.Controller):
    """Forces that depend on the time, and on the velocity otherwise than linearly."""

    drag: jax.Array
    height: jax.Array

    def __call__(self, t, q, v):
        pushes = jnp.sin(3 * t + jnp.arange(len(v), dtype=v.dtype))
        return self.height * pushes - self.drag * v * jnp.sqrt(1 + v**2)


# A body that nothing pushes, and one on springs and dampers that gravity and waves move: two values of one program.
FREE, CALM = body(), Waves(jnp.array(0.0), jnp.array(0.0))
BUOY = body(gravity=(0, 0, -9.81), stiffness=[2, 3, 4, 20, 30, 40], damping=0.2)
WAVES = Waves(jnp.array(0.1), jnp.array(1.0))
# Not so far that it might turn over, where its spring snaps to the other side.
Q0 = unit([0.06, 0.04, -0.11, 0.96, -0.03, -0.12, 0.27], 3)
U0 = jnp.array([-1.18, -0.12, 0.17, 0.96, -0.83, 0.69])
BODIES = jax.tree.map(lambda *x: jnp.stack(x), (FREE, CALM), (BUOY, WAVES))
STARTS = jnp.stack([FREE.neutral(), Q0]), jnp.stack([V0, U0])
TIMES = jnp.array([1 / 3, 1.0])


class Steps(diffrax.AbstractStepSizeController):
    """Steps whose lengths go round in a circle of multiples of `dt`."""

    dt: jax.Array
    circle: jax.Array

    def wrap(self, direction):
        return self

    def length(self, number):
        return self.dt * self.circle[number % len(self.circle)]

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        return t0 + self.length(0), jnp.array(0)

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        number = controller_state + 1
        return jnp.array(True), t1, t1 + self.length(number), jnp.array(False), number, diffrax.RESULTS.successful


EVEN, UNEVEN = jnp.ones(5), jnp.array([1.6, 0.4, 1.0, 0.6, 1.4])


def run(solver, model, controller, q0, v0, steps, times=TIMES, t0=0.0, t1=1.0):
    return jdyn.simulate(
        model, q0, v0, t1, t0=t0, controller=controller, solver=solver, stepsize_controller=steps, saveat=times,
        throw=False,
    )  # fmt: skip


def fly(solver, starts, steps, circle=EVEN, times=TIMES, t0=0.0, t1=1.0):
    """Both bodies, the second axis, from starts that may differ from one number of steps to the next, the first."""

    def lane(body, start, dt):
        return run(solver, *body, *start, Steps(dt, circle), times, jnp.asarray(t0), jnp.asarray(t1))

    bodies = jax.tree.map(lambda x: jnp.tile(x, (3, *[1] * (x.ndim - 1))), BODIES)
    starts = jax.tree.map(lambda x: x.reshape(6, -1), starts)
    found = jax.vmap(lane)(bodies, starts, jnp.repeat(1 / jnp.array(steps), 2))
    return found.q.reshape(3, 2, 2, -1), found.v.reshape(3, 2, 2, -1)


def distances(q, v, q_ref, v_ref):
    """Between states in the tangent space, the last axis."""
    apart = jnp.vectorize(BUOY.difference, signature="(q),(q)->(v)")(*jnp.broadcast_arrays(q_ref, q))
    return np.linalg.norm(np.concatenate([apart, np.asarray(v) - np.asarray(v_ref)], axis=-1), axis=-1)


def closed_form(t):
    """State of the body that nothing pushes."""
    w = EXACT.velocity(t)
    return exact(t), np.concatenate([w, EXACT.rotation(t).inv().apply(DRIFT) - np.cross(w, COM)])


@pytest.fixture(scope="module")
def reference():
    """Configurations and velocities of both bodies, an axis, at both times, another."""
    tight = diffrax.PIDController(rtol=1e-13, atol=1e-13)

    # Each time is the end of a solve of its own: dense output would be no exacter than what it is to judge.
    ends = [run(diffrax.Dopri8(), BUOY, WAVES, Q0, U0, tight, END, t1=t) for t in TIMES]
    q, v = zip(*(closed_form(t) for t in TIMES), strict=True)
    afloat = np.stack([end.q[0] for end in ends]), np.stack([end.v[0] for end in ends])
    return np.stack([q, afloat[0]]), np.stack([v, afloat[1]])


def slopes(errors, steps):
    return -np.diff(np.log(errors), axis=0) / np.diff(np.log(steps))[:, None, None]


def in_lanes(x):
    return jnp.broadcast_to(x, (3, *x.shape))


@pytest.mark.parametrize(
    ("solver", "order", "dense", "steps"),
    [
        pytest.param(CashKarp(), 5, 5, [32, 64, 128], marks=pytest.mark.exhaustive),
        pytest.param(AdamsBashforthMoulton(), 4, 4, [128, 256, 512], marks=pytest.mark.exhaustive),
        pytest.param(SemiImplicitEuler(), 1, 1, [512, 1024, 2048], marks=pytest.mark.exhaustive),
        pytest.param(LinearlyImplicitEuler(), 1, 1, [512, 1024, 2048], marks=pytest.mark.exhaustive),
        pytest.param(StormerVerlet(), 2, 2, [64, 128, 256], marks=pytest.mark.exhaustive),
        pytest.param(ImplicitMidpoint(), 2, 2, [64, 128, 256], marks=pytest.mark.exhaustive),
        pytest.param(Rodas5P(), 5, 5, [32, 64, 128], marks=pytest.mark.slow),
        pytest.param(ROSJ43(), 4, 4, [32, 64, 128], marks=pytest.mark.exhaustive),
    ],
    ids=named,
)
def test_order_on_se3(solver, order, dense, steps, reference):
    q, v = fly(solver, jax.tree.map(in_lanes, STARTS), steps)
    errors = distances(q, v, *reference)
    # A third is as far from the nearer end of its step for every power of two.
    found = slopes(errors, steps)
    assert np.all(np.abs(found[-1, :, 1] - order) < 0.2), found
    assert np.all(found.mean(axis=0)[:, 0] > dense - 0.2), found

    if isinstance(solver, AdamsBashforthMoulton):
        # Numbers of steps that are multiples of 5, so that each end is that of a whole round.
        steps = [160, 320, 640]
        uneven = slopes(distances(*fly(solver, jax.tree.map(in_lanes, STARTS), steps, UNEVEN), *reference), steps)
        assert np.all(np.abs(uneven[-1, :, 1] - order) < 0.2), uneven

    if isinstance(solver, (StormerVerlet, ImplicitMidpoint)):
        # Symmetric methods return to their start, whatever error they have made on the way. Rounding grows, as damping
        # takes away when time goes forwards: by e^(c/I), some 10⁵, for the body with dampers.
        turned = q[:, :, 1], v[:, :, 1]
        q, v = fly(solver, turned, steps, times=jnp.array([0.5, 0.0]), t0=1.0, t1=0.0)
        back = distances(q[:, :, 1], v[:, :, 1], *STARTS)
        assert np.all(back < [1e-12, 1e-8]), back
        assert np.all(errors[:, :, 1] > 1e-5)


def test_adams_evaluates_twice_a_step_and_starts_anew_after_a_jump():
    evaluations = []

    def rate(t, y, args):
        jax.debug.callback(lambda: evaluations.append(0))
        return State(BUOY.rate(y.q, y.v), jnp.sin(y.v))

    terms, solver, y = diffrax.ODETerm(rate), AdamsBashforthMoulton(BUOY), State(Q0, U0)
    state = solver.init(terms, jnp.array(0.0), jnp.array(0.1), y, None)
    step = jax.jit(lambda t, y, state, jumped: solver.step(terms, t, t + 0.01, y, None, state, jumped))
    counts = []
    for number in range(12):
        evaluations.clear()
        y, _, _, state, _ = step(jnp.array(0.01 * number), y, state, jnp.array(number in (0, 6)))
        jax.effects_barrier()
        counts.append(len(evaluations))
    assert counts == [7, 7, 7, 2, 2, 2] * 2


@pytest.mark.slow
def test_adams_adapts_its_steps(reference):
    # Of order 4: errors of steps go with the fifth power of their length.
    for tolerance, most in ((1e-5, 60), (1e-7, 150), (1e-9, 360)):
        controller = diffrax.PIDController(rtol=jnp.array(tolerance), atol=jnp.array(tolerance))
        found = run(AdamsBashforthMoulton(), BUOY, WAVES, Q0, U0, controller)
        steps = found.stats["accepted_steps"]
        errors = distances(found.q, found.v, reference[0][1], reference[1][1])
        # The motion is damped, so errors of steps add up at most; each may be the tolerance times 1 + |y|, |y| < 5.
        assert np.all(errors < 6 * tolerance * int(steps)), errors
        assert steps < most


def top():
    builder = jdyn.Builder("top")
    builder.add_link("top", jdyn.Ball(), mass=1.0, com=(0.05, 0.02, 0.2), inertia=(0.01, 0.02, 0.025))
    return builder.build()


def pendulum():
    builder = jdyn.Builder("pendulum")
    builder.add_link("rod", jdyn.Revolute((0, 1, 0)), mass=1.5, com=(0, 0, -0.4), inertia=(0.02, 0.02, 0.001))
    return builder.build()


TOP, PENDULUM = top(), pendulum()
SPIN = jnp.array([np.cos(0.3), np.sin(0.3), 0, 0]), jnp.array([0.0, 0.6, 5.0])
SWING = jnp.array([2.5]), jnp.array([0.5])


@pytest.mark.parametrize(
    ("solver", "model", "start"),
    [
        pytest.param(ImplicitMidpoint(), PENDULUM, SWING, marks=pytest.mark.exhaustive),
        pytest.param(jdyn.solvers.BulirschStoer(columns=3), PENDULUM, SWING, marks=pytest.mark.exhaustive),
        pytest.param(ROSJ43(), TOP, SPIN, marks=pytest.mark.exhaustive),
        # What Bader and Deuflhard's method extrapolates.
        pytest.param(LinearlyImplicitEuler(), PENDULUM, SWING, marks=pytest.mark.exhaustive),
        pytest.param(jdyn.solvers.BaderDeuflhard(columns=3), PENDULUM, SWING, marks=pytest.mark.exhaustive),
        *(
            pytest.param(solver, TOP, SPIN, marks=pytest.mark.exhaustive)
            for solver in (
                CashKarp(), AdamsBashforthMoulton(), SemiImplicitEuler(), StormerVerlet(), ImplicitMidpoint(), Rodas5P()
            )
        ),
    ],
    ids=named,
)  # fmt: skip
def test_gradients_are_those_of_finite_differences(solver, model, start):
    weights = jax.random.normal(jax.random.key(3), (2, model.nq + model.nv))
    steps = Steps(jnp.array(1 / 32), EVEN)

    def loss(p):
        changed = model.with_body(model.body_names[0], mass=p["mass"])
        found = run(solver, changed, Waves(p["drag"], jnp.array(0.5)), p["q0"], p["v0"], steps)
        return jnp.sum(weights * jnp.concatenate([found.q, found.v], axis=1))

    p = {"mass": jnp.array(1.0), "drag": jnp.array(0.1), "q0": start[0], "v0": start[1]}
    value = jax.jit(loss)
    gradient = jax.tree.leaves(jax.jit(jax.grad(loss))(p))
    keys = iter(jax.random.split(jax.random.key(4), 4))
    direction = jax.tree.map(lambda x: jax.random.normal(next(keys), x.shape), p)
    h = 1e-5
    ahead, behind = (value(jax.tree.map(lambda x, d, h=h: x + h * d, p, direction)) for h in (h, -h))
    slopes = [jnp.vdot(g, d) for g, d in zip(gradient, jax.tree.leaves(direction), strict=True)]
    scale = float(jnp.sum(jnp.abs(jnp.array(slopes))))
    np.testing.assert_allclose(sum(slopes), (ahead - behind) / (2 * h), rtol=0, atol=1e-8 * scale)


@pytest.fixture(scope="module")
def swung():
    return run(diffrax.Dopri8(), PENDULUM, None, *SWING, diffrax.PIDController(rtol=1e-12, atol=1e-12))


@pytest.mark.parametrize(
    ("solver", "tolerance"),
    # Rounding of 512 steps at 8 rad/s, and what the midpoint rule is wrong by, order 2.
    [
        pytest.param(AdamsBashforthMoulton(), 5e-5, marks=pytest.mark.slow),
        pytest.param(ImplicitMidpoint(), 5e-4, marks=pytest.mark.slow),
        (Rodas5P(), 5e-5),
        pytest.param(jdyn.solvers.BulirschStoer(), 5e-5, marks=pytest.mark.slow),
        pytest.param(jdyn.solvers.BaderDeuflhard(), 5e-5, marks=pytest.mark.slow),
    ],
    ids=named,
)
def test_float32(solver, tolerance, swung):
    single = jnp.float32
    steps = Steps(jnp.array(1 / 512, single), EVEN.astype(single))
    found = run(solver, PENDULUM.astype(single), None, *(x.astype(single) for x in SWING), steps)
    assert found.q.dtype == found.v.dtype == single
    assert found.success
    np.testing.assert_allclose(found.q, swung.q, rtol=0, atol=tolerance)
    np.testing.assert_allclose(found.v, swung.v, rtol=0, atol=10 * tolerance)


def rate(t, y, args):
    tau = WAVES(t, y.q, y.v)
    return State(BUOY.rate(y.q, y.v), jdyn.forward_dynamics(BUOY, y.q, y.v, tau))


@pytest.mark.slow
def test_works_in_diffrax_alone(reference):
    found = diffrax.diffeqsolve(
        diffrax.ODETerm(rate), AdamsBashforthMoulton(BUOY), 0.0, 1.0, 1 / 128, State(Q0, U0),
        stepsize_controller=diffrax.ConstantStepSize(), saveat=diffrax.SaveAt(ts=TIMES), max_steps=256,
    ).ys  # fmt: skip
    # As far off as with `simulate`, see the test of its order.
    assert np.all(distances(found.q, found.v, reference[0][1], reference[1][1]) < 1e-5)


def test_a_solver_without_its_model_says_so():
    with pytest.raises(ValueError, match=r"StormerVerlet: expected a model, got none; .* StormerVerlet\(model\)"):
        diffrax.diffeqsolve(diffrax.ODETerm(rate), StormerVerlet(), 0.0, 1.0, 0.1, State(Q0, U0))


def test_steps_too_long_to_be_solved_are_reported():
    start = jnp.array([2.5]), jnp.array([20.0])
    found = run(ImplicitMidpoint(), PENDULUM, None, *start, Steps(jnp.array(0.5), EVEN), END, t1=4.0)
    assert found.result == jdyn.Result.solver_failed


def test_solvers_that_remember_states_cannot_follow_rotations(swung):
    steps = Steps(jnp.array(1 / 512), EVEN)
    with pytest.raises(ValueError, match="LeapfrogMidpoint keeps states of its own between steps"):
        run(diffrax.LeapfrogMidpoint(), TOP, None, *SPIN, steps)
    found = run(diffrax.LeapfrogMidpoint(), PENDULUM, None, *SWING, steps)
    np.testing.assert_allclose(found.q[1], swung.q[1], rtol=0, atol=1e-3)


@pytest.mark.exhaustive
def test_halved_steps_give_an_estimate_to_methods_without_one(swung):
    tolerance = 1e-6
    steps = diffrax.PIDController(rtol=tolerance, atol=tolerance)
    found = run(diffrax.HalfSolver(StormerVerlet()), PENDULUM, None, *SWING, steps)
    assert 50 < found.stats["accepted_steps"] < 500
    np.testing.assert_allclose(found.q[1], swung.q[1], rtol=0, atol=100 * tolerance)


@pytest.mark.exhaustive
def test_stiff_joints_take_few_implicit_steps():
    """A cart that a spring and a damper hold fast, k/m = 10⁸, with a pendulum."""
    builder = jdyn.Builder("cart")
    builder.add_link("cart", jdyn.Prismatic((1, 0, 0)), mass=1.0, stiffness=1e8, damping=2e3, inertia=[0.01] * 3)
    builder.add_link("rod", jdyn.Revolute((0, 1, 0)), parent="cart", mass=0.5, com=(0, 0, -0.3), inertia=[0.005] * 3)
    cart, steps = builder.build(), diffrax.PIDController(rtol=1e-6, atol=1e-6)
    start = jnp.array([0.0, 1.0]), jnp.zeros(2)
    ends = [run(solver, cart, None, *start, steps, END) for solver in (diffrax.Tsit5(), diffrax.Kvaerno5(), Rodas5P())]
    tried = [end.stats["accepted_steps"] + end.stats["rejected_steps"] for end in ends]
    # An explicit step is stable up to 3.3 / ω.
    explicit, diagonal, rosenbrock = (int(n) for n in tried)
    assert explicit > 1e4 / 3.3 > 10 * diagonal > 20 * rosenbrock
    for end in ends[1:]:
        np.testing.assert_allclose(end.q, ends[0].q, rtol=0, atol=1e-5)


def energy_errors(solver, model, start, dt):
    """Largest error of the energy, as a share of what moves, in each tenth of 10⁵ steps."""
    number = 100_000
    trajectory = jdyn.simulate(
        model, *start, number * dt, solver=solver, dt0=dt, max_steps=number + 1, throw=False,
        stepsize_controller=diffrax.ConstantStepSize(), saveat=diffrax.SaveAt(steps=25),
    )  # fmt: skip
    kinetic = jax.vmap(lambda q, v: jdyn.kinetic_energy(model, q, v))(trajectory.q, trajectory.v)
    energy = kinetic + jax.vmap(lambda q: jdyn.potential_energy(model, q))(trajectory.q)
    first = jdyn.kinetic_energy(model, *start) + jdyn.potential_energy(model, start[0])
    errors = np.abs(energy - first) / np.max(kinetic)
    return errors[: number // 25].reshape(10, -1).max(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "start", "dt"),
    [
        (PENDULUM, SWING, 0.01),
        pytest.param(TOP, SPIN, 0.005, marks=pytest.mark.exhaustive),
        pytest.param(
            jdyn.load("double_pendulum"), (jnp.array([0.5, 0.3]), jnp.zeros(2)), 0.005, marks=pytest.mark.exhaustive
        ),
    ],
    ids=["pendulum", "top", "double pendulum"],
)
def test_the_midpoint_rule_keeps_the_energy(model, start, dt):
    found, explicit = (energy_errors(solver, model, start, dt) for solver in (ImplicitMidpoint(), diffrax.Heun()))
    assert found.max() < 1e-3
    # The top wanders: starts that are 1e-9 apart give 1.0 to 1.8 here.
    assert found[5:].max() < 3 * found[:5].max()
    # A method of the same order that is not symmetric gains as much every time.
    assert explicit[-1] > 5 * explicit[0]
