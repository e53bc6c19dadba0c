"""The crane's swings against the formulas of a physical pendulum, and its motion as Pinocchio computes it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.robots import crane

pytestmark = pytest.mark.fast_compile

MODEL = dataclasses.replace(crane(), damping=jnp.zeros(4))
mass_matrix = jax.jit(jdyn.mass_matrix)
gravity = jax.jit(jdyn.gravity_forces)
Q = np.array([0, 10.0, 0, 0])


def test_swings():
    """Load and cable are a pendulum that hangs on the trolley and the boom; both recoil."""
    M = np.asarray(mass_matrix(MODEL, Q))
    about_pin = 500 * 100 + 500 / 12 * (4**2 + 0.2**2) + 0.05
    np.testing.assert_allclose(M[2, 2], about_pin, rtol=1e-12)
    np.testing.assert_allclose(M[1:3, 1], [705, -5000], rtol=1e-12)
    stiffness = 500 * 9.81 * 10
    np.testing.assert_allclose(gravity(MODEL, np.array([0, 10, 0.2, 0]))[2], stiffness * np.sin(0.2), rtol=1e-12)
    np.testing.assert_allclose(gravity(MODEL, np.array([0, 10, 0, 0.2]))[3], stiffness * np.sin(0.2), rtol=1e-12)
    along = stiffness / (M[2, 2] - M[1, 2] ** 2 / M[1, 1])
    across = stiffness / (M[3, 3] - M[0, 3] ** 2 / M[0, 0])
    np.testing.assert_allclose(np.sqrt([along, across]), [1.79594138, 1.04753492], rtol=1e-8)


def test_motion():
    q, v = np.array([0.3, 8, 0.2, -0.1]), np.array([0.1, 0.5, 0.2, -0.3])
    a = jax.jit(jdyn.forward_dynamics)(MODEL, q, v, np.array([1000.0, 200, 0, 0]))
    np.testing.assert_allclose(a, [-0.007733, -3.706723, -0.490235, 0.124967], atol=1e-6)


def test_swings_go_where_the_docstring_says():
    pose = jax.jit(jdyn.frame_pose, static_argnums=2)
    hook = [pose(MODEL, Q + np.array(dq), "hook").translation for dq in ([0, 0, 0.1, 0], [0, 0, 0, 0.1])]
    assert hook[0][0] < 10 - 0.9
    assert hook[1][1] > 0.9
