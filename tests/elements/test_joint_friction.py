"""Friction in joints with bristles, against SciPy and closed forms."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from jax.test_util import check_grads

import jdyn
from jdyn.elements import LuGreFriction, StribeckFriction

pytestmark = pytest.mark.fast_compile

# The numbers of the publication, but for softer bristles.
PUBLISHED = {"coulomb": 1.0, "static": 1.5, "stribeck_speed": 0.001, "viscous": 0.4}
TIGHT = {"stepsize_controller": diffrax.PIDController(rtol=1e-9, atol=1e-11)}


def slider():
    builder = jdyn.Builder("slider")
    builder.add_link("block", jdyn.Prismatic((1, 0, 0)), joint_name="slide", mass=1.0, inertia=(1.0, 1.0, 1.0))
    return builder.build()


SLIDER = slider()


def pulled(t, q, v):
    """A spring of 2 N/m whose other end moves at 0.1 m/s, as published."""
    return 2 * (0.1 * t - q)


@pytest.mark.slow
def test_a_block_on_a_spring_sticks_and_slips():
    """The limit cycle of figure 4 of the publication, integrated by SciPy."""
    rough = LuGreFriction("slide", **PUBLISHED, stiffness=1e4)
    ts = jnp.linspace(0, 20, 41)
    motion = jdyn.simulate(
        SLIDER, jnp.zeros(1), jnp.zeros(1), 20.0, controller=pulled, elements=[rough], saveat=ts, **TIGHT,
        solver=jdyn.solvers.Rodas5P(), max_steps=20_000,
    )  # fmt: skip

    def rate(t, x):
        q, v, z = x
        bending = v - 1e4 * abs(v) * z / (1 + 0.5 * np.exp(-((v / 0.001) ** 2)))
        return [v, 2 * (0.1 * t - q) - 1e4 * z - 100 * bending - 0.4 * v, bending]

    exact = scipy.integrate.solve_ivp(rate, (0, 20), np.zeros(3), t_eval=ts, method="Radau", rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(motion.q[:, 0], exact.y[0], atol=1e-7)
    # It has slipped, and most of the time it sticks.
    assert motion.q[-1, 0] > 0.5 and np.mean(np.abs(motion.v) < 1e-3) > 0.6


def test_small_forces_bend_bristles_and_large_speeds_are_coulombs():
    rough = LuGreFriction("slide", **PUBLISHED, stiffness=1e4)
    held = jdyn.simulate(
        SLIDER, jnp.zeros(1), jnp.zeros(1), 3.0, controller=lambda t, q, v: jnp.full(1, 0.5), elements=[rough]
    )
    np.testing.assert_allclose(held.parts["elements"][0][-1], 0.5 / 1e4, rtol=1e-3)
    assert held.q[-1, 0] < 1e-4 and abs(held.v[-1, 0]) < 1e-7
    for element in (StribeckFriction("slide", **PUBLISHED), LuGreFriction("slide", **PUBLISHED, stiffness=1e4)):
        slid = 1.0 / 1e4 if isinstance(element, LuGreFriction) else None
        force = element.generalized(SLIDER, 0.0, jnp.zeros(1), jnp.array([2.0]), slid)
        np.testing.assert_allclose(force, -1.0 - 0.8, rtol=1e-12)


def test_derivatives_in_both_modes_without_nan_at_rest():
    rough = LuGreFriction("slide", **PUBLISHED)

    def force(v, z):
        return rough.generalized(SLIDER, 0.0, jnp.zeros(1), jnp.atleast_1d(v), z)[0]

    check_grads(force, (0.003, 1e-6), order=1, atol=1e-5, rtol=1e-5, eps=1e-8)
    assert np.isfinite(jax.grad(force, (0, 1))(0.0, 0.0)).all()


def test_joints_of_several_coordinates_are_refused():
    model = jdyn.random_tree(0, 1, kinds=(jdyn.Ball,))
    with pytest.raises(ValueError, match="expected a joint with one coordinate, got one with 3"):
        LuGreFriction(model.joint_names[0], **PUBLISHED).generalized(
            model, 0.0, model.neutral(), jnp.zeros(3), jnp.zeros(())
        )
