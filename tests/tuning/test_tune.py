"""Tuning: it finds known minima, keeps the best, and says why it stopped."""

import warnings

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jdyn

pytestmark = [pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]


# Rosenbrock's function has its minimum 0 at (1, 1).
def rosenbrock(p):
    return (1 - p["x"]) ** 2 + 100 * (p["y"] - p["x"] ** 2) ** 2


START = {"x": -1.2, "y": 1.0}


def test_a_quasi_newton_optimizer_finds_the_minimum():
    result = jdyn.tune(rosenbrock, START, optimizer=optax.lbfgs(), steps=60, progress=False)
    np.testing.assert_allclose([result.params["x"], result.params["y"]], 1, atol=1e-6)
    assert result.losses[0] == pytest.approx(24.2) and result.losses[result.best_step] < 1e-12
    assert result.losses.shape == result.gradient_norms.shape == (61,)


def test_history_holds_losses_and_gradient_norms_of_the_same_point():
    result = jdyn.tune(lambda x: 0.5 * jnp.sum(x**2), jnp.array([3.0, 4.0]), optimizer=optax.sgd(0.5), steps=3)
    np.testing.assert_allclose(result.losses, 12.5 * 0.25 ** np.arange(4))
    np.testing.assert_allclose(result.gradient_norms, 5 * 0.5 ** np.arange(4))


def test_the_loss_is_compiled_once():
    traces = []

    def loss(p):
        traces.append(1)
        return jnp.sum(p["weak"] ** 2) + p["number"] ** 2 + jnp.sum(p["array"] ** 2)

    params = {"weak": jnp.full(2, 1.0), "number": 1.0, "array": np.ones(2)}
    jdyn.tune(loss, params, optimizer=optax.adam(0.1), steps=4, progress=False)
    assert len(traces) == 1


def test_the_best_parameters_are_kept_when_steps_lead_astray():
    result = jdyn.tune(lambda x: x**2, 1.0, optimizer=optax.sgd(1.1), steps=5, progress=False)
    assert result.best_step == 0 and float(result.params) == 1.0 and result.losses[-1] > result.losses[0]


def test_leaves_that_are_not_floats_stay():
    params = {"x": 2.0, "n": 3, "name": "arm"}
    result = jdyn.tune(lambda p: p["n"] * p["x"] ** 2, params, optimizer=optax.adam(0.1), steps=2, progress=False)
    assert result.params["n"] == 3 and result.params["name"] == "arm" and result.params["x"] < 2.0


def test_a_loss_that_stops_being_finite_ends_it_and_keeps_the_best():
    with pytest.warns(jdyn.tuning.TuneWarning, match=r"the loss is nan after 2 steps.*those after 1 steps"):
        result = jdyn.tune(lambda x: x * jnp.sqrt(x), 1.0, optimizer=optax.sgd(0.6), steps=50, progress=False)
    assert len(result.losses) == 3 and np.isnan(result.losses[-1]) and result.best_step == 1 and result.message


def test_a_bad_start_is_refused():
    with pytest.raises(ValueError, match="tune cannot start: the loss is nan"):
        jdyn.tune(lambda x: jnp.sqrt(x), -1.0, optimizer=optax.sgd(1.0), steps=2, progress=False)
    with pytest.raises(ValueError, match="found none to tune"):
        jdyn.tune(lambda x: 1.0 * x, 1, optimizer=optax.sgd(1.0), steps=2, progress=False)
    with pytest.raises(ValueError, match="expected a floating-point scalar"):
        jdyn.tune(lambda x: x, jnp.ones(2), optimizer=optax.sgd(1.0), steps=2, progress=False)


@pytest.mark.slow
def test_gains_of_a_simulated_pendulum_reach_critical_damping():
    """With q'' = -kp e - kd v on a unit inertia, ∫ e² has its minimum over kd at kd = √kp."""
    builder = jdyn.Builder("wheel", gravity=(0, 0, 0))
    builder.add_link("wheel", jdyn.Revolute((0, 0, 1)), mass=1.0, inertia=(1.0, 1.0, 1.0))
    model, times = builder.build(), jnp.linspace(0, 6, 301)

    def loss(kd):
        controller = jdyn.PD(model, jnp.ones(1), kp=9.0, kd=kd)
        trajectory = jdyn.simulate(
            model, jnp.zeros(1), jnp.zeros(1), 6.0, controller=controller, saveat=times, solver=diffrax.Tsit5(),
            throw=False,
        )  # fmt: skip
        return jax.scipy.integrate.trapezoid((trajectory.q[:, 0] - 1) ** 2, times)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The step is Newton's at the minimum.
        result = jdyn.tune(loss, 2.0, optimizer=optax.sgd(27.0), steps=8, progress=False)
    # ∫ e² = (kd / kp + 1 / kd) / 2 up to e^(-kd t1); the trapezoidal rule is exact to h² / 12.
    assert float(result.params) == pytest.approx(3.0, abs=3e-3)
    assert result.losses[result.best_step] == pytest.approx(1 / 3, abs=1e-4)


def test_a_gradient_that_overflows_names_remedies():
    def loss(x):
        return jnp.sqrt(jnp.sum(x**2))  # its derivative is 0/0 at zero

    with pytest.raises(ValueError, match=r"gradient is not finite.*jdyn\.gradient_health.*shorter horizon.*float64"):
        jdyn.tune(loss, jnp.zeros(2), optimizer=optax.adam(0.1), steps=3, progress=False)


