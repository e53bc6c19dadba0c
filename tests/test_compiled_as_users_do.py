"""Files that are not marked are compiled as a program without any setting is."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
from jax._src import compiler

# Rounds otherwise where products and sums are fused, which XLA's optimiser does on processors that can.
PROGRAM = """
import jax, jax.numpy as jnp
x = jnp.linspace(0.1, 1.0, 4096, dtype=jnp.float32)
f = jax.jit(lambda x: jnp.sum((x * x - jnp.float32(0.3) * x) * jnp.sin(x) + x * jnp.flip(x)))
"""


def test_programs_round_as_in_a_bare_process():
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    bare = subprocess.run(
        [sys.executable, "-c", PROGRAM + "print(float(f(x)).hex())"],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    names = {}
    exec(PROGRAM, names)
    assert float(names["f"](names["x"])).hex() == bare.strip()


def test_no_options_are_set():
    assert compiler.get_compile_options(1, 1).env_option_overrides == []
    assert jax.jit(lambda x: x + 1)(jnp.ones(())) == 2
