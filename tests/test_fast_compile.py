"""Marked files are compiled without XLA's optimiser."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import compiler

pytestmark = pytest.mark.fast_compile


def test_options_reach_the_compiler(monkeypatch):
    seen = []
    compile_and_load = compiler.backend_compile_and_load

    def spy(backend, module, devices, options, *rest):
        seen.append(dict(options.env_option_overrides))
        return compile_and_load(backend, module, devices, options, *rest)

    monkeypatch.setattr(compiler, "backend_compile_and_load", spy)
    # Another program than any that is kept.
    some = np.random.default_rng().uniform()
    assert jax.jit(lambda x: x - some)(jnp.ones(())) == 1 - some
    assert seen and all(options["xla_backend_optimization_level"] == 0 for options in seen)
