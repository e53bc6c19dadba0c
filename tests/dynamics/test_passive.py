"""Forces that may be absent: what a model lacks costs its programs nothing, and can still be differentiated by."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jdyn
from jdyn.dynamics import passive_forces

pytestmark = pytest.mark.fast_compile


def _built(amount):
    builder = jdyn.Builder("a free body, two ball joints and a hinge")
    solid = {"mass": 1.0, "inertia": (1, 1, 1), "stiffness": amount, "friction": amount}
    builder.add_link("base", jdyn.Free(), **solid)
    for name in ("left", "right"):
        builder.add_link(name, jdyn.Ball(), parent="base", **solid)
    builder.add_link("tip", jdyn.Revolute((0, 0, 1)), parent="left", **solid)
    return builder.build()


MODEL = _built(0.0)


@jax.jit
def _drawn(seed=0):
    """Rest, configuration and stiffness."""
    keys = jax.random.split(jax.random.PRNGKey(seed), 3)
    rest, q = (MODEL.integrate(MODEL.neutral(), 0.4 * jax.random.normal(key, (MODEL.nv,))) for key in keys[:2])
    return rest, q, jax.random.uniform(keys[2], (MODEL.nv,), minval=0.5, maxval=2)


@jax.jit
def _springs(rest, q, stiffness):
    return passive_forces(dataclasses.replace(MODEL, rest=rest, stiffness=stiffness), q, jnp.zeros(MODEL.nv))


def _energy(rest, q, stiffness):
    model = dataclasses.replace(MODEL, rest=rest, stiffness=stiffness, gravity=jnp.zeros(3))
    return jdyn.potential_energy(model, q)


@pytest.mark.slow
def test_springs_pull_down_their_energy():
    rest, q, stiffness = _drawn()
    slope = jax.jit(jax.grad(lambda e: _energy(rest, MODEL.integrate(q, e), stiffness)))(jnp.zeros(MODEL.nv))
    assert_allclose(_springs(rest, q, stiffness), -slope, rtol=1e-12, atol=1e-13)


def test_arguments_may_be_of_another_type_than_the_model():
    rest, q, _ = _drawn()
    model = dataclasses.replace(_built(2.0), rest=rest)
    single = model.astype(jnp.float32)
    with jax.numpy_dtype_promotion("standard"):
        found = passive_forces(single, q, np.ones(model.nv))
    assert found.dtype == jnp.float64
    assert_allclose(found, passive_forces(model, q, jnp.ones(model.nv)), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [pytest.param(jax.jacfwd, marks=pytest.mark.exhaustive), jax.jacrev])
def test_derivatives_by_a_stiffness_of_zero_are_those_by_any(mode):
    # Forces are linear in the stiffness, and so are their derivatives by configurations.
    rest, q, stiffness = _drawn()
    by_stiffness = jax.jit(mode(_springs, 2))
    assert_allclose(by_stiffness(rest, q, 0 * stiffness), by_stiffness(rest, q, stiffness), rtol=1e-13, atol=1e-14)
    assert_allclose(by_stiffness(rest, q, 0 * stiffness) @ stiffness, _springs(rest, q, stiffness), rtol=1e-13)
    mixed = jax.jit(mode(jax.jacrev(_springs, (0, 1)), 2))
    for some, more in zip(mixed(rest, q, 0 * stiffness), mixed(rest, q, stiffness), strict=True):
        assert_allclose(some, more, rtol=1e-12, atol=1e-13)
        assert np.abs(some).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("moving", [pytest.param(0, marks=pytest.mark.exhaustive), 1], ids=["rest", "configuration"])
def test_first_and_second_derivatives_are_differences(moving):
    x, stiffness = _drawn()[:2], _drawn()[2]
    step, weights = (jax.random.normal(jax.random.PRNGKey(n), (n,)) for n in (MODEL.nq, MODEL.nv))

    def forces(x):
        return _springs(*x, stiffness)

    def moved(h):
        return tuple(y + h * step if i == moving else y for i, y in enumerate(x))

    def pulled_back(x):
        return jax.vjp(forces, x)[1](weights)[0]

    along = tuple(step if i == moving else 0 * step for i in range(2))
    forces_by, pulled_by = (jax.jit(lambda x, f=f: jax.jvp(f, (x,), (along,))[1]) for f in (forces, pulled_back))
    assert_allclose(forces_by(x) @ weights, pulled_back(x)[moving] @ step, rtol=1e-12)
    # Central differences leave h²/6 of a derivative, of order 100, and 1e-15/h of rounding.
    for function, slope in ((forces, forces_by(x)), (pulled_back, pulled_by(x))):
        up, down = map(jax.jit(function), (moved(1e-5), moved(-1e-5)))
        for y, above, below in zip(*map(jax.tree.leaves, (slope, up, down)), strict=True):
            assert_allclose(y, (above - below) / 2e-5, atol=1e-8)


@pytest.mark.slow
def test_one_spring_in_a_batch_pulls_alone():
    rest, q, stiffness = jax.vmap(_drawn)(jnp.arange(3))
    stiffness = stiffness * np.array([[0.0], [1.0], [0.0]])
    pull = jax.value_and_grad(lambda q, rest, stiffness: _springs(rest, q, stiffness).sum())
    batch = q, rest, stiffness
    for x, y in zip(jax.jit(jax.vmap(pull))(*batch), jax.lax.map(lambda x: pull(*x), batch), strict=True):
        assert_allclose(x, y, rtol=1e-13, atol=1e-14)
        assert np.all(x[::2] == 0) and np.all(x[1] != 0)


@pytest.mark.parametrize("friction", [0.0, 0.3])
@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_friction_and_its_slopes(friction, mode):
    def forces(friction, v, speed):
        model = dataclasses.replace(MODEL, friction=friction, friction_speed=speed)
        return passive_forces(model, MODEL.neutral(), v)

    one = jnp.ones(MODEL.nv)
    v, speed = jnp.linspace(-2, 2, MODEL.nv), 0.7 * one
    share, slope = np.tanh(v / 0.7), 1 / np.cosh(v / 0.7) ** 2 / 0.7
    by_friction, by_v, by_speed = jax.jit(mode(forces, (0, 1, 2)))(friction * one, v, speed)
    assert_allclose(by_friction, -np.diag(share), rtol=1e-13, atol=1e-15)
    assert_allclose(by_v, -friction * np.diag(slope), rtol=1e-13, atol=1e-15)
    assert_allclose(by_speed, friction * np.diag(slope * v / 0.7), rtol=1e-13, atol=1e-15)
    mixed = jax.jit(mode(lambda friction: jax.grad(lambda v: forces(friction, v, speed).sum())(v)))
    assert_allclose(mixed(friction * one), -np.diag(slope), rtol=1e-13, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("amount", [0.0, 2.0])
def test_compilers_leave_out_what_a_model_lacks(amount):
    # The rotation between two poses takes an arc tangent. A gradient is taken of a step inside a loop.
    model = _built(amount)
    q = jnp.broadcast_to(model.neutral(), (4, model.nq))

    def end(q):
        def step(q, _):
            return model.integrate(q, passive_forces(model, q, q[: model.nv])), None

        return jnp.sum(jax.lax.scan(step, q, length=3)[0] ** 2)

    for function in (end, jax.grad(end)):
        program = jax.jit(jax.vmap(function)).lower(q).compile().as_text()
        assert [word in program for word in ("atan2", "tanh")] == [amount != 0] * 2
