"""Programs that `jax.export` writes are those of `jax.jit`, here and in a process without jdyn."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jdyn

pytestmark = pytest.mark.slow

ARM = jdyn.load("double_pendulum")
STATE = jnp.array([0.3, -0.5]), jnp.array([1.0, 2.0])
ELSEWHERE = """
import sys
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
program = jax.export.deserialize(bytearray(open("program", "rb").read()))
np.save("found.npy", program.call(*np.load("state.npy")))
assert "jdyn" not in sys.modules
"""


def accelerations(q, v):
    return jdyn.forward_dynamics(ARM, q, v, jnp.zeros(2))


def motion(q, v):
    return jdyn.simulate(ARM, q, v, 0.5, throw=False).q


def written(function, **options):
    return export.export(jax.jit(function))(*STATE).serialize(**options)


def test_dynamics_have_the_same_bits_and_so_do_their_derivatives():
    program = export.deserialize(written(accelerations, vjp_order=1))
    found, pull = jax.vjp(program.call, *STATE)
    np.testing.assert_array_equal(found, jax.jit(accelerations)(*STATE))
    pulled = jax.jit(lambda q, v, w: jax.vjp(accelerations, q, v)[1](w))
    for slope, expected in zip(pull(STATE[0]), pulled(*STATE, STATE[0]), strict=True):
        np.testing.assert_array_equal(slope, expected)


def test_a_simulation_has_the_same_bits_and_needs_no_jdyn(tmp_path):
    content = written(motion)
    found = export.deserialize(content).call(*STATE)
    np.testing.assert_array_equal(found, jax.jit(motion)(*STATE))
    (tmp_path / "program").write_bytes(content)
    np.save(tmp_path / "state.npy", STATE)
    subprocess.run([sys.executable, "-c", ELSEWHERE], cwd=tmp_path, check=True)
    # XLA has other flags there: rounding errors of 1e-16, which a motion of half a second hardly enlarges.
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), found, rtol=0, atol=1e-12)
