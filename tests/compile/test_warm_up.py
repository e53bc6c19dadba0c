"""Programs that are compiled before they are needed."""

import contextlib
import functools
import os
import subprocess
import sys

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

LANES = 3


@contextlib.contextmanager
def no_compiling():
    seen = []

    def listener(event, duration, **_):
        seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listener)
    yield
    jax.monitoring.unregister_event_duration_listener(listener)
    assert not [event for event in seen if event.startswith("/jax/core/compile/")]


@pytest.fixture(scope="module")
def model():
    return jdyn.load("double_pendulum")


def _batch(model, count):
    return list(jax.random.normal(jax.random.key(0), (count, LANES, model.nv)))


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (jdyn.forward_dynamics, 3),
        (jdyn.inverse_dynamics, 3),
        (jdyn.mass_matrix, 1),
        pytest.param(jdyn.linearize, 3, marks=pytest.mark.slow),
    ],
)
def test_a_program_is_the_function_compiled_once_for_all_masses(function, count, model):
    program = jdyn.warm_up(model, LANES, function)
    heavier, batch = model.with_body("link2", mass=7.0), _batch(model, count)
    with no_compiling():
        results = [program(some, *batch) for some in (model, heavier)]
    for some, result in zip((model, heavier), results, strict=True):
        expected = jax.vmap(function, (None, *(0,) * count))(some, *batch)
        jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12), result, expected)
    assert not np.allclose(jax.tree.leaves(results[0])[0], jax.tree.leaves(results[1])[0])
    assert program.compile_seconds > 0
    needed = sum(x.nbytes for x in jax.tree.leaves(results[0])), sum(x.nbytes for x in batch)
    # A tuple of results has a table of its own.
    assert needed[0] <= program.memory.results <= needed[0] + 64
    assert needed[1] <= program.memory.arguments <= program.memory.total - program.memory.results


@pytest.mark.slow
def test_a_simulation_of_lanes_that_differ(model):
    program = jdyn.warm_up(model, LANES, jdyn.simulate, t1=1.0, max_steps=64, throw=False, in_axes={"t1": 0})
    q0, v0 = _batch(model, 2)
    ends = jnp.linspace(0.1, 0.3, LANES)
    with no_compiling():
        trajectory = program(model, q0, v0, ends)
    alone = jdyn.simulate(model, q0[1], v0[1], ends[1])
    np.testing.assert_allclose(trajectory.q[1], alone.q, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_models_lanes_options_and_numbers(model):
    """A model a lane, a configuration for all, a force that is optional, a fixed method, Python's numbers."""

    def pushed(model, method, q, gain, *, f_ext=None):
        zero = jnp.zeros_like(q)
        return jdyn.forward_dynamics(model, q, zero, gain * jnp.ones_like(q), f_ext=f_ext, method=method)

    some = jnp.zeros((model.nb, 6))
    program = jdyn.warm_up(
        model, LANES, pushed, gain=1.0, f_ext=some, method=jdyn.CRBA(), in_axes={"model": 0, "q": None}
    )
    masses, f_ext = jnp.array([1.0, 2.0, 3.0]), jnp.ones((LANES, model.nb, 6))
    models = jax.vmap(lambda mass: model.with_body("link2", mass=mass))(masses)
    q = model.neutral() + 0.5
    found = program(models, q, 2, f_ext=f_ext)
    for lane, mass in enumerate(masses):
        expected = pushed(model.with_body("link2", mass=mass), jdyn.CRBA(), q, 2.0, f_ext=f_ext[lane])
        np.testing.assert_allclose(found[lane], expected, rtol=1e-9)


def test_one_configuration_in_single_precision(model):
    single = model.astype(jnp.float32)
    program = jdyn.warm_up(single, function=lambda model, q, gain: gain * q, gain=1.0)
    np.testing.assert_array_equal(program(single, np.ones(2, np.float32), gain=0.5), np.full(2, 0.5, np.float32))


ELSEWHERE = """
import jax, numpy as np, jdyn
model, (_, device) = jdyn.load("pendulum"), jax.devices()
program = jdyn.warm_up(jax.device_put(model, device), 2, lambda model, v: v + model.gravity[2])
v = np.ones((2, 1), np.float32)
assert program(model, v).devices() == program(jax.device_put(model, device), v).devices() == {device}
try:
    program(jax.device_put(model, jax.devices()[0]), v)
except ValueError:
    print("refused")
"""


def test_a_program_runs_where_its_model_was_put():
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    run = subprocess.run([sys.executable, "-c", ELSEWHERE], env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "refused\n", "")


@pytest.fixture(scope="module")
def power(model):
    return jdyn.warm_up(model, LANES, lambda model, v, tau: v @ tau + jnp.sum(model.gravity))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model, v, tau: (model, v, tau[:2]), r"tau: expected float64\[3, 2\], got float64\[2, 2\]; .*warm_up"),
        (lambda model, v, tau: (model, v.astype("f4"), tau), r"v: expected float64\[3, 2\], got float32\[3, 2\]"),
        (lambda model, v, tau: (model, v, tau.tolist()), r"tau: expected float64\[3, 2\], got a list"),
        (lambda model, v, tau: (model, v, "1"), r"tau: expected float64\[3, 2\], got a str"),
        (lambda model, v, tau: (model.astype(jnp.float32), v, tau), r"model\.placements\.rotation: expected float64"),
        (lambda model, v, tau: (jdyn.load("cartpole"), v, tau), "topology of 'double_pendulum', got .* of 'cartpole'"),
        (lambda model, v, tau: (model, v), "expected the arguments model, v, tau: missing .* 'tau'"),
    ],
)
def test_other_arguments_are_an_error_and_never_compiled(change, message, model, power):
    arguments = change(model, *_batch(model, 2))
    with no_compiling(), pytest.raises(ValueError, match=message):
        power(*arguments)


def test_a_program_is_not_traced(model, power):
    v, tau = _batch(model, 2)
    with pytest.raises(ValueError, match=r"tau: .* traced"):
        jax.grad(lambda tau: jnp.sum(power(model, v, tau)))(tau)


@pytest.mark.parametrize(("axis", "shape"), [(0, (LANES, 2)), (1, (2, LANES)), (-1, (2, LANES))])
def test_lanes_along_any_axis(axis, shape, model):
    program = jdyn.warm_up(model, LANES, lambda model, v: jnp.sum(v), in_axes={"v": axis})
    np.testing.assert_array_equal(program(model, jnp.ones(shape)), np.full(LANES, 2.0))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"batch": 0}, "batch: expected at least one lane, got 0"),
        ({"batch": None, "in_axes": {"q": None}}, "in_axes: lanes can differ in a batch only"),
        ({"function": jdyn.simulate}, r"t1: .* needs an example, such as t1=1\.0"),
        ({"mass": 1.0}, "mass: the function takes model, q, v, tau, f_ext, method only"),
        ({"in_axes": {"mass": 0}}, "in_axes: expected names among model, q, v, tau, got mass"),
        ({"f_ext": {"force": 1.0, "frame": "world"}}, "f_ext: expected floats and arrays only, got str"),
        ({"function": lambda: 0}, "function: expected one whose first argument is the model"),
    ],
)
def test_what_cannot_be_warmed_up_says_why(words, message, model):
    with pytest.raises(ValueError, match=message):
        jdyn.warm_up(model, **({"batch": 2} | words))
