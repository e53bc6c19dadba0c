"""Optimal control against Riccati's recursion, SciPy, closed forms and simulations."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.optimize import lsq_linear

import jdyn
from jdyn.planning import ilqr

pytestmark = pytest.mark.fast_compile

MASS, STIFFNESS, DAMPING, H, STEPS = 2.0, 3.0, 0.4, 0.1, 60
# Diagonals of costs.
Q, R, END = np.array([4.0, 0.5]), 0.3, np.array([20.0, 10.0])
START = np.array([1.0, -0.5])


def _slider():
    builder = jdyn.Builder("slider", gravity=(0, 0, 0))
    builder.add_link(
        "mass", jdyn.Prismatic((1, 0, 0)), mass=MASS, inertia=(1, 1, 1), stiffness=STIFFNESS, damping=DAMPING
    )
    return builder.build()


SLIDER = _slider()


def _cost(t, q, v, u):
    return 0.5 * (float(Q[0]) * q[0] ** 2 + float(Q[1]) * v[0] ** 2 + R * u[0] ** 2)


FINAL = jdyn.planning.SquaredResiduals(lambda q, v: jnp.concatenate([q, v]) * np.sqrt(END).astype(q.dtype))


@jax.jit
def _slid(model, q0, v0, bound):
    guess = jnp.zeros((STEPS, 1), model.dtype)
    return ilqr(model, _cost, FINAL, q0, v0, guess, H, bounds=(-bound, bound), max_steps=30)


# Free, held back, and one that is nowhere.
_lanes = jax.jit(jax.vmap(_slid, (None, 0, 0, 0)))
BOUNDS = np.array([np.inf, 0.8, 0.8])
STARTS = np.array([START, START, [np.nan, 0.0]])


def _plans():
    return _lanes(SLIDER, STARTS[:, :1], STARTS[:, 1:], BOUNDS)


def _step():
    """x₁ = A x + B u: first of the velocity, which then moves the mass."""
    velocity = np.array([-H * STIFFNESS / MASS, 1 - H * DAMPING / MASS])
    A = np.array([[1, 0] + H * velocity, velocity])
    return A, np.array([[H * H / MASS], [H / MASS]])


def _riccati():
    """Gains of the steps, K in u = −K x, first to last."""
    (A, B), S, gains = _step(), np.diag(END), []
    for _ in range(STEPS):
        K = np.linalg.solve(H * R + B.T @ S @ B, B.T @ S @ A)
        S = H * np.diag(Q) + A.T @ S @ (A - B @ K)
        gains.append(K)
    return np.array(gains[::-1]), S


@pytest.mark.slow
def test_a_linear_quadratic_problem_takes_one_step():
    plan = jax.tree.map(lambda x: x[0], _plans())
    gains, S = _riccati()
    assert plan.result == jdyn.planning.Optimized.converged and plan.steps == 1
    np.testing.assert_allclose(plan.gains, -gains, rtol=1e-10)
    np.testing.assert_allclose(plan.cost, 0.5 * START @ S @ START, rtol=1e-12)
    A, B = _step()
    x = START
    for k in range(STEPS):
        np.testing.assert_allclose(plan.u[k], -gains[k] @ x, atol=1e-12)
        x = A @ x + B @ plan.u[k]
        np.testing.assert_allclose([plan.q[k + 1, 0], plan.v[k + 1, 0]], x, atol=1e-12)


@pytest.mark.slow
def test_gains_far_from_the_end_are_those_of_scipy():
    A, B = _step()
    X = solve_discrete_are(A, B, H * np.diag(Q), H * R * np.eye(1))
    K = np.linalg.solve(H * R + B.T @ X @ B, B.T @ X @ A)
    # Gains approach their limit as the closed loop decays, twice as fast.
    decay = np.max(np.abs(np.linalg.eigvals(A - B @ K))) ** (2 * STEPS)
    assert decay < 1e-3
    np.testing.assert_allclose(_plans().gains[0, 0], -K, atol=10 * decay)


def test_limited_forces_are_those_of_scipy():
    """The sum of squares is linear in the forces, so bounded least squares solve it."""
    (A, B), plan = _step(), jax.tree.map(lambda x: x[1], _plans())
    powers = [np.linalg.matrix_power(A, k) for k in range(STEPS + 1)]
    free = np.concatenate([power @ START for power in powers])
    by_u = np.zeros((2 * (STEPS + 1), STEPS))
    for k in range(STEPS + 1):
        for j in range(k):
            by_u[2 * k : 2 * k + 2, j] = (powers[k - 1 - j] @ B)[:, 0]
    weights = np.sqrt(np.concatenate([np.tile(H * Q, STEPS), END]))
    rows = np.concatenate([weights[:, None] * by_u, np.sqrt(H * R) * np.eye(STEPS)])
    values = -np.concatenate([weights * free, np.zeros(STEPS)])
    expected = lsq_linear(rows, values, (-0.8, 0.8), method="bvls", tol=1e-15).x
    assert plan.result == jdyn.planning.Optimized.converged
    assert 5 < np.sum(np.abs(expected) == 0.8) < STEPS - 5
    np.testing.assert_allclose(plan.u[:, 0], expected, atol=1e-6)
    assert np.max(np.abs(plan.u)) <= 0.8
    # Where a force rests on its bound there is no feedback.
    np.testing.assert_array_equal(np.all(plan.gains[:, 0] == 0, axis=1), np.abs(plan.u[:, 0]) == 0.8)


def test_a_lane_that_is_nowhere_spoils_no_other():
    plans = _plans()
    np.testing.assert_array_equal(plans.result, [0, 0, jdyn.planning.Optimized.nonfinite])
    assert np.all(np.isfinite(plans.u[:2]))
    falling = np.asarray(plans.costs[1, : plans.steps[1] + 1])
    assert np.all(np.diff(falling) < 0) and falling[-1] == plans.cost[1]
    assert np.all(np.isnan(plans.costs[1, plans.steps[1] + 1 :]))


def test_feedback_along_a_plan():
    plan = jax.tree.map(lambda x: x[1], _plans())
    controller = jdyn.planning.PlanFeedback(SLIDER, plan)
    there = jax.vmap(controller)(plan.t[:-1], plan.q[:-1], plan.v[:-1])
    np.testing.assert_allclose(there, plan.u, atol=1e-14)
    # Half-way to the next time, the forces are those of the step.
    k = int(np.argmax(plan.gains[:, 0, 0] != 0))
    middle = plan.q[k] + H / 2 * plan.v[k + 1], (plan.v[k] + plan.v[k + 1]) / 2
    np.testing.assert_allclose(controller(plan.t[k] + H / 2, *middle), plan.u[k], atol=1e-14)
    away = controller(plan.t[k], plan.q[k] + 0.01, plan.v[k] - 0.02)
    np.testing.assert_allclose(away, plan.u[k] + plan.gains[k] @ np.array([0.01, -0.02]), atol=1e-14)
    np.testing.assert_array_equal(controller(plan.t[k], plan.q[k] - 100, plan.v[k]), 0.8)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"u": jnp.zeros(5)}, r"u: expected shape \(steps, 1\), one column for each actuator of 'slider'"),
        ({"u": jnp.zeros((5, 2))}, r"u: expected shape \(steps, 1\), .* got \(5, 2\)"),
        ({"q0": jnp.zeros(2)}, r"q: expected shape \(1,\) for 'slider', got \(2,\)"),
        ({"v0": jnp.zeros(2)}, r"v: expected shape \(1,\) for 'slider', got \(2,\)"),
        ({"bounds": 3.0}, "bounds: expected the least and the largest forces, such as"),
        ({"bounds": (2.0, -2.0)}, "bounds: expected the least forces below the largest ones"),
        ({"v": 1.0}, "ilqr: no option is called 'v'"),
        ({"dt": -0.1}, "dt: expected a positive number of seconds, got -0.1"),
        ({"max_steps": -1}, "max_steps: expected a number that is not negative, got -1"),
        ({"bounds": (jnp.zeros(2), 1.0)}, r"bounds: expected a scalar or shape \(1,\) for 'slider', got \(2,\)"),
    ],
)
def test_what_cannot_be_planned_is_refused(changes, message):
    arguments = {"q0": jnp.zeros(1), "v0": jnp.zeros(1), "u": jnp.zeros((5, 1)), "dt": H} | changes
    with pytest.raises((ValueError, TypeError), match=message):
        ilqr(SLIDER, _cost, FINAL, **arguments)


@pytest.mark.parametrize("mode", [jax.grad, jax.jacfwd])
def test_derivatives_through_the_solution_are_refused(mode):
    def least(x):
        return ilqr(SLIDER, _cost, FINAL, x, x, jnp.zeros((5, 1)), H).cost

    with pytest.raises(ValueError, match="ilqr: there are no derivatives through the solution"):
        mode(least)(jnp.ones(1))


@pytest.mark.slow
def test_float32():
    plan = _slid(SLIDER.astype(jnp.float32), *jnp.asarray(START, jnp.float32)[:, None], np.float32(np.inf))
    assert {x.dtype for x in (plan.u, plan.gains, plan.cost, plan.costs)} == {jnp.dtype(jnp.float32)}
    assert plan.result == jdyn.planning.Optimized.converged
    np.testing.assert_allclose(plan.gains, -_riccati()[0], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_costs_may_close_over_batches_and_steps_may_run_out():
    """The sum of squares alone, as a function and as squares, for targets of each lane; one step is enough."""
    targets = jnp.array([0.5, -1.0])

    def lane(target):
        def squares(q, v):
            return jnp.concatenate([q - target, v])

        def cost(t, q, v, u):
            return 0.5 * jnp.sum((u - target) ** 2)

        def end(q, v):
            return 0.5 * jnp.sum(squares(q, v) ** 2)

        state, guess = jnp.zeros(1), jnp.zeros((STEPS, 1))
        return [
            ilqr(SLIDER, cost, x, state, state, guess, H, max_steps=1)
            for x in (end, jdyn.planning.SquaredResiduals(squares))
        ]

    plain, squared = jax.jit(jax.vmap(lane))(targets)
    np.testing.assert_array_equal(plain.steps, 1)
    # It is at the minimum, and says so, though there is no step left.
    np.testing.assert_array_equal(plain.result, jdyn.planning.Optimized.converged)
    np.testing.assert_allclose(plain.u, squared.u, atol=1e-12)
    # Everything is linear in the target.
    np.testing.assert_allclose(plain.u[1], -2 * plain.u[0], atol=1e-12)
    assert np.all(plain.cost < plain.costs[:, 0])


def _tree():
    """A floating base with a ball joint and a hinge."""
    builder = jdyn.Builder("tree")
    builder.add_link("base", jdyn.Free(), mass=2.0, com=(0.1, 0, 0.2), inertia=(0.3, 0.4, 0.5))
    builder.add_link(
        "ball",
        jdyn.Ball(),
        parent="base",
        placement=(0.1, 0.2, 0.3),
        mass=1.0,
        com=(0, 0.2, 0),
        inertia=(0.2, 0.3, 0.4),
    )
    builder.add_link(
        "hinge", jdyn.Revolute((0, 1, 0.3)), parent="ball", placement=(0, 0.4, 0), mass=1.0, com=(0.2, 0, 0),
        inertia=(0.1, 0.1, 0.1), damping=0.2,
    )  # fmt: skip
    return builder.build()


def _cost_along(system, cost, final_cost, state, u, dt, solver=None):
    """Cost of forces by the steps of an environment, and where these end."""

    def step(carry, u):
        (t, state), total = carry
        total = total + dt * cost(t, state.q, state.v, u)
        state, info = system.step(state, u, dt, t=t, solver=solver)
        return ((t + dt, state), total), info.result

    ((_, end), total), codes = jax.lax.scan(step, ((0.0, state), 0.0), u)
    return total + final_cost(end.q, end.v), (end, codes)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_box_is_pushed_through_contact():
    """Nothing but contact moves the box. Gradients by the forces are those of differences, and zero along the plan."""
    builder = jdyn.Builder("pusher", gravity=(0, 0, 0))
    builder.add_link("finger", jdyn.Prismatic((1, 0, 0)), mass=1.0, damping=1.0)
    builder.add_link("box", jdyn.Prismatic((1, 0, 0)), placement=(0.12, 0, 0), mass=0.5, damping=3.0)
    builder.add_shape("finger", "sphere", 0.05, role="collision")
    builder.add_shape("box", "box", (0.1, 0.1, 0.1), role="collision")
    soft = jdyn.CompliantContact(material=jdyn.contact.Material(stiffness=200.0, friction=0.0))
    system = jdyn.System(builder.build(), contact=soft)
    state, guess, dt = system.state(), jnp.full((25, 1), 3.0), 0.02

    def cost(t, q, v, u):
        return 0.5 * 1e-2 * jnp.sum(u**2)

    def final_cost(q, v):
        return 50 * (q[1] - 0.15) ** 2 + 0.1 * jnp.sum(v**2)

    @jax.jit
    def along(u):
        both = jnp.concatenate([u, jnp.zeros_like(u)], axis=1)
        return _cost_along(system, cost, final_cost, state, both, dt)

    (first, _), slope = jax.value_and_grad(along, has_aux=True)(guess)
    direction, h = jnp.sin(jnp.arange(25.0))[:, None], 1e-4
    difference = (along(guess + h * direction)[0] - along(guess - h * direction)[0]) / (2 * h)
    np.testing.assert_allclose(jnp.sum(slope * direction), difference, rtol=1e-5)
    plan = ilqr(system, cost, final_cost, state, guess, dt, actuated=[0])
    assert plan.result == jdyn.planning.Optimized.converged and plan.cost < 0.5 * first
    np.testing.assert_allclose(plan.q[-1, 1], 0.15, atol=0.03)
    (least, (end, codes)), at_rest = jax.value_and_grad(along, has_aux=True)(plan.u)
    np.testing.assert_array_equal(codes, jdyn.Result.success)
    np.testing.assert_allclose(least, plan.cost, rtol=1e-10)
    np.testing.assert_allclose(end.q, plan.q[-1], atol=1e-12)
    assert np.max(np.abs(at_rest)) < 1e-3 * np.max(np.abs(slope))


@pytest.mark.slow
def test_memories_are_planned_through():
    """An integral makes a linear motion one of three coordinates: a linear-quadratic problem takes one step."""
    controller = jdyn.PID(SLIDER, jnp.ones(1), kp=2.0, ki=3.0, kd=0.5)
    system = jdyn.System(SLIDER, controller=controller)
    plan = ilqr(system, _cost, FINAL, system.state(START[:1], START[1:]), jnp.zeros((STEPS, 1)), H)
    assert plan.result == jdyn.planning.Optimized.converged and plan.steps == 1
    assert plan.gains.shape == (STEPS, 1, 3) and np.all(np.abs(plan.gains[0]) > 1e-3)
    feedback = jdyn.planning.PlanFeedback(SLIDER, plan)
    np.testing.assert_allclose(feedback(plan.t[3], plan.q[3], plan.v[3]), plan.u[3], atol=1e-14)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_no_change_of_forces_helps_on_free_and_ball_joints():
    model = _tree()
    system = jdyn.System(model)
    state, guess, dt = system.state(model.random(jax.random.key(0))), jnp.zeros((8, model.nv)), 0.05
    target = model.integrate(state.q, 0.3 * jnp.cos(jnp.arange(float(model.nv))))

    def final_cost(q, v):
        return 50 * jnp.sum(model.difference(target, q) ** 2) + jnp.sum(v**2)

    def cost(t, q, v, u):
        return 0.05 * jnp.sum(u**2)

    def slope(u):
        def total(u):
            return _cost_along(system, cost, final_cost, state, u, dt, jdyn.solvers.SemiImplicitEuler())[0]

        return jax.grad(total)(u)

    plan = ilqr(model, cost, final_cost, state.q, state.v, guess, dt)
    before, after = jax.jit(slope)(guess), jax.jit(slope)(plan.u)
    assert plan.result == jdyn.planning.Optimized.converged
    assert np.max(np.abs(after)) < 1e-3 * np.max(np.abs(before))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_satellite_turns_about_a_principal_axis_as_a_double_integrator():
    """With costs of the forces and of the end, against least squares; the way is longer than half of what is left."""
    inertia, angle, steps, h, weight = np.array([1.0, 2.0, 2.5]), 2.5, 20, 0.1, 1e3
    builder = jdyn.Builder("satellite", gravity=(0, 0, 0))
    builder.add_link("body", jdyn.Ball(), mass=1.0, inertia=tuple(inertia))
    model = builder.build()
    q0 = model.random(jax.random.key(3))
    target = model.integrate(q0, jnp.array([0.0, angle, 0.0]))

    def end(q, v):
        return np.sqrt(weight) * jnp.concatenate([model.difference(target, q), v])

    plan = ilqr(
        model, lambda t, q, v, u: 0.5 * jnp.sum(u**2), jdyn.planning.SquaredResiduals(end), q0, jnp.zeros(3),
        jnp.zeros((steps, 3)), h,
    )  # fmt: skip
    # The angle and the speed at the end, by the forces.
    by_u = np.stack([h * h * np.arange(steps, 0, -1), np.full(steps, h)]) / inertia[1]
    rows = np.concatenate([np.sqrt(weight) * by_u, np.sqrt(h) * np.eye(steps)])
    values = np.concatenate([np.sqrt(weight) * np.array([angle, 0]), np.zeros(steps)])
    expected = np.linalg.lstsq(rows, values)[0]
    assert plan.result == jdyn.planning.Optimized.converged
    np.testing.assert_allclose(plan.u[:, 1], expected, atol=1e-6)
    np.testing.assert_allclose(plan.u[:, ::2], 0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_cart_poles_swing_up_from_many_guesses_and_stay_up():
    """All in one call; the feedback of the best brings a simulation there, and holds it with the regulator."""
    model, h, steps, most = jdyn.load("cartpole"), 0.02, 150, 10.0
    hanging, still = jnp.array([0.0, jnp.pi]), jnp.zeros(2)

    def cost(t, q, v, u):
        return 0.5 * (0.01 * jnp.sum(u**2) + 0.1 * q[0] ** 2)

    def end(q, v):
        return 200 * (1 - jnp.cos(q[1])) + 50 * q[0] ** 2 + 10 * jnp.sum(v**2)

    def swing(u):
        return ilqr(model, cost, end, hanging, still, u, h, bounds=(-most, most), actuated=[0], max_steps=300)

    guesses = 3 * jax.random.normal(jax.random.key(0), (8, steps, 1))
    plans = jax.jit(jax.vmap(swing))(guesses)
    up = (np.cos(plans.q[:, -1, 1]) > np.cos(0.05)) & (np.max(np.abs(plans.v[:, -1]), axis=1) < 0.1)
    assert np.all(up)
    assert np.max(np.abs(plans.u)) <= most
    # The planned motion is that of the solver that steps as the plan does.
    plan = jax.tree.map(lambda x: x[np.nanargmin(plans.cost)], plans)
    held = jdyn.control.ZeroOrderHold(jdyn.planning.PlanFeedback(model, plan), h)
    planned = jdyn.simulate(
        model, hanging, still, plan.t[-1], controller=held, saveat=plan.t, solver=jdyn.solvers.SemiImplicitEuler(),
        stepsize_controller=diffrax.ConstantStepSize(), dt0=h,
    )  # fmt: skip
    np.testing.assert_allclose(planned.q, plan.q, atol=1e-6)
    # The true motion differs from that by terms of the order of the step.
    motion = jdyn.simulate(model, hanging, still, plan.t[-1], controller=held, saveat=plan.t[-1:])
    angle = float(np.remainder(motion.q[-1, 1] + np.pi, 2 * np.pi) - np.pi)
    assert abs(angle) < 0.2
    upright = jdyn.LQR(model, jnp.array([0.0, motion.q[-1, 1] - angle]), Q=1.0, R=1.0, actuated=[0])
    after = jdyn.simulate(model, motion.q[-1], motion.v[-1], 8.0, controller=jdyn.Saturated(upright, model))
    np.testing.assert_allclose(after.q[-1], upright.target, atol=2e-2)
