"""What a minute of motion keeps: energy of conservative mechanisms, momentum of free ones."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn

TOLERANCE = 1e-9
STEPS = diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE)


def minute(model, q0, v0, **options):
    ts = jnp.linspace(0, 60, 61)
    return jdyn.simulate(model, q0, v0, 60.0, saveat=ts, stepsize_controller=STEPS, max_steps=200_000, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pendulum", "double_pendulum", "crane", "puma560"])
def test_a_minute_without_friction_keeps_its_energy(name):
    """To ten times the tolerance, of the largest kinetic energy."""
    model = jdyn.load(name)
    for joint in model.joint_names:
        model = model.with_joint(joint, damping=0.0, friction=0.0)
    motion = minute(model, model.random(jax.random.key(1)), jnp.zeros(model.nv), solver=diffrax.Dopri8())
    energy = motion.energy(model)
    kinetic = jax.vmap(lambda q, v: jdyn.kinetic_energy(model, q, v))(motion.q, motion.v)
    drift = float(jnp.max(jnp.abs(energy - energy[0])) / jnp.max(kinetic))
    assert drift < 10 * TOLERANCE, drift


@pytest.mark.slow
def test_a_minute_of_flight_keeps_momentum_and_energy():
    """A body with a wheel on a ball joint and an arm: momentum about the centre of mass to 1e-10, relatively."""
    builder = jdyn.Builder("satellite", gravity=(0, 0, 0))
    builder.add_link("hull", jdyn.Free(), mass=2.0, com=(0.05, 0, 0.02), inertia=(0.03, 0.07, 0.09))
    builder.add_link("wheel", jdyn.Ball(), parent="hull", placement=(0.3, 0, 0), mass=0.7, inertia=(0.02, 0.01, 0.02))
    builder.add_link("arm", jdyn.Revolute((1, 1, 0)), parent="hull", mass=0.4, com=(0, 0, 0.3), inertia=[0.01] * 3)
    model = builder.build()
    v0 = jax.random.normal(jax.random.key(1), (model.nv,))
    steps = diffrax.PIDController(rtol=1e-12, atol=1e-12)
    ts = jnp.linspace(0, 60, 61)
    motion = jdyn.simulate(
        model, model.neutral(), v0, 60.0, saveat=ts, stepsize_controller=steps, solver=diffrax.Dopri8(),
        max_steps=200_000,
    )  # fmt: skip
    momentum = motion.momentum(model)
    np.testing.assert_allclose(momentum, jnp.broadcast_to(momentum[0], momentum.shape), rtol=0, atol=1e-10)
    energy = motion.energy(model)
    assert float(jnp.max(jnp.abs(energy / energy[0] - 1))) < 1e-10