def test_schedules_and_clipping_come_with_optax():
    """Against the closed form of gradient descent, x ← x (1 - rate), and of a gradient scaled to length 1."""
    schedule = optax.piecewise_constant_schedule(0.5, {2: 0.5})
    result = jdyn.tune(lambda x: 0.5 * x**2, 8.0, optimizer=optax.sgd(schedule), steps=4)
    np.testing.assert_allclose(result.path, [8, 4, 2, 1.5, 1.125])
    clipped = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.5))
    result = jdyn.tune(lambda x: 0.5 * jnp.sum(x**2), jnp.array([3.0, 4.0]), optimizer=clipped, steps=2)
    np.testing.assert_allclose(result.path, [[3, 4], [2.7, 3.6], [2.4, 3.2]])
    hyper = optax.inject_hyperparams(optax.sgd)(learning_rate=schedule)
    result = jdyn.tune(lambda x: 0.5 * x**2, 8.0, optimizer=hyper, steps=3)
    np.testing.assert_allclose(result.learning_rates, [0.5, 0.5, 0.25, 0.25], rtol=1e-6)


def test_it_ends_where_the_loss_stalls():
    """1 + x² with x halved by each step falls by 37, 15, 4.4, 1.2, 0.29, ... per cent."""
    options = dict(optimizer=optax.sgd(0.25), steps=50)
    result = jdyn.tune(lambda x: 1 + x**2, 1.0, patience=jdyn.tuning.Patience(3, tolerance=0.01), **options)
    np.testing.assert_allclose(result.losses, 1 + 0.25 ** np.arange(8))
    assert result.best_step == 7 and result.message == "the loss has fallen no further than to 1.00391 in 3 steps"
    assert len(jdyn.tune(lambda x: 1 + x**2, 1.0, patience=jdyn.tuning.Patience(3), **options).losses) > 20


def test_options_that_cannot_be_are_refused():
    def refused(match, **options):
        with pytest.raises(ValueError, match=match):
            jdyn.tune(lambda x, *rows: x**2, 1.0, **(dict(optimizer=optax.sgd(0.1), steps=2) | options))

    refused("steps: expected a number that is not negative, got -1", steps=-1)
    refused("patience: expected a positive number of steps, got 0", patience=jdyn.tuning.Patience(0))
    refused("patience: expected a tolerance from 0 up to 1", patience=jdyn.tuning.Patience(1, tolerance=1.0))
    with pytest.raises(ValueError, match="batch: expected 1 to 3 rows, as many as there are in data, got 4"):
        jdyn.tuning.Minibatches(jnp.ones(3), 4)
    refused(r"data\['a'\] has 3, data\['b'\] has 2", data={"a": jnp.ones(3), "b": jnp.ones(2)})


def test_history_as_a_dataset():
    result = jdyn.tune(
        lambda p: p["kp"] ** 2 + jnp.sum(p["kd"] ** 2),
        {"kp": 2.0, "kd": jnp.ones(2)},
        optimizer=optax.sgd(0.25),
        steps=3,
    )
    dataset = result.to_xarray()
    np.testing.assert_allclose(dataset["['kp']"], 2 * 0.5 ** np.arange(4))
    assert dataset["['kd']"].dims == ("step", "['kd']_0") and dataset["['kd']"].shape == (4, 2)
    np.testing.assert_allclose(dataset.loss, 6 * 0.25 ** np.arange(4))
    np.testing.assert_allclose(dataset.gradient_norm, 2 * np.sqrt(dataset.loss))
    assert dataset.attrs["best_step"] == 3 and dataset.attrs["compile_seconds"] > 0 and "learning_rate" not in dataset
    many = jdyn.tune(lambda x: jnp.sum(x**2), jnp.ones(65), optimizer=optax.sgd(0.1), steps=1)
    assert many.path is None and set(many.to_xarray().data_vars) == {"loss", "gradient_norm", "judged_loss"}


@jax.custom_jvp
def reversed_slope(x):
    return jnp.sin(x)


reversed_slope.defjvp(lambda x, dx: (reversed_slope(*x), -jnp.cos(*x) * dx[0]))


def test_a_wrong_gradient_is_named_at_the_first_step():
    options = dict(optimizer=optax.adam(0.01), steps=2)
    with pytest.warns(jdyn.tuning.TuneWarning, match="after 0 steps: the gradient disagrees with differences"):
        jdyn.tune(lambda x: jnp.sum(reversed_slope(x)), jnp.array([0.3, 0.4]), **options)
    jdyn.tune(lambda x: jnp.sum(reversed_slope(x)), jnp.array([0.3, 0.4]), check=False, **options)


def test_a_wrong_gradient_that_stalls_is_named_there():
    """The loss is |x|, and autodiff does not see it below 0.55."""

    def loss(x):
        return jnp.where(x > 0.55, x, jax.lax.stop_gradient(jnp.abs(x)))

    with pytest.warns(jdyn.tuning.TuneWarning, match="after 7 steps: the gradient disagrees with differences"):
        result = jdyn.tune(loss, 1.0, optimizer=optax.sgd(0.1), steps=50, patience=jdyn.tuning.Patience(2))
    assert len(result.losses) == 8


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_right_gradient_of_an_uneven_loss_is_not_doubted(dtype):
    """Parameters of sizes from 1e-4 to 1e4, kinks and a flat place; a warning is an error here."""
    params = {
        "small": jnp.asarray(3e-4, dtype),
        "large": jnp.asarray([2e4, -7e3], dtype),
        "flat": jnp.asarray(0.0, dtype),
    }

    def loss(p):
        return jnp.sum(jnp.exp(1e3 * p["small"]) + p["flat"] ** 4) + jnp.sum(jnp.abs(p["large"] - 1e3)) / 1e4

    jdyn.tune(loss, params, optimizer=optax.sgd(0.0), steps=3, patience=jdyn.tuning.Patience(1))
