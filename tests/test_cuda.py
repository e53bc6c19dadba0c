"""Programs for a CUDA device: JAX lowers them without one, and refuses what it has no such implementation of.

How many lanes of a simulation go at a time is what suits the device that JAX has; three are one batch on each.
"""

import functools

import jax
import jax.numpy as jnp
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

MODEL = jdyn.load("quadruped")
METHODS = [
    jdyn.ABA(),
    jdyn.ArrayABA(),
    jdyn.ParallelABA(),
    jdyn.CRBA(),
    jdyn.CRBA(solver="lu"),
    jdyn.CRBA(solver="svd"),
]


def _size(q, v, tau):
    return jnp.sum(jdyn.forward_dynamics(MODEL, q, v, tau) ** 2)


def _simulated(q, v, tau):
    return jdyn.simulate(MODEL, q, v, 0.1, throw=False).q


def _constrained(q, v, tau):
    foot = jdyn.constraints.Connect("world", MODEL.body_names[-1])
    return jdyn.constrained_dynamics(MODEL, [foot, foot], q, v, tau)


FUNCTIONS = {
    "inverse dynamics": functools.partial(jdyn.inverse_dynamics, MODEL),
    "mass matrix": lambda q, v, tau: jdyn.mass_matrix(MODEL, q),
    "Coriolis matrix": lambda q, v, tau: jdyn.coriolis_matrix(MODEL, q, v),
    "constrained dynamics": _constrained,
    "full derivatives": functools.partial(jdyn.forward_dynamics_derivatives, MODEL),
    "gradient": jax.grad(_size, (0, 1, 2)),
    "simulation": _simulated,
    "gradient of a simulation": jax.grad(lambda *state: jnp.sum(_simulated(*state)), (0, 1)),
    **{str(method): functools.partial(jdyn.forward_dynamics, MODEL, method=method) for method in METHODS},
}


SLOW = "gradient of a simulation"


@pytest.mark.filterwarnings("ignore:a batch runs slower")
@pytest.mark.parametrize("lanes", [pytest.param((), marks=pytest.mark.slow), (3,)], ids=["one", "batch"])
@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.slow] * (x == SLOW)) for x in FUNCTIONS])
def test_lowers(name, lanes):
    function, shapes = FUNCTIONS[name], [(*lanes, size) for size in (MODEL.nq, MODEL.nv, MODEL.nv)]
    states = (jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes)
    traced = jax.jit(jax.vmap(function) if lanes else function).trace(*states)
    assert "lapack" not in traced.lower(lowering_platforms=("cuda",)).as_text()
