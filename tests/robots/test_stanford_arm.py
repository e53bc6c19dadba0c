"""Stanford arm: Paul's example of its kinematics, and dynamics of the corrected tables computed with Pinocchio."""

import jax
import numpy as np
import pytest

import jdyn
from jdyn.robots import stanford_arm

pytestmark = pytest.mark.fast_compile

MODEL = stanford_arm()
Q0 = np.array([0, 0, 0.5, 0, 0, 0])
Q = np.array([0.1, 0.8, 0.6, 0.3, -0.4, 0.5])
V = np.array([0.1, -0.2, 0.3, -0.4, 0.5, -0.6])
A = np.arange(1.0, 7.0)
torques = jax.jit(jdyn.inverse_dynamics)


def test_kinematics_of_paul():
    """Paul 1972, table 2.1: joint angles in degrees, lengths in inches; the model's are rounded to a millimetre."""
    inch, degrees = 0.0254, np.pi / 180
    q = np.array([-95.7, -112.4, 22.16, -38.2, 80.4, 68.9]) * ([degrees] * 2 + [inch] + [degrees] * 3)
    tool = jax.jit(jdyn.frame_pose, static_argnums=2)(MODEL, q, "tool")
    np.testing.assert_allclose(tool.translation, np.array([0, 19.78, 1.30]) * inch, atol=1.5e-3)
    np.testing.assert_allclose(tool.rotation, [[-0.63, 0, -0.78], [0, 1, 0], [0.78, 0, -0.63]], atol=6e-3)


def test_torques():
    at_rest = np.zeros(6)
    np.testing.assert_allclose(torques(MODEL, Q0, at_rest, at_rest), [0, -0.292593, 63.4707, 0, 0, 0], atol=1e-6)
    gravity = [0, -9.377897, 44.220463, 0.621171, 0.15934, 0]
    np.testing.assert_allclose(torques(MODEL, Q, at_rest, at_rest), gravity, atol=1e-6)
    moving = [-0.95553, -1.72177, 65.536665, 0.992188, 1.302903, 0.123347]
    np.testing.assert_allclose(torques(MODEL, Q, V, A), moving, atol=2e-6)


def test_mass_matrix():
    upper = np.array(
        [
            [2.413601, -0.202478, -0.778079, 0.016851, -0.158247, 0.000217],
            [0, 4.068601, -0.003916, -0.083704, 0.06158, 0.000112],
            [0, 0, 7.252, 0, 0.083169, 0],
            [0, 0, 0, 0.123897, -0.00001, 0.000276],
            [0, 0, 0, 0, 0.187364, 0],
            [0, 0, 0, 0, 0, 0.0203],
        ]
    )
    np.testing.assert_allclose(np.triu(jax.jit(jdyn.mass_matrix)(MODEL, Q)), upper, atol=1e-6)
