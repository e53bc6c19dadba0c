"""Recursions by kernels, interpreted, against the same recursions in plain XLA."""

import dataclasses
import functools
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

import jdyn
from jdyn.dynamics.execution.batching import by_lanes
from jdyn.dynamics.newton_euler import moving_tree, newton_euler
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
# More than a program of the kernel has, and no multiple of it.
LANES = 37


@functools.partial(jax.jit, static_argnums=(1, 2))
def _batch(model, dtype, lanes=LANES):
    """Models that differ in a mass, states and forces."""
    models = jax.vmap(lambda mass: model.with_body(model.body_names[-1], mass=mass))(jnp.linspace(0.5, 2, lanes))
    return models.astype(dtype), *drawn_states(model, lanes, dtype=dtype)


def _forward(executor):
    def accelerations(model, q, v, tau, f_ext):
        return jdyn.forward_dynamics(dataclasses.replace(model, executor=executor), q, v, tau, f_ext=f_ext)

    return accelerations


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("chain", jnp.float64),
        pytest.param("tree", jnp.float64, marks=pytest.mark.slow),
        pytest.param("free base", jnp.float32, marks=pytest.mark.slow),
        pytest.param("every kind", jnp.float32, marks=pytest.mark.slow),
    ],
)
def test_kernels_compute_what_plain_programs_do(name, dtype):
    model = MODELS[name]
    batch = _batch(model, dtype)
    found, expected = (jax.jit(jax.vmap(_forward(executor)))(*batch) for executor in ("kernel", "lanes"))
    assert found.dtype == dtype
    # The same operations in the same order, but for products that go into sums unrounded: a few for every body.
    tolerance = 10 * model.nb * np.finfo(dtype).eps * np.max(np.abs(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.slow
def test_derivatives():
    """Both modes, which take the factors that kernels left."""
    models, q, v, tau, f_ext = _batch(MODELS["chain"], jnp.float64, 3)

    def derivatives(executor, q, v, tau):
        def forward(q, v, tau):
            return jax.vmap(_forward(executor))(models, q, v, tau, f_ext)

        a, pull = jax.vjp(forward, q, v, tau)
        return jax.jvp(functools.partial(forward, q, v), (tau,), (tau,))[1], pull(a)

    found, expected = (jax.jit(functools.partial(derivatives, executor))(q, v, tau) for executor in ("kernel", "lanes"))
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.max(np.abs(y)))


@pytest.mark.slow
def test_batches_of_batches_and_single_configurations():
    """Lanes of lanes, of which the inner ones share a configuration; a single one; a batch of one, and of none."""
    model = MODELS["chain"]
    _, q, v, tau, f_ext = _batch(model, jnp.float64, 3)

    def nested(executor):
        inner = jax.vmap(functools.partial(_forward(executor), model), in_axes=(None, 0, None, 0))
        return jax.jit(jax.vmap(inner, in_axes=(0, None, 0, None)))

    found, expected = (nested(executor)(q, v, tau, f_ext) for executor in ("kernel", "lanes"))
    tolerance = 1e-12 * np.max(np.abs(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    single = functools.partial(_forward("kernel"), model)
    state = q[1], v[2], tau[1], f_ext[2]
    np.testing.assert_allclose(jax.jit(single)(*state), expected[1, 2], rtol=0, atol=tolerance)
    alone = jax.jit(jax.vmap(single))(*(x[None] for x in state))
    np.testing.assert_allclose(alone[0], expected[1, 2], rtol=0, atol=tolerance)
    assert jax.vmap(single)(*(x[None][:0] for x in state)).shape == (0, model.nv)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("chain", jnp.float32),
        pytest.param("chain", jnp.float64, marks=pytest.mark.slow),
        ("tree", jnp.float32),
        pytest.param("free base", jnp.float64, marks=pytest.mark.slow),
    ],
)
def test_kernels_lower_for_cuda(name, dtype):
    """One for each loop over bodies: three of the motion, one of the elimination, two of the response to forces, two of
    Newton and Euler."""
    model = dataclasses.replace(MODELS[name].astype(dtype), executor="kernel")
    state = model.neutral(), *(jnp.zeros(model.nv, dtype),) * 2

    def recursions(q, v, tau):
        method = jdyn.ABA()
        moved = method.accelerations_and_factors(model, q, v, tau, None)[0]
        pushed = method.solve(model, method.factor(model, q), tau)
        if not model.topology.single_dof_joints:
            return moved, pushed
        arguments = model, q, v, tau, None
        forces = by_lanes(None, moving_tree, newton_euler, *arguments, like=v)
        return moved, pushed, forces

    assert _kernels(recursions, *state) == 3 + 1 + 2 + 2 * model.topology.single_dof_joints


def test_kernels_of_a_gradient():
    """Factors that the value took are there for the gradient, which adds the response to forces and the pullback of
    inverse dynamics, two loops each; and `"auto"` takes no kernel."""
    model = MODELS["chain"]
    state = model.neutral(), *(jnp.zeros(model.nv),) * 2

    def squares(executor, *state):
        return jnp.sum(_forward(executor)(model, *state, None) ** 2)

    assert _kernels(jax.grad(functools.partial(squares, "kernel"), (0, 1, 2)), *state) == 3 + 2 + 2
    assert _kernels(functools.partial(squares, "auto"), *state) == 0


def _kernels(function, *arguments):
    """How many a batch of it starts on a CUDA device."""
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct((LANES, *x.shape), x.dtype), arguments)
    # JAX from 0.11 on asks which device kernels are for.
    device = AbstractDevice(device_kind="NVIDIA H100 80GB HBM3", num_cores=132, platform="gpu")
    with use_abstract_mesh(AbstractMesh((), (), abstract_device=device)):
        lowered = jax.jit(jax.vmap(function)).trace(*shapes).lower(lowering_platforms=("cuda",))
    return lowered.as_text().count("xla.gpu.triton")


