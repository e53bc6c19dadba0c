"""Derivatives of motions in contact, in both modes and both precisions, against a closed form."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from tests.contact.scenes import bouncing

pytestmark = pytest.mark.fast_compile

G, RADIUS, T = 9.81, 0.1, 0.01
# Depth at the start [m] and stiffness [N/m].
AT = 0.02, 2e4
GROUND = {"ground": jdyn.contact.Material(jnp.inf, 0.0, 0.0)}


def oscillator(depth, stiffness):
    """Height of a ball of 1 kg on a vertical rail that starts at rest in the ground, before it leaves it."""
    rest = G / stiffness
    return RADIUS - rest - (depth - rest) * jnp.cos(jnp.sqrt(stiffness) * T)


def expected():
    return np.array(jax.grad(oscillator, (0, 1))(*map(jnp.asarray, AT)))


def swung(contact, depth, stiffness, **options):
    """The same, simulated."""
    law = contact(material=jdyn.contact.Material(stiffness, 0.0, 0.0), materials=GROUND)
    motion = jdyn.simulate(
        bouncing().astype(depth.dtype), (RADIUS - depth)[None], jnp.zeros(1, depth.dtype), T, contact=law,
        saveat=diffrax.SaveAt(t1=True), **options,
    )  # fmt: skip
    return motion.q[0, 0]


def convex(depth, stiffness, tolerance, adjoint=None):
    steps = diffrax.PIDController(rtol=tolerance, atol=tolerance)
    return swung(jdyn.ConvexContact, depth, stiffness, stepsize_controller=steps, dt0=1e-3, adjoint=adjoint)


def single(function):
    """Its derivatives in single precision."""
    found = jax.jit(jax.grad(function, (0, 1)))(*(jnp.asarray(x, jnp.float32) for x in AT))
    assert found[0].dtype == jnp.float32
    return np.array(found)


@pytest.mark.slow
def test_derivatives_of_compliant_contact_in_single_precision_are_right_to_a_per_cent():
    """With 40 steps of order 2, whose phase errs by (ω h)² / 6 = 2e-4 of itself, 1.4."""

    def end(depth, stiffness):
        fixed = {"solver": diffrax.Heun(), "stepsize_controller": diffrax.ConstantStepSize(), "dt0": T / 40}
        return swung(jdyn.CompliantContact, depth, stiffness, **fixed)

    np.testing.assert_allclose(single(end), expected(), rtol=1e-2)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_derivatives_of_convex_contact_in_single_precision_are_right_to_a_per_cent():
    np.testing.assert_allclose(single(lambda depth, k: convex(depth, k, 1e-5)), expected(), rtol=1e-2)


@pytest.fixture(scope="module")
def backwards():
    return jax.jit(jax.grad(lambda depth, k: convex(depth, k, 1e-8), (0, 1)))(*map(jnp.asarray, AT))


@pytest.mark.slow
def test_derivatives_of_convex_contact_are_those_of_an_oscillator(backwards):
    """Steps err by 1e-7 of the radius, which is half of the motion or so."""
    np.testing.assert_allclose(backwards, expected(), rtol=1e-5)


@pytest.mark.exhaustive
def test_forward_mode_has_the_derivatives_of_reverse_mode(backwards):
    program = jax.jit(jax.jacfwd(lambda depth, k: convex(depth, k, 1e-8, diffrax.ForwardMode()), (0, 1)))
    np.testing.assert_allclose(program(*map(jnp.asarray, AT)), backwards, rtol=1e-9)
