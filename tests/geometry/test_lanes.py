"""Batches whose lanes run in turn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.geometry.lanes import in_turn_on_cpus

pytestmark = pytest.mark.fast_compile


def _doubled(x, limit):
    """And how often, until it is above a limit."""
    return jax.lax.while_loop(lambda state: state[0] <= limit, lambda state: (2 * state[0], state[1] + 1), (x, 0))


def test_lanes_of_nested_batches_are_those_of_the_formula():
    """Arguments vary with the inner batch, the outer or both."""
    x, limit = jnp.linspace(1.0, 9.0, 70), jnp.array([3.0, 1000.0, 50.0])
    inner = jax.vmap(lambda x, limit: in_turn_on_cpus(_doubled, x, limit), (0, None))
    found, counts = jax.jit(jax.vmap(inner, (None, 0)))(x, limit)
    expected = np.ceil(np.log2(limit[:, None] / x[None])).clip(0)
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(found, x[None] * 2**expected)
    shared = jax.jit(jax.vmap(inner, (0, None)))(jnp.stack([x, 2 * x]), 20.0)[0]
    np.testing.assert_array_equal(shared[0], x * 2 ** np.ceil(np.log2(20 / x)))
    np.testing.assert_array_equal(shared[1], shared[0])


def test_programs_hold_one_lane():
    def program(lanes):
        return str(jax.make_jaxpr(jax.vmap(lambda x: in_turn_on_cpus(_doubled, x, 9.0)))(jnp.ones(lanes)))

    if jax.default_backend() == "cpu":
        assert "scan" in program(100) and "scan" not in program(1)
        assert "pred[100]" not in program(100) and program(100).count("while") == 1
