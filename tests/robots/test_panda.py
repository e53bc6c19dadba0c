"""Panda against Pinocchio reading the `example-robot-data` URDF, and against the Robotics Toolbox's kinematics."""

import dataclasses
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio
import pytest

import jdyn
from jdyn.robots import panda

pytestmark = pytest.mark.fast_compile

MODEL = panda()
torques = jax.jit(jdyn.inverse_dynamics)


@pytest.fixture(scope="module")
def reference():
    """Pinocchio's model of the URDF, its hand taken off and its fingers without mass."""
    prefix = pathlib.Path(pinocchio.__file__).parents[4]
    urdf = prefix / "share/example-robot-data/robots/panda_description/urdf/panda.urdf"
    model = pinocchio.buildModelFromUrdf(str(urdf))
    hand = model.frames[model.getFrameId("panda_hand_joint")]
    link7 = model.inertias[7].toDynamicParameters() - hand.placement.act(hand.inertia).toDynamicParameters()
    model.inertias[7] = pinocchio.Inertia.FromDynamicParameters(link7)
    model.inertias[8] = model.inertias[9] = pinocchio.Inertia.Zero()
    return model, model.createData()


def test_kinematics_and_dynamics_of_the_urdf(reference):
    model, data = reference
    q, v, a = np.random.default_rng(2).uniform(-1, 1, size=(3, 7))
    pad = np.zeros(2)
    expected = pinocchio.rnea(model, data, np.append(q, pad), np.append(v, pad), np.append(a, pad))[:7]
    smooth = MODEL.friction * np.tanh(v / MODEL.friction_speed)
    np.testing.assert_allclose(torques(MODEL, q, v, a) - smooth, expected, rtol=1e-10, atol=1e-10)
    pinocchio.forwardKinematics(model, data, np.append(q, pad))
    X = jax.jit(jdyn.forward_kinematics)(MODEL, q)
    for body in range(7):
        np.testing.assert_allclose(X.rotation[body], data.oMi[body + 1].rotation, atol=1e-11)
        np.testing.assert_allclose(X.translation[body], data.oMi[body + 1].translation, atol=1e-11)


def test_limits_are_those_of_the_urdf(reference):
    model, _ = reference
    for ours, theirs in (
        (MODEL.limits.lower, model.lowerPositionLimit),
        (MODEL.limits.upper, model.upperPositionLimit),
        (MODEL.limits.velocity, model.velocityLimit),
        (MODEL.limits.effort, model.effortLimit),
    ):
        np.testing.assert_allclose(ours, theirs[:7], atol=1e-6)


def test_flange_of_the_toolbox():
    """The Robotics Toolbox (`tests/test_models.py`) has its tool 0.103 m beyond the flange, turned by -45 degrees."""
    flange = jax.jit(jdyn.frame_pose, static_argnums=2)(MODEL, np.arange(1.0, 8.0), "flange")
    c = np.sqrt(0.5)
    rotation = flange.rotation @ np.array([[c, c, 0], [-c, c, 0], [0, 0, 1]])
    printed = [[-0.8583, 0.1178, 0.4994], [0.1980, 0.9739, 0.1106], [-0.4734, 0.1938, -0.8593]]
    np.testing.assert_allclose(rotation, printed, atol=6e-5)
    tool = flange.translation + 0.103 * flange.rotation[:, 2]
    np.testing.assert_allclose(tool, [0.1372, 0.3246, 0.4436], atol=6e-5)


def test_friction_is_the_identified_one_but_for_its_shift():
    """Gaz et al. 2019, get_FrictionTorque: A / (1 + exp(-α (v + s))) - A / (1 + exp(-α s)), here with s = 0."""
    A = np.array([0.54615, 0.87224, 0.64068, 1.2794, 0.83904, 0.30301, 0.56489])
    steepness = np.array([5.1181, 9.0657, 10.136, 5.5903, 8.3469, 17.133, 10.336])
    v = np.linspace(-0.5, 0.7, 7)
    rest = np.zeros(7)
    frictionless = dataclasses.replace(MODEL, friction=jnp.zeros(7))
    friction = torques(MODEL, rest, v, rest) - torques(frictionless, rest, v, rest)
    np.testing.assert_allclose(friction, A / (1 + np.exp(-steepness * v)) - A / 2, atol=1e-12)
