"""Gradient health: right gradients pass, wrong ones are named, noise is not taken for either; growth is that of closed
forms; what is not finite is found when and where it was planted."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.tuning.finite_differences import central_difference, step_lengths
from jdyn.tuning.first_nan import of_value

pytestmark = pytest.mark.fast_compile

QUICK = dict(saveat=jnp.linspace(0, 1, 11), throw=False)


def verdicts(health):
    return [d.verdict for d in health.derivatives]


def smooth(p):
    return jnp.sum(jnp.sin(p["a"]) * jnp.exp(p["a"])) + p["b"] ** 3 * jnp.sum(p["a"])


PARAMS = {"a": jnp.array([0.3, -1.2, 2.0]), "b": 0.7, "name": "arm", "n": 3}


@pytest.mark.slow
def test_a_right_gradient_agrees_and_errors_are_honest():
    health = jdyn.gradient_health(smooth, PARAMS, directions=3)
    a, b = np.array(PARAMS["a"]), PARAMS["b"]
    exact = [*(np.exp(a) * (np.sin(a) + np.cos(a)) + b**3), 3 * b**2 * a.sum()]
    assert health.healthy and verdicts(health) == ["agrees"] * 4
    assert [d.leaf + d.direction for d in health.derivatives] == ["['a'][0]", "['a'][1]", "['a'][2]", "['b']"]
    for d, derivative in zip(health.derivatives, exact, strict=True):
        assert d.autodiff == pytest.approx(derivative, rel=1e-14)
        # Of order h⁴ and ε/h: ε^(4/5) at best, some 1e-12.
        assert abs(d.differences - derivative) <= d.error < 1e-8
    assert "Autodiff agrees with finite differences." in str(health)


def test_random_directions_in_large_leaves():
    x = jnp.linspace(1, 2, 50)
    health = jdyn.gradient_health(lambda x: jnp.sum(x**3), x, directions=2)
    assert verdicts(health) == ["agrees"] * 2 and health.derivatives[0].leaf == "params"
    assert health.gradient_norm == pytest.approx(3 * np.linalg.norm(x**2))


@jax.custom_jvp
def halved(x):
    return jnp.sin(x)


halved.defjvp(lambda x, dx: (halved(*x), jnp.cos(*x) * dx[0] / 2))


def test_a_wrong_derivative_is_caught_and_its_leaf_named():
    health = jdyn.gradient_health(lambda p: jnp.sin(p["right"]) + halved(p["wrong"]), {"right": 0.4, "wrong": 0.5})
    assert health.wrong == ("['wrong']",) and not health.healthy
    assert "disagrees with finite differences for ['wrong']" in str(health)


def test_a_slightly_wrong_derivative_is_caught_unless_told_otherwise():
    def loss(x):
        return 0.95 * jnp.sin(x) + jax.lax.stop_gradient(0.05 * jnp.sin(x))

    (d,) = jdyn.gradient_health(loss, 0.3).derivatives
    assert d.verdict == "disagrees" and "by 5.0%" in d.note
    assert jdyn.gradient_health(loss, 0.3, rtol=0.1).healthy


def test_a_huge_gradient_is_not_taken_for_an_infinite_one():
    health = jdyn.gradient_health(lambda x: 1e200 * jnp.sum(x), jnp.ones(2))
    assert health.healthy and health.gradient_norm == pytest.approx(np.sqrt(2) * 1e200)


def test_a_wrong_entry_of_a_large_leaf_is_caught():
    def loss(x):
        return jnp.sum(x[1:] ** 2) + 10 * halved(x[0])

    assert jdyn.gradient_health(loss, jnp.linspace(0.5, 1.5, 40)).wrong == ("params",)


def test_a_stopped_gradient_is_caught_and_an_idle_parameter_is_not():
    def loss(p):
        return p["x"] ** 2 + jax.lax.stop_gradient(p["stopped"]) ** 2 + 0 * p["idle"]

    stopped = {"x": 1.0, "stopped": 2.0, "idle": 3.0}
    health = jdyn.gradient_health(loss, stopped)
    by_leaf = {d.leaf: d for d in health.derivatives}
    assert health.wrong == ("['stopped']",) and "stop_gradient" in by_leaf["['stopped']"].note
    assert by_leaf["['idle']"].verdict == "agrees" and "does not depend" in by_leaf["['idle']"].note


def test_a_kink_is_not_called_wrong():
    health = jdyn.gradient_health(lambda x: jnp.maximum(x - 1, 0) * 3 + x**2, 1.0)
    (d,) = health.derivatives
    # The slope is 2 on one side, 5 on the other.
    assert d.verdict == "cannot tell" and "a kink, 2 on one side and 5 on the other" in d.note
    assert health.healthy and "cannot tell about the rest" in str(health)


def test_an_infinite_side_is_not_called_wrong():
    (d,) = jdyn.gradient_health(lambda x: jnp.where(x > 1, jnp.inf, x), 1.0).derivatives
    assert d.verdict == "cannot tell" and "not finite close by" in d.note


@pytest.mark.parametrize("frequency, amplitude", [(1e13, 1e-2), (1e13, 1e-6), (3e9, 0.3)])
def test_noise_is_not_called_wrong(frequency, amplitude):
    """Noise of a size that hides the derivative, or does not; autodiff does not see it."""

    def loss(x):
        noise = jax.lax.stop_gradient(jnp.sin(frequency * x))
        return x**2 + amplitude * noise

    (d,) = jdyn.gradient_health(loss, 0.9).derivatives
    assert d.verdict == ("agrees" if amplitude < 1e-5 else "cannot tell")
    assert abs(d.differences - 1.8) <= 3 * d.error


def test_steps_of_a_rounded_loss_are_not_taken_for_a_slope_of_zero():
    """Steps of float32 in a loss of float64 look flat to short differences."""
    (d,) = jdyn.gradient_health(lambda x: jnp.float64(jnp.float32(x**2)), 0.9).derivatives
    assert d.verdict in ("agrees", "cannot tell") and abs(d.differences - 1.8) <= 3 * d.error


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimated_errors_hold_for_random_functions_with_noise(dtype):
    """sin(ωx) exp(kx) of many ω and k, rounded and with noise of many sizes, against the closed form."""
    random, steps = np.random.default_rng(0), step_lengths(dtype)
    epsilon, ratios, useful = float(np.finfo(dtype).eps), [], 0
    for _ in range(2000):
        w, k, x = 10 ** random.uniform(-1, 1.5), random.normal(), random.uniform(0.5, 1)
        level = 10 ** random.uniform(-16, -1)

        def value(x, w=w, k=k, level=level):
            noisy = np.sin(w * x) * np.exp(k * x) + level * random.normal(size=np.shape(x))
            return np.asarray(noisy, dtype).astype(float)

        found = central_difference(steps, float(value(x)), value(x + steps), value(x - steps), epsilon)
        exact = (w * np.cos(w * x) + k * np.sin(w * x)) * np.exp(k * x)
        ratios.append(abs(found.derivative - exact) / found.error)
        useful += found.error < 1e-2 * max(abs(exact), 1)
    # What is called wrong is off by more than three times.
    assert np.max(ratios) < 3
    assert useful > 1000


def test_float32():
    single = {"a": jnp.array([0.3, -1.2, 2.0], jnp.float32), "b": jnp.float32(0.7)}
    health = jdyn.gradient_health(smooth, single)
    assert health.healthy and verdicts(health) == ["agrees"] * 4
    wrong = jdyn.gradient_health(lambda p: smooth(p) + halved(5 * p["b"]), single)
    assert wrong.wrong == ("['b']",)


def slider():
    builder = jdyn.Builder("slider", gravity=(0, 0, 0))
    builder.add_link("mass", jdyn.Prismatic((1, 0, 0)), mass=1.0, inertia=(1.0, 1.0, 1.0))
    return builder.build()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_growth_of_an_unstable_linear_motion_is_its_eigenvalue():
    """x'' = k x from x' = √k x is x(t) = x0 exp(√k t), and so is the derivative by x0."""
    model, k = slider(), 9.0

    def loss(x0, t1):
        start = jnp.reshape(x0, 1)
        motion = jdyn.simulate(
            model, start, jnp.sqrt(k) * start, t1, controller=lambda t, q, v: k * q, saveat=None, throw=False
        )
        return motion.q[-1, 0], motion

    health = jdyn.gradient_health(loss, 0.1, horizons=(0.5, 1.0, 2.0, 3.0))
    # The simulation is good to about 1e-6 of each norm.
    assert health.growth.rate == pytest.approx(3.0, abs=1e-4) and health.growth.exponential
    assert health.growth.doubling_time == pytest.approx(np.log(2) / 3, rel=1e-4)
    np.testing.assert_allclose(health.growth.norms, np.exp(3 * health.growth.horizons), rtol=1e-4)
    assert health.healthy and verdicts(health) == ["agrees"] and "explodes like exp(3 t)" in str(health)


