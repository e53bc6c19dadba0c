"""Programs of the rows of motions, alone and within others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.execution.compiled import FEW_ROWS, compiled_for_rows

pytestmark = pytest.mark.fast_compile


def test_it_is_the_same_function_alone_and_within_programs():
    traced = []

    def sines(x):
        traced.append(x.shape)
        return jnp.sin(x)

    few, many = jnp.linspace(0, 1, 5), jnp.zeros(FEW_ROWS + 1)
    program = compiled_for_rows(sines, lambda x: x.size)
    expected = np.sin(np.linspace(0, 1, 5))
    np.testing.assert_allclose(program(few), expected, rtol=1e-15)
    # XLA refuses options within a program, of constants and of arguments.
    for within in (jax.jit(lambda: program(few))(), jax.jit(program)(few), jax.vmap(program)(few[:, None])[:, 0]):
        np.testing.assert_allclose(within, expected, rtol=1e-15)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(program(x)))(few), np.cos(np.linspace(0, 1, 5)), rtol=1e-15)
    np.testing.assert_array_equal(program(many), 0)
    count = len(traced)
    program(few), program(many)
    assert len(traced) == count
