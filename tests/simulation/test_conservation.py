"""What a minute of motion keeps: energy of conservative mechanisms, momentum of free ones."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn


def minute(model, q0, v0, tolerance):
    """A motion with rows where steps end: those of dense output are less exact."""
    steps = diffrax.PIDController(rtol=tolerance, atol=tolerance / 100)
    motion = jdyn.simulate(
        model, q0, v0, 60.0, saveat=diffrax.SaveAt(steps=True), stepsize_controller=steps, solver=diffrax.Dopri8(),
        max_steps=20_000,
    )  # fmt: skip
    rows = slice(int(motion.stats["accepted_steps"]))
    return dataclasses.replace(motion, ts=motion.ts[rows], q=motion.q[rows], v=motion.v[rows])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["pendulum", "puma560", *(pytest.param(x, marks=pytest.mark.exhaustive) for x in ("double_pendulum", "crane"))],
)
def test_a_minute_without_friction_keeps_its_energy(name):
    """To ten times the tolerance, of the largest kinetic energy; the absolute one is a hundredth, as by default."""
    model, tolerance = jdyn.load(name), 1e-9
    for joint in model.joint_names:
        model = model.with_joint(joint, damping=0.0, friction=0.0)
    motion = minute(model, model.random(jax.random.key(1)), jnp.zeros(model.nv), tolerance)
    energy = motion.energy
    kinetic = jax.vmap(lambda q, v: jdyn.kinetic_energy(model, q, v))(motion.q, motion.v)
    drift = float(jnp.max(jnp.abs(energy - energy[0])) / jnp.max(kinetic))
    assert drift < 10 * tolerance, drift


@pytest.mark.slow
def test_a_minute_of_flight_keeps_momentum_and_energy():
    """A body with a wheel on a ball joint and an arm: all momenta are about 1 N s, and 0.1 N m s."""
    builder = jdyn.Builder("satellite", gravity=(0, 0, 0))
    builder.add_link("hull", jdyn.Free(), mass=2.0, com=(0.05, 0, 0.02), inertia=(0.03, 0.07, 0.09))
    builder.add_link("wheel", jdyn.Ball(), parent="hull", placement=(0.3, 0, 0), mass=0.7, inertia=(0.02, 0.01, 0.02))
    builder.add_link("arm", jdyn.Revolute((1, 1, 0)), parent="hull", mass=0.4, com=(0, 0, 0.3), inertia=[0.01] * 3)
    model = builder.build()
    v0 = jax.random.normal(jax.random.key(1), (model.nv,))
    motion = minute(model, model.neutral(), v0, 1e-12)
    momentum, energy = motion.momentum, motion.energy
    np.testing.assert_allclose(momentum, jnp.broadcast_to(momentum[0], momentum.shape), rtol=0, atol=1e-10)
    np.testing.assert_allclose(energy, jnp.broadcast_to(energy[0], energy.shape), rtol=1e-10)
