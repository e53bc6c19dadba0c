"""Linearization against closed forms and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.dynamics import linearize
from jdyn.spatial import skew

pytestmark = pytest.mark.fast_compile


def test_pendulum():
    model = jdyn.load("pendulum").with_joint("joint1", damping=0.3)
    q, v, tau = jnp.array([0.7]), jnp.array([-0.4]), jnp.array([0.2])
    A, B = linearize(model, q, v, tau)
    M = jdyn.mass_matrix(model, q)[0, 0]
    slope = jax.jacfwd(lambda q: jdyn.gravity_forces(model, q))(q)[0, 0]
    np.testing.assert_allclose(A, [[0, 1], [-slope / M, -0.3 / M]], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(B, [[0], [1 / M]], rtol=1e-12)


@pytest.mark.slow
def test_free_body_that_moves():
    """de/dt = w − [v, e], and accelerations against finite differences along the tangent space."""
    model = jdyn.random_tree(5, 2, kinds=(jdyn.Free, jdyn.Revolute))
    q = model.random(jax.random.key(0))
    v, tau = jax.random.normal(jax.random.key(1), (2, model.nv))
    A, B = linearize(model, q, v, tau)
    n, at = model.nv, model.topology.v_offsets[model.topology.kinds.index(jdyn.Free)]
    turn, shift = skew(v[at : at + 3]), skew(v[at + 3 : at + 6])
    bracket = np.zeros((n, n))
    bracket[at : at + 6, at : at + 6] = np.block([[turn, np.zeros((3, 3))], [shift, turn]])
    np.testing.assert_allclose(A[:n], np.concatenate([-bracket, np.eye(n)], axis=1), atol=1e-12)

    accelerations = jax.jit(
        lambda x: jdyn.forward_dynamics(model, model.integrate(q, x[:n]), v + x[n : 2 * n], tau + x[2 * n :])
    )
    steps = 1e-6 * jnp.eye(3 * n)
    differences = (jax.vmap(accelerations)(steps) - jax.vmap(accelerations)(-steps)).T / 2e-6
    both = jnp.concatenate([A[n:], B[n:]], axis=1)
    np.testing.assert_allclose(both, differences, atol=1e-7 * float(jnp.max(jnp.abs(both))))
    np.testing.assert_array_equal(B[:n], 0)
