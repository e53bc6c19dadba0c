"""A rod between a crank and a slider, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.elements import Kinematics
from jdyn.transmissions import SliderCrank
from tests.errors import tol

pytestmark = pytest.mark.fast_compile

# The tip turns on a circle of radius one in the plane of x and z, below the origin at q = 0.
CRANK = jdyn.load("pendulum")


def travel(rod, q, model=CRANK):
    state = Kinematics.of(model, jnp.atleast_1d(jnp.asarray(q, model.dtype)), jnp.zeros(1, model.dtype))
    piston = SliderCrank("tip", "world", rod=rod)
    return piston.length(state), piston.moments(state)[0]


def test_the_slider_is_where_the_rod_leads():
    """l = −cos q − √(r² − sin² q), with its slope."""
    q, r = np.linspace(-3, 3, 13), 1.7
    length, arm = jax.jit(jax.vmap(lambda q: travel(r, q)))(q)
    root = np.sqrt(r**2 - np.sin(q) ** 2)
    np.testing.assert_allclose(length, -np.cos(q) - root, atol=tol(jnp.float64))
    np.testing.assert_allclose(arm, np.sin(q) + np.sin(q) * np.cos(q) / root, atol=tol(jnp.float64))
    slope = jax.vmap(jax.grad(lambda q: travel(r, q)[0]))(q)
    np.testing.assert_allclose(slope, arm, atol=tol(jnp.float64))


def test_slopes_are_finite_where_the_rod_is_at_right_angles_and_beyond():
    """A rod of 0.5 reaches up to sin q = 0.5; at q = π/2 it gives way, and there the length is that along the axis."""
    near = np.arcsin(0.5)
    q = np.array([0.0, near - 1e-9, near, near + 1e-9, np.pi / 2])
    for dtype in (jnp.float64, jnp.float32):
        model = jdyn.load("pendulum", dtype=dtype)
        found = jax.jit(jax.vmap(jax.jacfwd(jax.value_and_grad(lambda q, m=model: travel(0.5, q, m)[0]))))(
            jnp.asarray(q, dtype)
        )
        assert all(np.isfinite(x).all() for x in found)
    np.testing.assert_allclose(travel(0.5, np.pi / 2), (0.0, 1.0), atol=1e-12)