def _loops(jaxpr, within):
    """All loops and kernels of a program, with the turns of those that have a number of them."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name, equation.params.get("length")
        for inner in within(equation):
            yield from _loops(inner, within)


def test_executors(programs_within):
    """Who runs a single configuration, and who a batch: loops over bodies have as many turns as there are joints,
    those over levels have fewer."""
    model = MODELS["free base"]
    q = jnp.stack([model.neutral()] * 3)

    def runs(executor, several):
        factor = functools.partial(jdyn.ABA().factor, dataclasses.replace(model, executor=executor))
        program = jax.make_jaxpr(jax.vmap(factor))(q) if several else jax.make_jaxpr(factor)(q[0])
        loops = set(_loops(program.jaxpr, programs_within))
        if ("scan", model.nb - 1) not in loops:
            return "levels"
        return "kernel" if "pallas_call" in dict(loops) else "lanes"

    found = {executor: (runs(executor, False), runs(executor, True)) for executor in get_args(Executor)}
    same = {executor: (executor, executor) for executor in ("levels", "lanes", "kernel")}
    assert found == {"auto": ("levels", "lanes"), **same}


def test_the_environment_chooses_the_executor_of_models_that_are_built(monkeypatch):
    monkeypatch.setenv("JDYN_EXECUTOR", "levels")
    assert jdyn.load("pendulum").executor == "levels"
    monkeypatch.setenv("JDYN_EXECUTOR", "gpu")
    with pytest.raises(ValueError, match=r"executor: expected .*, got 'gpu'"):
        jdyn.load("pendulum")


@pytest.mark.slow
@pytest.mark.parametrize(
    "executor", ["levels", *(pytest.param(x, marks=pytest.mark.slow) for x in ("lanes", "kernel"))]
)
def test_every_recursion_takes_the_executor_of_its_model(executor):
    """Alone and in batches, inverse dynamics, mass matrix and derivatives; `"auto"` is the one to agree with."""
    model = MODELS["chain"]
    _, q, v, tau, f_ext = _batch(model, jnp.float64, 3)

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
    with pytest.raises(ValueError, match=r"executor: expected 'auto' or .* or 'kernel', got 'gpu'"):
        dataclasses.replace(MODELS["chain"], executor="gpu")
    with pytest.raises(ValueError, match=r"bias: expected 'within' or 'separate', got 'none'"):
        jdyn.ABA(bias="none")
