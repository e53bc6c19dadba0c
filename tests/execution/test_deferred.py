"""Functions that are traced where they run: nothing that is traced late may differ for it, or be held on to."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.dynamics.recursion.batching import single_or_batch
from jdyn.execution.batchable import batchable
from jdyn.execution.deferred import Deferred

pytestmark = pytest.mark.fast_compile

LANES = 2


def _model():
    return jdyn.random_tree(0, 3, kinds=(jdyn.Free, jdyn.Revolute), reach=1)


def _states(model, dtype=jnp.float64):
    q = jnp.stack([model.random(key) for key in jax.random.split(jax.random.key(0), LANES)])
    return q.astype(dtype), *(jax.random.normal(jax.random.key(i), (LANES, model.nv), dtype) for i in (1, 2))


def _force(model, q, v, tau):
    return jnp.sum(jdyn.forward_dynamics(model, q, v, tau) ** 2)


class Tripled(Deferred):
    """3 x, which notes the rules that JAX asks for."""

    def __init__(self, shape, asked):
        self.shapes, self.asked = [jax.ShapeDtypeStruct(shape, jnp.float64)], asked

    def run(self, x):
        self.asked.append("run")
        return [3 * x]

    def batch(self, size, varies, x):
        self.asked.append("batch")
        return Tripled((size, *self.shapes[0].shape), self.asked)(x)

    def jvp(self, operands, tangents):
        self.asked.append("jvp")
        return self(*operands), self(*tangents)

    def transpose(self, cotangents, *operands):
        self.asked.append("transpose")
        return self(*cotangents)


@pytest.mark.parametrize(
    ("transformed", "rules"),
    [
        (lambda f: f, ["run"]),
        (lambda f: jax.eval_shape(f, jnp.ones(2)) and f, ["run"]),
        (jax.jit, ["run"]),
        (lambda f: jax.vmap(f), ["batch", "run"]),
        (lambda f: lambda x: jax.jvp(f, (x,), (x,))[1], ["jvp", "run", "run"]),
        (lambda f: lambda x: jax.linear_transpose(f, x)(x)[0], ["transpose", "run"]),
        (lambda f: lambda x: jax.jit(jax.vjp(f, x)[1])(x)[0], ["jvp", "run", "transpose", "run"]),
        (lambda f: jax.jit(jax.vmap(jax.vmap(f))), ["batch", "batch", "run"]),
    ],
    ids=("alone", "shapes", "jit", "vmap", "jvp", "transpose", "vjp", "vmap in vmap"),
)
def test_jax_asks_for_every_rule_and_traces_when_it_lowers(transformed, rules):
    """The primitive leans on `jax.interpreters`, which JAX may change: this fails first then."""
    asked = []
    shape = (2,)
    x = jnp.arange(1.0, 3.0)

    def function(x):
        return Tripled(shape, asked)(x)[0]

    if "batch" in rules:
        shape = ()
        x = x.reshape((1,) * (rules.count("batch") - 1) + (2,))
    np.testing.assert_array_equal(transformed(function)(x), 3 * x)
    assert asked == rules


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "function",
    [
        jdyn.forward_dynamics,
        jdyn.inverse_dynamics,
        lambda *x: jdyn.forward_dynamics(*x, method=jdyn.CRBA()),
        jax.grad(_force, (1, 2, 3)),
    ],
    ids=("forward", "inverse", "crba", "gradient"),
)
def test_no_tracer_is_kept(function):
    model = _model()
    with jax.checking_leaks():
        jax.jit(jax.vmap(function, (None, 0, 0, 0))).lower(model, *_states(model))


@pytest.mark.slow
def test_as_many_bits_as_there_were():
    """The pullback runs where there are fewer."""
    model = _model()
    q, v, tau = (x[0] for x in _states(model))
    _, pull = jax.vjp(lambda v, tau: jdyn.forward_dynamics(model, q, v, tau), v, tau)
    weights = jnp.ones(model.nv)
    expected = pull(weights)
    with jax.enable_x64(False):
        found = pull(weights)
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == jnp.float64
        np.testing.assert_array_equal(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["auto", "lanes"])
@pytest.mark.parametrize("method", [jdyn.ABA(), jdyn.ByBatch(), jdyn.CRBA()], ids=str)
def test_methods_take_forces_of_a_narrower_type(method, executor):
    """`forward_dynamics` brings all to one type; a method by itself goes by the widest."""
    model = dataclasses.replace(_model(), executor=executor)
    q, _, tau = (x[0] for x in _states(model))
    tau, factors = tau.astype(jnp.float32), method.factor(model, q)
    with jax.numpy_dtype_promotion("standard"):
        found = method.solve(model, factors, tau)
    assert found.dtype == jnp.float64
    np.testing.assert_allclose(found, method.solve(model, factors, tau.astype(jnp.float64)), rtol=1e-12, atol=0)


def test_what_is_stated_must_be_found():
    def twice(x):
        return jnp.concatenate([x, x])

    with pytest.raises(AssertionError, match=r"twice: stated the shape \(3,\) of a result, found \(6,\)"):
        batchable(twice, lambda size, varies, x: jax.vmap(twice)(x), jnp.zeros(3))(jnp.ones(3))


def test_no_derivative_without_a_rule():
    function = single_or_batch(jnp.sin, jnp.sin, jnp.zeros(3))
    with pytest.raises(NotImplementedError, match="is not to be differentiated: state a rule around it"):
        jax.jvp(function, (jnp.ones(3),), (jnp.ones(3),))
