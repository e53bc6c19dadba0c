"""Least squares: against SciPy, and known answers."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest
import scipy.optimize

import jdyn

pytestmark = [pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]


TIMES = np.linspace(0, 3, 30)
MEASURED = 2.5 * np.exp(-1.3 * TIMES) + 0.4 + 0.05 * np.random.default_rng(0).normal(size=30)
START = {"a": 2.0, "rate": 1.0, "c": 0.0, "n": 1}
BOUNDS = {"a": None, "rate": jdyn.tuning.Positive(), "c": None, "n": None}


def decay(p):
    return {"early": _misfit(p)[:10], "late": _misfit(p)[10:]}


def _misfit(p):
    return p["a"] * jnp.exp(-p["rate"] * TIMES) + p["c"] - MEASURED


@pytest.mark.slow
@pytest.mark.parametrize("solver", [None, optx.GaussNewton(1e-10, 1e-10)], ids=["usual", "GaussNewton"])
@pytest.mark.parametrize("jacobian", ["forward", "reverse"])
def test_a_fit_is_that_of_scipy(solver, jacobian):
    result = jdyn.tune_least_squares(decay, START, solver=solver, bounds=BOUNDS, jacobian=jacobian)
    expected = scipy.optimize.least_squares(
        lambda x: x[0] * np.exp(-x[1] * TIMES) + x[2] - MEASURED, [1.0, 0.3, 0.0], xtol=1e-14, ftol=1e-14
    )
    found = [result.params[name] for name in ("a", "rate", "c")]
    # Near the minimum, the error is the last step times the rate of convergence.
    np.testing.assert_allclose(found, expected.x, rtol=1e-6)
    assert result.losses[result.best_step] == pytest.approx(expected.cost, rel=1e-12)
    assert result.message.startswith("converged to the tolerances of the solver after") and len(result.losses) < 25
    assert result.params["n"] == 1 and result.path["rate"].shape == result.losses.shape


def test_history_holds_the_loss_and_its_gradient_at_each_point():
    result = jdyn.tune_least_squares(decay, START, steps=4, bounds=BOUNDS)

    @jax.jit
    @jax.value_and_grad
    def of(free):
        p = START | {"a": free[0], "rate": jnp.exp(free[1]), "c": free[2]}
        return 0.5 * jnp.sum(_misfit(p) ** 2)

    for step in range(5):
        p = {name: result.path[name][step] for name in ("a", "rate", "c")}
        free = jnp.array([p["a"], np.log(p["rate"]), p["c"]])
        value, gradient = of(free)
        assert result.losses[step] == pytest.approx(float(value), rel=1e-12)
        assert result.gradient_norms[step] == pytest.approx(float(jnp.linalg.norm(gradient)), rel=1e-9)
    assert not result.message


def test_rosenbrocks_valley_takes_few_steps():
    result = jdyn.tune_least_squares(
        lambda p: jnp.stack([1 - p["x"], 10 * (p["y"] - p["x"] ** 2)]), {"x": jnp.float32(-1.2), "y": jnp.float32(1.0)}
    )
    np.testing.assert_allclose([result.params["x"], result.params["y"]], 1, atol=1e-3)
    assert result.params["x"].dtype == jnp.float32 and len(result.losses) < 40


def test_a_step_to_where_nothing_is_finite_is_taken_back():
    result = jdyn.tune_least_squares(lambda x: jnp.log(x) + 1, 2.0)
    # The first step of Gauss and Newton leads from 2 to -1.4.
    assert float(result.params) == pytest.approx(np.exp(-1), rel=1e-6)
    assert np.all(np.isfinite(result.losses))


@pytest.mark.slow
def test_an_inertia_is_identified_from_forces():
    """Of a free body, from forces in random motions, starting from half the mass, elsewhere."""
    builder = jdyn.Builder("body")
    builder.add_link("body", jdyn.Free(), mass=1.5, com=(0.1, -0.2, 0.05), inertia=(0.02, 0.03, 0.04))
    model, rng = builder.build(), np.random.default_rng(3)
    q = jax.jit(jax.vmap(model.random))(jax.random.split(jax.random.key(0), 10))
    v, a = jnp.asarray(rng.normal(size=(2, 10, 6)))

    @jax.jit
    def forces(inertias):
        changed = dataclasses.replace(model, inertias=inertias)
        return jax.vmap(lambda q, v, a: jdyn.inverse_dynamics(changed, q, v, a))(q, v, a)

    measured = forces(model.inertias)
    start = jdyn.SpatialInertia(jnp.array([0.7]), jnp.zeros((1, 3)), jnp.array([[0.01, 0, 0.01, 0, 0, 0.01]]))
    result = jdyn.tune_least_squares(lambda x: forces(x) - measured, start, bounds=jdyn.tuning.PhysicalInertia())
    # Converges quadratically, as nothing is left over in the end.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), result.params, model.inertias)


@jax.custom_vjp
def backwards_only(x):
    return jnp.sin(x)


backwards_only.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda cosine, g: (cosine * g,))


def test_forward_mode_is_taken_for_few_parameters_and_reverse_mode_for_many():
    few, many = jnp.ones(2), jnp.ones(3)
    mix = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3)))
    result = jdyn.tune_least_squares(lambda x: backwards_only(mix @ x), many)
    assert result.losses[result.best_step] < 1e-15
    with pytest.raises(ValueError, match=r"reverse mode only; give simulations adjoint=diffrax.ForwardMode\(\)"):
        jdyn.tune_least_squares(lambda x: backwards_only(mix.T @ x), few)
    assert jdyn.tune_least_squares(lambda x: backwards_only(mix.T @ x), few, jacobian="reverse").losses[-1] < 1e-15


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="tune_least_squares cannot start: the loss is nan"):
        jdyn.tune_least_squares(jnp.sqrt, -1.0)
    with pytest.raises(ValueError, match="residuals: expected floating-point arrays, got one of int"):
        jdyn.tune_least_squares(lambda x: jnp.arange(3), 1.0)
    with pytest.raises(ValueError, match="expected positive numbers, got -1"):
        jdyn.tune_least_squares(lambda x: x, -1.0, bounds=jdyn.tuning.Positive())
    with pytest.raises(ValueError, match="jacobian: expected 'forward', 'reverse' or None, got 'fwd'"):
        jdyn.tune_least_squares(lambda x: x, 1.0, jacobian="fwd")


@pytest.mark.slow
def test_friction_is_identified_from_a_motion():
    """Of a simulated pendulum, from rows of its swing."""
    model, times = jdyn.load("pendulum"), jnp.linspace(0, 2, 41)

    def motion(p):
        changed = model.with_joint(model.joint_names[0], damping=p["damping"], armature=p["armature"])
        start = jnp.full(model.nq, 1.0), jnp.zeros(model.nv)
        return jdyn.simulate(changed, *start, 2.0, saveat=times, adjoint=diffrax.ForwardMode(), throw=False).q

    true = {"damping": 0.2, "armature": 0.05}
    measured = motion(true)
    start = {"damping": 0.02, "armature": 0.5}
    result = jdyn.tune_least_squares(lambda p: motion(p) - measured, start, bounds=jdyn.tuning.Positive())
    for name, number in true.items():
        assert float(result.params[name]) == pytest.approx(number, rel=1e-5)
