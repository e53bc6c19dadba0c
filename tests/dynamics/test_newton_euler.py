"""Inverse dynamics number by number, as batches have it, against the recursion on matrices that one state has."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.model.random_tree import ALL_KINDS
from tests.drawn import drawn_states

pytestmark = pytest.mark.fast_compile

MODELS = {
    "screws": lambda: jdyn.random_tree(3, 6, kinds=(jdyn.Revolute, jdyn.Prismatic, jdyn.Helical)),
    "free base": lambda: jdyn.load("quadruped"),
    "every kind": lambda: jdyn.random_tree(5, 10, kinds=ALL_KINDS),
}


def _forces(model):
    return lambda q, v, a, f_ext: jdyn.inverse_dynamics(model, q, v, a, f_ext=f_ext)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n != "screws")) for n in MODELS])
def test_batches_equal_single_states(name):
    model = MODELS[name]()
    states, forces = drawn_states(model, 3), _forces(model)
    expected = np.stack([forces(*(x[i] for x in states)) for i in range(3)])
    # Rounding of sums over as many bodies, in another order.
    tolerance = 10 * model.nb * np.finfo(float).eps * np.max(np.abs(expected))
    np.testing.assert_allclose(jax.vmap(forces)(*states), expected, atol=tolerance)


@pytest.mark.slow
def test_derivatives_of_batches_in_both_modes():
    model = MODELS["screws"]()
    states, forces = drawn_states(model, 2), _forces(model)

    def derivatives(*state):
        tangents = jax.tree.map(jnp.ones_like, state)
        force, pull = jax.vjp(forces, *state)
        return jax.jvp(forces, state, tangents)[1], pull(jnp.ones_like(force))

    together = jax.jit(jax.vmap(derivatives))(*states)
    alone = jax.jit(derivatives)
    for i in range(2):
        for found, expected in zip(
            jax.tree.leaves(together), jax.tree.leaves(alone(*(x[i] for x in states))), strict=True
        ):
            np.testing.assert_allclose(found[i], expected, atol=1e-12 * np.max(np.abs(expected)))


@pytest.mark.slow
def test_single_precision():
    model = MODELS["free base"]()
    states = drawn_states(model, 3)
    exact = jax.vmap(_forces(model))(*states)
    found = jax.vmap(_forces(model.astype(jnp.float32)))(*(x.astype(jnp.float32) for x in states))
    assert found.dtype == jnp.float32
    # Numbers of the state and of the model are rounded, and so is each of a handful of products and sums a body.
    np.testing.assert_allclose(found, exact, atol=10 * model.nb * np.finfo(np.float32).eps * np.max(np.abs(exact)))