def test_chaos_explodes_at_its_lyapunov_exponent_and_is_not_called_wrong():
    """The logistic map x ↦ 4 x (1 - x) has the exponent ln 2 a step."""

    def loss(x, steps):
        def mapped(x, number):
            return jnp.where(number < steps, 4 * x * (1 - x), x), None

        return jax.lax.scan(mapped, x, jnp.arange(50.0))[0]

    health = jdyn.gradient_health(loss, 0.3, horizons=(10, 20, 30, 40, 50))
    # The derivative is 2ⁿ but for a factor of order 1 that comes and goes: some e over 40 steps.
    assert health.growth.exponential and health.growth.rate == pytest.approx(np.log(2), abs=1 / 40)
    assert verdicts(health) == ["cannot tell"] and "chaos" in health.derivatives[0].note


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_chaotic_motion_explodes():
    model = jdyn.robots.double_pendulum()

    def loss(angle, t1):
        motion = jdyn.simulate(model, jnp.stack([angle, angle]), jnp.zeros(2), t1, throw=False)
        return jnp.sum(motion.q[-1] ** 2)

    health = jdyn.gradient_health(loss, 2.0, horizons=(1.0, 3.0, 9.0))
    assert health.growth.exponential and health.growth.rate > 1 and "chaotic" in str(health)
    # 1e-6 is the simulation's tolerance, and the growth 1e6: the loss is all relief.
    assert verdicts(health) == ["cannot tell"]


