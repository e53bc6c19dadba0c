"""What is compiling, and what is not."""

import time

import jax
import jax.numpy as jnp
import pytest

from jdyn.compile.compile_time import timed

pytestmark = pytest.mark.fast_compile


def test_compiling_and_running_are_told_apart():
    @jax.jit
    def inner(x):
        time.sleep(0.1)  # of tracing, which the outer function's has in it
        return jnp.sin(x)

    @jax.jit
    def outer(x):
        return inner(x) + jnp.cos(inner(x * 2))

    x = jnp.arange(1234.0).block_until_ready()
    began = time.perf_counter()
    with timed() as first:
        outer(x).block_until_ready()
        time.sleep(0.2)
    passed = time.perf_counter() - began
    assert first.compiling + first.running == pytest.approx(passed, abs=0.05)
    assert 0.1 < first.compiling < passed - 0.2 and 0.2 < first.running
    with timed() as second:
        outer(x).block_until_ready()
    assert second.compiling == 0 and second.running > 0
