"""PUMA 560 against numbers printed by Corke's Robotics Toolbox (`tests/test_DHRobot.py`), computed in MATLAB."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.robots import puma560

pytestmark = pytest.mark.fast_compile

MODEL = puma560()
FRICTIONLESS = dataclasses.replace(
    MODEL, damping=jnp.zeros_like(MODEL.damping), friction=jnp.zeros_like(MODEL.friction)
)
NOMINAL = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])
V, A = np.ones(6), np.ones(6)
# The toolbox's Coulomb friction of motion forwards, less the mean of both directions that the model has.
BIAS = (
    np.array([62.6111, 107.815, 53.7063, 76.0364, 71.923, 76.686])
    * np.array([0.395 - 0.435, 0.126 - 0.071, 0.132 - 0.105, 11.2e-3 - 16.9e-3, 9.26e-3 - 14.5e-3, 3.96e-3 - 10.5e-3])
    / 2
)
torques = jax.jit(jdyn.inverse_dynamics)


def test_gravity():
    expected = [0, 31.6399, 6.0351, 0, 0.0283, 0]
    np.testing.assert_allclose(torques(MODEL, NOMINAL, 0 * V, 0 * A), expected, atol=6e-5)


@pytest.mark.parametrize(
    ("model", "v", "a", "printed", "bias"),
    [
        (MODEL, 0 * V, A, [3.35311, 36.0025, 7.42596, 0.190043, 0.203441, 0.194133], 0),
        (MODEL, V, A, [32.4952, 60.867, 17.7436, 1.45452, 1.29911, 0.713781], BIAS),
        (MODEL, V, 0 * A, [29.1421, 56.5044, 16.3528, 1.26448, 1.12392, 0.519648], BIAS),
    ],
    ids=["at rest", "moving with friction", "steady with friction"],
)
def test_inverse_dynamics(model, v, a, printed, bias):
    np.testing.assert_allclose(torques(model, NOMINAL, v, a) + bias, printed, rtol=6e-6, atol=6e-7)


def test_mass_matrix():
    printed = [
        [3.6594, -0.4044, 0.1006, -0.0025, 0, 0],
        [-0.4044, 4.4137, 0.3509, 0, 0.0024, 0],
        [0.1006, 0.3509, 0.9378, 0, 0.0015, 0],
        [-0.0025, 0, 0, 0.1925, 0, 0],
        [0, 0.0024, 0.0015, 0, 0.1713, 0],
        [0, 0, 0, 0, 0, 0.1941],
    ]
    np.testing.assert_allclose(jax.jit(jdyn.mass_matrix)(MODEL, NOMINAL), printed, atol=6e-5)


def test_velocity_forces():
    v = np.array([1.0, 2, 3, 1, 2, 3])
    coriolis = torques(FRICTIONLESS, NOMINAL, v, 0 * A) - torques(FRICTIONLESS, NOMINAL, 0 * v, 0 * A)
    # The toolbox prints the Coriolis matrix to four digits; its product with v is good to ten of its last.
    np.testing.assert_allclose(coriolis, [-4.6346, 8.7258, -1.9267, 0.0021, 0.019, 0.0001], atol=6e-4)


def test_accelerations_with_friction():
    """The printed accelerations need the printed torques; slow joints are well above the smoothing of friction."""
    v = np.array([0.1, 0.2, 0.8, 0.2, 0.5, 1])
    printed = np.array([-7.4102, -9.8432, -10.9694, -4.4314, -0.9881, 21.0228])
    tau = torques(MODEL, NOMINAL, v, printed) + BIAS
    np.testing.assert_allclose(tau, [1, 3.2, 1.8, 0.1, 0.7, 4.6], atol=6e-5 * 5)


def test_wrist_position():
    pose = jax.jit(jdyn.frame_pose, static_argnums=2)
    for q, expected in ((NOMINAL, (0.596303, -0.15005, 0.657646)), (np.zeros(6), (0.4521, -0.15005, 1.1038))):
        np.testing.assert_allclose(pose(MODEL, q, "tool").translation, expected, atol=6e-7)