def test_growth_tells_powers_from_exponentials_and_decay():
    horizons = (0.5, 1.0, 2.0, 4.0)
    power = jdyn.gradient_health(lambda x, t: 2 * x * t**2, 1.0, horizons=horizons).growth
    assert power.power == pytest.approx(2) and not power.exponential and "like t^2," in str(power)
    decay = jdyn.gradient_health(lambda x, t: x * jnp.exp(-2 * t), 1.0, horizons=horizons).growth
    assert decay.rate == pytest.approx(-2) and decay.exponential and "vanishes" in str(decay)


def pair():
    """Two wheels beside each other."""
    builder = jdyn.Builder("pair", gravity=(0, 0, 0))
    for name, x in (("left", 0.0), ("right", 1.0)):
        wheel = dict(mass=1.0, inertia=(1.0, 1.0, 1.0))
        builder.add_link(name, jdyn.Revolute((0, 0, 1)), placement=(x, 0, 0), **wheel)
    return builder.build()


PAIR = pair()


def simulated(controller_of):
    """A loss on the pair, the left wheel turning and the right one at rest, and its system."""

    def system(p):
        return jdyn.System(PAIR, controller=lambda t, q, v: controller_of(p, t, q, v))

    def loss(p):
        motion = jdyn.simulate(system(p), jdyn.State(jnp.zeros(2), jnp.array([1.0, 0.0])), 1.0, **QUICK)
        return jnp.sum(motion.q**2), motion

    return loss, system


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_controller_that_fails_is_found_by_time_and_body():
    def controller(p, t, q, v):
        return jnp.stack([-p["kd"] * v[0], jnp.where(t > 0.37, jnp.nan, 0.0)])

    loss, system = simulated(controller)
    health = jdyn.gradient_health(loss, {"kd": 0.5}, system=system)
    assert not health.healthy and not health.derivatives and np.isnan(health.value)
    assert health.first_nan.time == pytest.approx(0.37, abs=1e-9) and health.first_nan.bodies == ("right",)
    assert "the controller's force is not finite" in str(health)


def failing(t, q, v):
    return jnp.where(t > 0.37, jnp.nan, 0 * v)


