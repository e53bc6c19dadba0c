"""Bounded parameters: bijections against closed forms and SciPy, and tuning that stays within bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special
from jax.test_util import check_grads

import jdyn
from jdyn.spatial import pseudo_inertia

pytestmark = [pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]


FREE = np.random.default_rng(1).normal(size=(2, 3))
CASES = [jdyn.tuning.Positive(), jdyn.tuning.Interval(-1.0, [0.5, 2.0, 3.0]), jdyn.tuning.Simplex()]


def test_values_are_those_of_closed_forms():
    np.testing.assert_allclose(CASES[0].from_free(jnp.asarray(FREE)), np.exp(FREE), rtol=1e-15)
    width = np.array([1.5, 3.0, 4.0])
    np.testing.assert_allclose(
        CASES[1].from_free(jnp.asarray(FREE)), -1 + width * scipy.special.expit(FREE), rtol=1e-14
    )
    shares = CASES[2].from_free(jnp.asarray(FREE))
    assert shares.shape == (2, 4)
    np.testing.assert_allclose(np.sum(shares, axis=-1), 1, rtol=1e-15)
    # Isometric: lengths are those of centred logarithms.
    logarithms = np.log(shares)
    centred = logarithms - logarithms.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(np.linalg.norm(centred, axis=-1), np.linalg.norm(FREE, axis=-1), rtol=1e-14)


@pytest.mark.parametrize("bijection", CASES, ids=lambda bijection: type(bijection).__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_way_there_and_back(bijection, dtype):
    free = jnp.asarray(FREE, dtype)
    value = bijection.from_free(free)
    assert value.dtype == free.dtype
    # Logarithms of numbers near the ends lose a digit.
    np.testing.assert_allclose(bijection.to_free(value), free, atol=20 * jnp.finfo(dtype).eps)


@pytest.mark.parametrize("bijection", CASES, ids=lambda bijection: type(bijection).__name__)
def test_derivatives_in_both_modes_are_differences_everywhere(bijection):
    @jax.jit
    def summed(free):
        return jnp.sum(jnp.sin(bijection.from_free(free)))

    forward, backward = jax.jit(jax.jacfwd(summed)), jax.jit(jax.grad(summed))
    for free in (jnp.asarray(FREE), jnp.zeros((2, 3))):
        check_grads(summed, (free,), order=2, modes=["fwd", "rev"], atol=1e-6, rtol=1e-6)
    # Far out, where functions saturate, nothing is NaN.
    for far in (jnp.full((2, 3), 800.0), jnp.full((2, 3), -800.0), jnp.asarray(800 * FREE)):
        assert np.all(np.isfinite(forward(far))) and np.all(np.isfinite(backward(far)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_no_coordinates_lead_beyond_the_bounds(dtype):
    far = jnp.asarray([-1e4, -90.0, -20.0, 20.0, 90.0, 1e4], dtype)
    positive = jdyn.tuning.Positive().from_free(far)
    assert np.all(np.isfinite(positive)) and np.all(positive > 0)
    low, high = np.asarray(0.1, dtype), np.asarray(0.3, dtype)
    within = np.asarray(jdyn.tuning.Interval(0.1, 0.3).from_free(far))
    assert np.all((low <= within) & (within <= high)) and within[0] == low and within[-1] == high


def test_an_inertia_of_every_body_of_a_batch_comes_back():
    model = jdyn.load("panda")
    bodies = jax.tree.map(lambda leaf: leaf[:7], model.inertias)
    bijection = jdyn.tuning.PhysicalInertia()
    to_free, from_free = jax.jit(bijection.to_free), jax.jit(bijection.from_free)
    free = to_free(bodies)
    assert free.shape == (7, 10)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), from_free(free), bodies)
    moved = from_free(free + jnp.asarray(np.random.default_rng(2).normal(size=(7, 10))))
    assert np.all(np.linalg.eigvalsh(jax.jit(jax.vmap(pseudo_inertia))(moved)) > 0)


def test_tuning_stays_within_bounds_and_finds_the_minimum_within():
    """Of a function whose minimum without bounds lies outside of each of them."""
    seen = []
    params = {"gain": 2.0, "angle": jnp.array([0.1, 0.4]), "shares": jnp.array([0.2, 0.3, 0.5]), "free": 1.0, "n": 2}
    bounds = {
        "gain": jdyn.tuning.Positive(), "angle": jdyn.tuning.Interval(-1.0, 1.0), "shares": jdyn.tuning.Simplex(),
        "free": None, "n": None,
    }  # fmt: skip

    def loss(p):
        jax.debug.callback(lambda *x: seen.append(x), p["gain"], p["angle"], p["shares"])
        linear = jnp.sum(p["shares"] * jnp.array([3.0, 1.0, 2.0]))
        return (p["gain"] + 1) ** 2 + jnp.sum((p["angle"] - jnp.array([3.0, 0.5])) ** 2) + linear + (p["free"] + 4) ** 2

    result = jdyn.tune(loss, params, optimizer=optax.adam(0.3), steps=150, bounds=bounds)
    assert len(seen) >= 151
    assert all(gain > 0 and np.all(np.abs(angle) <= 1) and np.all(shares >= 0) for gain, angle, shares in seen)
    found = result.params
    assert 0 < found["gain"] < 0.05  # the logarithm of a number that tends to zero slows down
    np.testing.assert_allclose(found["angle"], [1, 0.5], atol=1e-2)
    np.testing.assert_allclose(found["shares"], [0, 1, 0], atol=1e-2)
    assert found["free"] == pytest.approx(-4, abs=1e-2) and found["n"] == 2


def test_one_bijection_holds_for_all_below_it():
    result = jdyn.tune(
        lambda p: jnp.sum(p["a"] ** 2) + (p["b"] + 1) ** 2, {"a": jnp.ones(2), "b": 1.0, "name": "arm"},
        optimizer=optax.sgd(0.1), steps=1, bounds=jdyn.tuning.Positive(),
    )  # fmt: skip
    # z = ln x moves by -0.1 x dL/dx.
    np.testing.assert_allclose(result.params["a"], np.exp(-0.2))
    np.testing.assert_allclose(result.params["b"], np.exp(-0.4))
    assert result.gradient_norms[0] == pytest.approx(np.sqrt(4 + 4 + 16))


def test_starts_outside_are_refused_by_name():
    def refused(params, bounds, match):
        with pytest.raises(ValueError, match=match):
            jdyn.tune(lambda p: 1.0, params, optimizer=optax.sgd(0.1), steps=1, bounds=bounds)

    refused({"kp": -2.0}, {"kp": jdyn.tuning.Positive()}, r"\['kp'\]: expected positive numbers, got -2")
    refused({"kp": 0.0, "kd": 1.0}, jdyn.tuning.Positive(), r"\['kp'\]: expected positive numbers, got 0")
    refused(
        jnp.array([0.0, 2.0]),
        jdyn.tuning.Interval(-1, 1),
        r"params: expected numbers between -1\. and 1\., got \[0., 2.\]",
    )
    refused(jnp.array([0.5, 0.6]), jdyn.tuning.Simplex(), "expected positive numbers with the sum 1")
    point = jdyn.SpatialInertia.from_com(jnp.asarray(1.0), jnp.ones(3), jnp.zeros((3, 3)))
    refused(
        {"hand": point}, {"hand": jdyn.tuning.PhysicalInertia()}, r"\['hand'\]: expected a positive mass, and principal"
    )


def test_bounds_that_do_not_fit_are_refused_in_words():
    def refused(params, bounds, match):
        with pytest.raises(ValueError, match=match):
            jdyn.tune(lambda p: 1.0, params, optimizer=optax.sgd(0.1), steps=1, bounds=bounds)

    refused({"kp": 1.0, "kd": 1.0}, {"kp": jdyn.tuning.Positive()}, "a bijection or None for each part of params")
    refused({"kp": 1.0}, {"kp": (0.0, 1.0)}, r"expected bijections such as jdyn.tuning.Positive\(\), or None, got 0.0")
    refused({"kp": 1.0}, jdyn.tuning.PhysicalInertia(), r"PhysicalInertia is for a SpatialInertia, but \['kp'\] is not")
    refused(jnp.ones(2), jdyn.tuning.Interval(0, jnp.full(3, 5.0)), r"Interval does not fit params of shape \(2,\)")
    with pytest.raises(ValueError, match=r"expected finite ends, low below high, got 1. and 0"):
        jdyn.tuning.Interval(1.0, 0.0)
