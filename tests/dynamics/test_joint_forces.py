"""Forces in the joints: closed form, Pinocchio, and the balance of a mechanism that nothing holds."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

import jdyn

pytestmark = pytest.mark.fast_compile

UR5 = pathlib.Path(pin.__file__).parents[4] / "share/example-robot-data/robots/ur_description/urdf/ur5_robot.urdf"


@pytest.mark.slow
def test_swinging_pendulum():
    """A bob of mass m at distance l: the rod pulls with m ω² l + m g cos θ, and passes on no moment."""
    m, l, g, theta, omega = 1.3, 0.7, 9.81, 0.4, 2.5
    builder = jdyn.Builder("pendulum")
    builder.add_link("bob", jdyn.Revolute((0, -1, 0)), mass=m, com=(0, 0, -l), inertia=0.0)
    model = builder.build()
    q, v = jnp.array([theta]), jnp.array([omega])
    a = jdyn.forward_dynamics(model, q, v, jnp.zeros(1))
    np.testing.assert_allclose(a, [-g / l * np.sin(theta)], rtol=1e-12)
    pull = m * omega**2 * l + m * g * np.cos(theta)
    np.testing.assert_allclose(jdyn.joint_forces(model, q, v, a), [[0, 0, 0, 0, 0, pull]], atol=1e-12 * pull)


@pytest.mark.filterwarnings("ignore::jdyn.ModelWarning")
def test_pinocchio():
    model, other = jdyn.load(str(UR5)), pin.buildModelFromUrdf(str(UR5))
    q, v, a = np.random.default_rng(0).normal(size=(3, model.nv))
    data = other.createData()
    pin.rnea(other, data, q, v, a)
    linear_first = np.array([force.vector for force in data.f.tolist()[1:]])
    found = jdyn.joint_forces(model, *map(jnp.asarray, (q, v, a)))
    np.testing.assert_allclose(found, linear_first[:, [3, 4, 5, 0, 1, 2]], atol=1e-12 * np.max(np.abs(linear_first)))


def test_nothing_holds_a_free_base():
    """Its joint transmits nothing, whatever the motors do and whatever acts from outside."""
    model = jdyn.load("quadruped")
    keys = jax.random.split(jax.random.key(0), 4)
    q, v = model.random(keys[0]), jax.random.normal(keys[1], (model.nv,))
    tau = jax.random.normal(keys[2], (model.nv,)).at[:6].set(0)
    f_ext = jax.random.normal(keys[3], (model.nb, 6))
    a = jdyn.forward_dynamics(model, q, v, tau, f_ext=f_ext)
    forces = jdyn.joint_forces(model, q, v, a, f_ext=f_ext)
    np.testing.assert_allclose(forces[0], 0, atol=1e-12 * np.max(np.abs(forces)))