@pytest.mark.slow
def test_a_failed_simulation_is_explained_by_any_rows():
    state = jnp.zeros(2), jnp.array([1.0, 0.0])
    motion = jdyn.simulate(PAIR, *state, 1.0, controller=failing, **QUICK)
    time, bodies, reason = of_value(motion, None, {})
    assert time == pytest.approx(0.37, abs=1e-9) and bodies == () and "give `system`" in reason
    motion = jdyn.simulate(PAIR, *state, 1.0, controller=failing, saveat=jnp.ones(1), throw=False)
    time, _, reason = of_value(motion, lambda p: jdyn.System(PAIR, controller=failing), {})
    assert time == pytest.approx(0.37, abs=1e-9) and "save a row before it to have the body named" in reason
    motion = jdyn.simulate(
        PAIR, *state, 1.0, controller=failing, saveat=diffrax.SaveAt(t0=True, steps=True), throw=False
    )
    time, bodies, reason = of_value(motion, lambda p: jdyn.System(PAIR, controller=failing), {})
    assert time == pytest.approx(0.37, abs=1e-9) and bodies == ("left", "right") and "force" in reason
    time, bodies, reason = of_value(motion, lambda p: jdyn.System(PAIR), {})
    assert time == pytest.approx(0.37, abs=1e-9) and bodies == () and "gets past it" in reason


@pytest.mark.slow
def test_rows_after_an_event_that_ends_are_no_failure_of_the_simulation():
    event = jdyn.Event(lambda t, y: 0.45 - y.q[0], terminate=True)
    motion = jdyn.simulate(PAIR, jnp.zeros(2), jnp.array([1.0, 0.0]), 1.0, events=[event], **QUICK)
    time, _, reason = of_value(motion, None, {})
    assert time == pytest.approx(0.45, abs=1e-9) and "an event ends the simulation" in reason


@pytest.mark.slow
def test_a_derivative_that_is_not_finite_is_found_by_time_and_body():
    def controller(p, t, q, v):
        friction = jax.lax.cond(t > 0.37, lambda: -p["mu"] * jnp.sqrt(v[1] ** 2), lambda: 0.0)
        return jnp.stack([-p["kd"] * v[0], friction])

    loss, system = simulated(controller)
    health = jdyn.gradient_health(loss, {"kd": 0.5, "mu": 0.1}, system=system)
    assert np.isfinite(health.value) and not np.isfinite(health.gradient_norm)
    assert health.first_nan.time == pytest.approx(0.4) and health.first_nan.bodies == ("right",)
    assert "the derivative of the controller's force by v[1] is not finite" in str(health)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_loss_that_is_not_finite_itself_is_told_from_the_simulation():
    loss, _ = simulated(lambda p, t, q, v: -p["kd"] * v)
    health = jdyn.gradient_health(lambda p: (jnp.linalg.norm(loss(p)[1].v[:, 1]), loss(p)[1]), {"kd": 0.5})
    assert health.first_nan.leaves == ("['kd']",) and health.first_nan.time is None
    assert "the trajectory has a finite gradient" in str(health)


def test_without_a_trajectory_the_horizon_tells_the_time():
    health = jdyn.gradient_health(lambda x, t: x * jnp.sqrt(0.7 - t), 1.0, horizons=(0.25, 0.5, 1.0))
    assert health.first_nan.time == pytest.approx(0.7, abs=1e-3)
    # Of √(x - x), by x.
    health = jdyn.gradient_health(lambda p: jnp.sqrt(p["x"] * 0) + p["y"], {"x": 1.0, "y": 1.0})
    assert health.first_nan.leaves == ("['x']",) and verdicts(health) == ["not finite", "agrees"]


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match=r"params: expected numbers, found NaN in \['x'\]"):
        jdyn.gradient_health(lambda p: p["x"], {"x": jnp.nan})
    with pytest.raises(ValueError, match="horizons: expected three or more"):
        jdyn.gradient_health(lambda p, t: p, 1.0, horizons=(1.0, 2.0))
    with pytest.raises(ValueError, match=r"loss: expected a value, or a value and a jdyn.Trajectory, got .* float"):
        jdyn.gradient_health(lambda p: (p, 1.0), 1.0)
