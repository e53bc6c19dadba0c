"""Gauss' principle by dynamic programming, where the base is moved as prescribed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile


@pytest.mark.slow
def test_a_base_that_is_moved_as_prescribed():
    """Inverse dynamics finds the forces that were given in all joints but the base's, which takes what it takes."""
    model = jdyn.load("quadruped").with_joint("fl_knee", damping=0.3)
    keys = jax.random.split(jax.random.key(0), 5)
    q, (v, tau) = model.random(keys[0]), (jax.random.normal(key, (model.nv,)) for key in keys[1:3])
    base, f_ext = jax.random.normal(keys[3], (6,)), jax.random.normal(keys[4], (model.nb, 6))
    moved = jax.jit(jdyn.studies.GaussDP().on_moving_base)
    a = moved(model, q, v, tau, base, f_ext=f_ext)
    np.testing.assert_array_equal(a[:6], base)
    found = jdyn.inverse_dynamics(model, q, v, a, f_ext=f_ext)
    np.testing.assert_allclose(found[6:], tau[6:], atol=1e-11)
    # Moved as it would move by itself, the base needs no force.
    free = jdyn.forward_dynamics(model, q, v, tau.at[:6].set(0), f_ext=f_ext)
    again = moved(model, q, v, tau, free[:6], f_ext=f_ext)
    np.testing.assert_allclose(again, free, atol=1e-10 * np.max(np.abs(free)))


def test_what_has_no_free_base_is_refused():
    model, x = jdyn.load("double_pendulum"), jnp.zeros(2)
    with pytest.raises(ValueError, match="'double_pendulum': expected a free base that carries all other bodies"):
        jdyn.studies.GaussDP().on_moving_base(model, x, x, x, jnp.zeros(6))
    model = jdyn.load("quadruped")
    x = jnp.zeros(model.nv)
    with pytest.raises(ValueError, match=r"acceleration: expected shape \(6,\), got \(3,\)"):
        jdyn.studies.GaussDP().on_moving_base(model, model.neutral(), x, x, jnp.zeros(3))
