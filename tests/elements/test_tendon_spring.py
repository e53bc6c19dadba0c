"""Springs of tendons: their forces follow from their energy, and their slopes from their forces."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jdyn
from jdyn.elements import TendonSpring
from jdyn.transmissions import FixedTendon, PathPoint, SpatialTendon, WrappedCylinder

pytestmark = pytest.mark.fast_compile

ARM = jdyn.load("double_pendulum")
SUM = FixedTendon(["joint1", "joint2"], [0.5, -0.2])
DRUM = WrappedCylinder("world", 0.2, jdyn.pose(rpy=[np.pi / 2, 0.0, 0.0]))
ENDS = PathPoint("world", [-0.9, 0.0, 0.0]), PathPoint("link1", [0.0, 0.0, -0.7]), PathPoint("tip")
ROPE = SpatialTendon([ENDS[0], DRUM, *ENDS[1:]])
STILL = jnp.zeros(2)


@eqx.filter_jit
def everything(element, q, v):
    """Force, slopes, Jacobians of the force, energy and its gradient."""

    def seen(q):
        return jdyn.elements.Kinematics.of(ARM, q, v)

    def force(q, v):
        return element.generalized(ARM, 0.0, q, v)

    by_q, by_v = jax.jacfwd(force, (0, 1))(q, v)
    energy, slope = jax.value_and_grad(lambda q: element.energy(seen(q), None))(q)
    return force(q, v), element.slopes(jnp.zeros(()), seen(q), None), (-by_q, -by_v), energy, slope


def test_a_rope_pulls_and_never_pushes():
    rope = TendonSpring(SUM, 40.0, rest_range=(-1.0, 0.1))
    taut, slack = jnp.array([0.6, 0.4]), jnp.array([0.2, 0.4])
    force, *_, energy, _ = everything(rope, taut, STILL)
    np.testing.assert_allclose(force, -40.0 * (0.3 - 0.08 - 0.1) * SUM.coefficients, atol=1e-13)
    np.testing.assert_allclose(energy, 20.0 * 0.12**2, atol=1e-14)
    for found in jax.tree.leaves(everything(rope, slack, STILL)):
        np.testing.assert_array_equal(found, np.zeros_like(found))


RESISTING = TendonSpring(
    SUM, 40.0, 2.0, (0.05, 0.1), 3.0, 0.1, (-0.1, 0.15), stop_stiffness=500.0, stop_dissipation=0.5, stop_onset=0.01
)


# Within all ranges, beyond the lower and the upper end, and with stops that are left faster than they push.
@pytest.mark.parametrize(
    "q, v", [([0.2, 0.1], [0.3, 0.2]), ([-0.5, 0.4], [0.1, -0.5]), ([0.5, 0.1], [0.2, 0.1]), ([0.5, 0.1], [-5.0, 0.0])]
)
def test_forces_follow_from_energy_and_slopes_from_forces(q, v):
    q, v = jnp.array(q), jnp.array(v)
    *_, gradient = everything(RESISTING, q, v)
    conservative = dataclasses.replace(RESISTING, damping=0.0, friction=0.0)
    np.testing.assert_allclose(everything(conservative, q, STILL)[0], -gradient, atol=1e-12)
    _, slopes, by, *_ = everything(RESISTING, q, v)
    np.testing.assert_allclose(slopes[1], by[1], atol=1e-12)
    np.testing.assert_allclose(slopes[0], by[0], atol=1e-12)


@pytest.mark.slow
def test_slopes_of_a_rope_are_positive():
    q, v = jnp.array([1.3, 0.4]), jnp.array([0.5, -1.0])
    rope = TendonSpring(ROPE, 60.0, 4.0, (0.0, 1.5), 2.0)
    force, slopes, by, _, gradient = everything(rope, q, v)
    np.testing.assert_allclose(slopes[1], by[1], atol=1e-12)
    assert np.abs(force).min() > 1
    for slope in slopes:
        np.testing.assert_allclose(slope, slope.T, atol=1e-12)
        assert np.linalg.eigvalsh(slope).min() > -1e-12
    np.testing.assert_allclose(everything(TendonSpring(ROPE, 60.0, rest_range=(0.0, 1.5)), q, STILL)[0], -gradient)


@pytest.mark.slow
def test_energy_stays_in_an_elastic_rope_around_a_drum():
    system = jdyn.System(ARM, elements=[TendonSpring(ROPE, 60.0, rest_range=(0.0, 2.2))])
    start, control = system.state([1.4, 0.4], [1.0, -2.0]), diffrax.PIDController(rtol=1e-8, atol=1e-8)
    motion = jdyn.simulate(system, start, 1.0, stepsize_controller=control)
    assert motion.success
    np.testing.assert_allclose(motion.energy, motion.energy[0], atol=1e-5)
    numbers = jdyn.parameters(system)
    assert numbers["elements.0.transmission.path.1.radius"] == 0.2
    thicker = jdyn.vary(system, {"elements.0.transmission.path.1.radius": 0.3, "elements.0.stiffness": 50.0})
    assert thicker.elements[0].transmission.path[1].radius == 0.3


@pytest.mark.exhaustive
def test_motions_of_a_rope_around_a_drum_have_derivatives():
    system = jdyn.System(ARM, elements=[TendonSpring(ROPE, 60.0, 1.0, (0.0, 2.2), 0.5, 0.1, (0.0, 2.5), 500.0)])
    names = [f"elements.0.{name}" for name in ("stiffness", "damping", "friction", "transmission.path.1.radius")]

    @jax.jit
    def end(numbers):
        varied = jdyn.vary(system, dict(zip(names, numbers, strict=True)))
        start, control = varied.state([1.4, 0.4], [1.0, -2.0]), diffrax.PIDController(rtol=1e-9, atol=1e-9)
        saveat = diffrax.SaveAt(t1=True)
        return jdyn.simulate(varied, start, 0.5, stepsize_controller=control, saveat=saveat).q[-1, 0]

    check_grads(end, (jnp.array([60.0, 1.0, 0.5, 0.2]),), order=1, modes=["rev"], eps=1e-4, atol=1e-5, rtol=1e-4)
