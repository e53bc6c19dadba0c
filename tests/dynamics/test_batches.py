"""Batches over states, over models, over both; one trace for two loads; the two floating types."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.drawn import drawn_states

pytestmark = pytest.mark.fast_compile


def _batch(model, count=3):
    return drawn_states(model, count)[:3]


@pytest.mark.slow
def test_vmap_equals_loop():
    """The tree is as wide as it is deep and has joints of several widths, so levels are padded."""
    model = jdyn.random_tree(5, 8, kinds=(jdyn.Free, jdyn.Revolute, jdyn.Universal))
    masses = jnp.array([0.5, 1.0, 3.0])
    models = jax.vmap(lambda mass: model.with_body("body4", mass=mass))(masses)
    q, v, tau = _batch(model)
    forward = jax.jit(jdyn.forward_dynamics)
    one = [forward(jax.tree.map(lambda x, i=i: x[i], models), q[i], v[i], tau[i]) for i in range(3)]
    np.testing.assert_allclose(jax.jit(jax.vmap(jdyn.forward_dynamics))(models, q, v, tau), one, rtol=1e-10)


def test_two_loads_share_one_trace():
    traces = []

    @jax.jit
    def forward(model, q, v, tau):
        traces.append(model.name)
        return jdyn.forward_dynamics(model, q, v, tau)

    for _ in range(2):
        model = jdyn.random_tree(2, 3, kinds=(jdyn.Revolute,))
        forward(model.with_body("body0", mass=2.0), *(x[0] for x in _batch(model)))
    assert len(traces) == 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float32, pytest.param(jnp.float64, marks=pytest.mark.exhaustive)])
def test_type_follows_the_inputs(dtype):
    model = jdyn.random_tree(2, 3, kinds=(jdyn.Ball, jdyn.Revolute, jdyn.Helical), dtype=dtype)
    q, v, tau = (x[0].astype(dtype) for x in _batch(model))
    f_ext = jnp.ones((model.nb, 6), dtype)

    @jax.jit
    def everything(model, q, v, tau):
        return (
            jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext),
            jdyn.forward_dynamics(model, q, v, tau, method=jdyn.CRBA()),
            jdyn.inverse_dynamics(model, q, v, tau),
            jdyn.mass_matrix(model, q),
            jdyn.coriolis_matrix(model, q, v),
            jdyn.regressor(model, q, v, tau),
            jdyn.momentum(model, q, v),
            jdyn.jacobian(model, q, 2, point=(0.1, 0.2, 0.3), frame="aligned"),
            jdyn.potential_energy(model, q),
            model.integrate(q, v),
            model.difference(q, q),
            model.random(jax.random.key(0)),
            jax.grad(lambda q: jnp.sum(jdyn.forward_dynamics(model, q, v, tau)))(q),
        )

    results = everything(model, q, v, tau)
    assert {x.dtype for x in results} == {jnp.dtype(dtype)}
    assert all(np.all(np.isfinite(x)) for x in results)


def test_mixed_types_take_the_wider_one():
    with jax.numpy_dtype_promotion("standard"):
        single, double = (jdyn.load("double_pendulum", dtype=dtype) for dtype in (jnp.float32, jnp.float64))
        q = jnp.array([0.3, -0.4])
        exact = jdyn.forward_dynamics(double, q, q, q)
        for model, state in ((single, q), (double, q.astype(jnp.float32))):
            found = jdyn.forward_dynamics(model, state, q, q)
            assert found.dtype == jnp.float64
            np.testing.assert_allclose(found, exact, rtol=1e-5)
            assert jdyn.gravity_forces(model, state).dtype == jnp.float64


def test_numbers_lists_and_numpy_integers_are_understood():
    model = jdyn.load("double_pendulum")
    exact = jdyn.jacobian(model, jnp.array([1.0, 2.0]), 1, point=jnp.zeros(3))
    np.testing.assert_array_equal(jdyn.jacobian(model, [1, 2], np.int64(1), point=(0, 0, 0)), exact)
    np.testing.assert_array_equal(jdyn.jacobian(model, [1.0, 2.0], 1, point=np.zeros(3)), exact)


def test_the_body_of_a_jacobian_may_be_traced():
    """Under `jit`, `vmap` and in a loop; a number of no body gives NaN, since nothing can be raised there."""
    model = jdyn.random_tree(2, 5, kinds=(jdyn.Revolute, jdyn.Ball))
    q = model.random(jax.random.key(0))
    bodies = jnp.arange(model.nb)
    together = jax.jit(jax.vmap(lambda body: jdyn.jacobian(model, q, body, frame="aligned")))(bodies)
    alone = jnp.stack([jdyn.jacobian(model, q, body, frame="aligned") for body in range(model.nb)])
    np.testing.assert_allclose(together, alone, atol=1e-15)
    poses = jax.vmap(lambda body: jdyn.frame_pose(model, q, body).translation)(bodies)
    np.testing.assert_allclose(poses, jdyn.forward_kinematics(model, q).translation, atol=1e-15)
    for nowhere in (-2, model.nb):
        assert jnp.all(jnp.isnan(jax.jit(lambda body: jdyn.jacobian(model, q, body))(nowhere)))
