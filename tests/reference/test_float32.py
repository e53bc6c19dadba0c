"""Real robots in single precision, compiled as users compile."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.interop.values import nameless, random_states
from tests.reference.example_robots import SAMPLES, every_robot, load

# By default, `tests/dynamics/test_accuracy.py` shows it on chains.
pytestmark = pytest.mark.slow


@eqx.filter_jit
def accelerations(model, states):
    return jax.vmap(lambda s: jdyn.forward_dynamics(model, s.q, s.v, s.tau, f_ext=s.f_ext))(states)


@every_robot
def test_float32(name, floating):
    """Forward dynamics of exactly the same numbers in both precisions."""
    single = nameless(load(name, floating)).astype(jnp.float32)
    for seed in range(8):
        states = random_states(single, SAMPLES, seed)
        a = np.asarray(accelerations(single, states), float)
        exact = accelerations(*(jax.tree.map(lambda x: x.astype(jnp.float64), x) for x in (single, states)))
        assert np.max(np.linalg.norm(a - exact, axis=1) / np.linalg.norm(exact, axis=1)) < 1e-5
