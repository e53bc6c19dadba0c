"""What runs recursions: levels and lanes compute the same, and `"auto"` chooses between them."""

import dataclasses
import functools
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.model import Executor
from jdyn.model.random_tree import ALL_KINDS
from tests.drawn import drawn_states

pytestmark = pytest.mark.fast_compile

MODELS = {
    "chain": jdyn.random_tree(0, 5, kinds=(jdyn.Revolute,), reach=1),
    "tree": jdyn.random_tree(3, 7, kinds=(jdyn.Helical, jdyn.Ball)),
    "every kind": jdyn.random_tree(5, 9, kinds=ALL_KINDS),
    "free base": jdyn.load("quadruped"),
}
LANES = 3


@jax.jit
def _batch(model):
    """Models that differ in a mass, states and forces."""
    models = jax.vmap(lambda mass: model.with_body(model.body_names[-1], mass=mass))(jnp.linspace(0.5, 2, LANES))
    return models, *drawn_states(model, LANES)


def _forward(executor):
    def accelerations(model, q, v, tau, f_ext):
        return jdyn.forward_dynamics(dataclasses.replace(model, executor=executor), q, v, tau, f_ext=f_ext)

    return accelerations


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "chain",
        "every kind",
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("tree", "free base")),
    ],
)
def test_lanes_compute_what_levels_do(name):
    batch = _batch(MODELS[name])
    found, expected = (jax.jit(jax.vmap(_forward(executor)))(*batch) for executor in ("lanes", "levels"))
    # Each body rounds a few times, which solving magnifies by the condition number of the mass matrix.
    condition = np.linalg.cond(jax.jit(jax.vmap(jdyn.mass_matrix))(*batch[:2]))
    tolerance = MODELS[name].nb * np.finfo(float).eps * condition * np.linalg.norm(expected, axis=1)
    np.testing.assert_array_less(np.linalg.norm(found - expected, axis=1), tolerance)


@pytest.mark.slow
def test_derivatives():
    """Both modes, which take the factors that the value left."""
    models, q, v, tau, f_ext = _batch(MODELS["chain"])

    def derivatives(executor, q, v, tau):
        def forward(q, v, tau):
            return jax.vmap(_forward(executor))(models, q, v, tau, f_ext)

        a, pull = jax.vjp(forward, q, v, tau)
        return jax.jvp(functools.partial(forward, q, v), (tau,), (tau,))[1], pull(a)

    found, expected = (jax.jit(functools.partial(derivatives, executor))(q, v, tau) for executor in ("lanes", "levels"))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.max(np.abs(y)))


@pytest.mark.slow
def test_batches_of_batches_and_single_configurations():
    """Lanes of lanes, of which the inner ones share a configuration; a single one; a batch of one, and of none."""
    model = MODELS["chain"]
    _, q, v, tau, f_ext = _batch(model)

    def nested(executor):
        inner = jax.vmap(functools.partial(_forward(executor), model), in_axes=(None, 0, None, 0))
        return jax.jit(jax.vmap(inner, in_axes=(0, None, 0, None)))

    found, expected = (nested(executor)(q, v, tau, f_ext) for executor in ("lanes", "levels"))
    tolerance = 1e-12 * np.max(np.abs(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    single = functools.partial(_forward("lanes"), model)
    state = q[1], v[2], tau[1], f_ext[2]
    np.testing.assert_allclose(jax.jit(single)(*state), expected[1, 2], rtol=0, atol=tolerance)
    alone = jax.jit(jax.vmap(single))(*(x[None] for x in state))
    np.testing.assert_allclose(alone[0], expected[1, 2], rtol=0, atol=tolerance)
    assert jax.vmap(single)(*(x[None][:0] for x in state)).shape == (0, model.nv)


def _loops(jaxpr, within):
    """All loops of a program, with the turns of those that have a number of them."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name, equation.params.get("length")
        for inner in within(equation):
            yield from _loops(inner, within)


def test_auto_takes_levels_for_one_and_lanes_for_many(programs_within):
    """Who runs a single configuration, and who a batch: loops over bodies have as many turns as there are joints,
    those over levels have fewer."""
    model = MODELS["free base"]
    q = jnp.stack([model.neutral()] * LANES)

    def runs(executor, several):
        factor = functools.partial(jdyn.ABA().factor, dataclasses.replace(model, executor=executor))
        program = jax.make_jaxpr(jax.vmap(factor))(q) if several else jax.make_jaxpr(factor)(q[0])
        loops = set(_loops(program.jaxpr, programs_within))
        return "lanes" if ("scan", model.nb - 1) in loops else "levels"

    found = {executor: (runs(executor, False), runs(executor, True)) for executor in get_args(Executor)}
    assert found == {"auto": ("levels", "lanes"), "levels": ("levels",) * 2, "lanes": ("lanes",) * 2}


def test_the_environment_changes_no_model(monkeypatch):
    before = jdyn.load("pendulum")
    monkeypatch.setenv("JDYN_EXECUTOR", "levels")
    assert jax.tree.structure(jdyn.load("pendulum")) == jax.tree.structure(before)
    with pytest.raises(ValueError, match=r"executor: expected .*, got 'gpu'"):
        dataclasses.replace(before, executor="gpu")


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["levels", "lanes"])
def test_every_recursion_takes_the_executor_of_its_model(executor):
    """Alone and in batches, inverse dynamics, mass matrix and derivatives; `"auto"` is the one to agree with."""
    model = MODELS["chain"]
    _, q, v, tau, f_ext = _batch(model)

    def all_of(model, q, v, tau, f_ext):
        h = jdyn.inverse_dynamics(model, q, v, tau, f_ext=f_ext)
        return h, jdyn.mass_matrix(model, q), jdyn.inverse_dynamics_derivatives(model, q, v, tau, f_ext=f_ext)

    chosen = dataclasses.replace(model, executor=executor)
    for batched in (False, True):
        run = jax.vmap(all_of, (None, 0, 0, 0, 0)) if batched else all_of
        state = (q, v, tau, f_ext) if batched else (q[0], v[0], tau[0], f_ext[0])
        found, expected = (jax.jit(run)(each, *state) for each in (chosen, model))
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.max(np.abs(y)))


def test_unknown_executors_and_biases_are_refused():
    with pytest.raises(ValueError, match=r"executor: expected 'auto' or 'levels' or 'lanes', got 'kernel'"):
        dataclasses.replace(MODELS["chain"], executor="kernel")
    with pytest.raises(ValueError, match=r"bias: expected 'within' or 'separate', got 'none'"):
        jdyn.ABA(bias="none")
