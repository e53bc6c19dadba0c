"""Pendulums, acrobot and cart-pole against textbook equations and Gymnasium's own."""

import jax
import numpy as np
import pytest
import scipy.linalg
import scipy.special
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv, PendulumEnv

import jdyn
from jdyn.robots import acrobot, cartpole, chain, double_pendulum, pendulum

pytestmark = pytest.mark.fast_compile

torques = jax.jit(jdyn.inverse_dynamics)
mass_matrix = jax.jit(jdyn.mass_matrix)
gravity = jax.jit(jdyn.gravity_forces)
pose = jax.jit(jdyn.frame_pose, static_argnums=2)


def two_link_torques(q, v, a, g, *, m, l, lc, I, damping):
    """Spong, Hutchinson, Vidyasagar, Robot Modeling and Control, section 7.4, angles from the downward vertical."""
    c2, s2, s1, s12 = np.cos(q[1]), np.sin(q[1]), np.sin(q[0]), np.sin(q[0] + q[1])
    coupling = m[1] * l * lc[1]
    M22 = I[1] + m[1] * lc[1] ** 2
    M12 = M22 + coupling * c2
    M11 = I[0] + m[0] * lc[0] ** 2 + I[1] + m[1] * (l**2 + lc[1] ** 2) + 2 * coupling * c2
    h1 = -coupling * s2 * (v[1] ** 2 + 2 * v[0] * v[1])
    h2 = coupling * s2 * v[0] ** 2
    G2 = m[1] * lc[1] * g * s12
    G1 = (m[0] * lc[0] + m[1] * l) * g * s1 + G2
    return np.array([[M11, M12], [M12, M22]]) @ a + [h1 + G1, h2 + G2] + damping * np.asarray(v)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (
            double_pendulum(lengths=(0.7, 1.3), masses=(2.0, 0.5), damping=0.2),
            {
                "m": (2, 0.5),
                "l": 0.7,
                "lc": (0.35, 0.65),
                "I": (2 * 0.7**2 / 12, 0.5 * 1.3**2 / 12),
                "damping": 0.2,
            },
        ),
        (acrobot(), {"m": (1, 1), "l": 1, "lc": (0.5, 1), "I": (0.083, 0.33), "damping": 0.1}),
    ],
    ids=["double_pendulum", "acrobot"],
)
def test_two_links_obey_the_textbook(model, parameters):
    q, v, a = np.random.default_rng(0).normal(size=(3, 2))
    expected = two_link_torques(q, v, a, 9.81, **parameters)
    np.testing.assert_allclose(torques(model, q, v, a), expected, rtol=1e-12, atol=1e-12)


def test_positive_angles_take_tips_towards_x():
    for model, q in (
        (pendulum(), [0.3]),
        (double_pendulum(), [0.3, 0.0]),
        (acrobot(), [0.3, 0.0]),
        (cartpole(), [0, 0.3]),
    ):
        neutral, moved = (pose(model, np.asarray(x, float), "tip") for x in (np.zeros(model.nq), q))
        assert moved.translation[0] - neutral.translation[0] > 0.1
    assert moved.translation[2] == pytest.approx(np.cos(0.3))  # the pole of the cart stands upright


def test_pendulum_swings_like_gymnasium():
    env = PendulumEnv()
    env.state = np.array([0.4, -0.7])
    env.last_u = None
    env.step(np.array([1.5]))
    acceleration = (env.state[1] + 0.7) / env.dt
    model = pendulum().with_gravity((0, 0, -10))
    tau = torques(model, np.array([0.4 + np.pi]), np.array([-0.7]), np.array([acceleration]))
    np.testing.assert_allclose(tau, [1.5], rtol=1e-12)


def test_cartpole_moves_like_gymnasium():
    env = CartPoleEnv()
    state = np.array([0.3, -0.2, 0.1, 0.2])
    env.state = state
    env.step(1)
    acceleration = (np.asarray(env.state)[[1, 3]] - state[[1, 3]]) / env.tau
    tau = torques(cartpole().with_gravity((0, 0, -9.8)), state[[0, 2]], state[[1, 3]], acceleration)
    np.testing.assert_allclose(tau, [10, 0], rtol=1e-12, atol=1e-12)


def test_acrobot_moves_like_gymnasium():
    state = np.array([0.1, 0.2, 0.3, 0.4])
    rates = np.asarray(AcrobotEnv()._dsdt(np.append(state, 0.6)), dtype=float)
    model = acrobot("sutton").with_gravity((0, 0, -9.8))
    np.testing.assert_allclose(torques(model, state[:2], state[2:], rates[2:4]), [0, 0.6], rtol=1e-12, atol=1e-12)


def hanging_rods(q, n, length, mass):
    """Mass matrix, gravity and its derivative for equal rods, from those in angles against the vertical."""
    l, m = length / n, mass / n
    lever = m * l * (n - 0.5 - np.arange(n))  # first moment that hangs on each joint
    i, j = np.indices((n, n))
    angle = np.cumsum(q)
    M = l * lever[np.maximum(i, j)] * np.cos(angle[i] - angle[j])
    M[np.diag_indices(n)] = m * l**2 / 3 + m * l**2 * (n - 1 - np.arange(n))
    T = np.tril(np.ones((n, n)))
    stiffness = np.diag(9.81 * lever * np.cos(angle))
    return T.T @ M @ T, T.T @ (9.81 * lever * np.sin(angle)), T.T @ stiffness @ T


def test_chain_is_one_of_rods_and_tends_to_a_rope():
    n, length, mass = 12, 2.0, 3.0
    model = chain(n, length, mass)
    q = np.random.default_rng(1).normal(size=n)
    M, G, _ = hanging_rods(q, n, length, mass)
    np.testing.assert_allclose(mass_matrix(model, q), M, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(gravity(model, q), G, rtol=1e-11, atol=1e-11)

    M, _, stiffness = hanging_rods(np.zeros(n), n, length, mass)
    squared = scipy.linalg.eigh(stiffness, M, eigvals_only=True)
    rope = scipy.special.jn_zeros(0, 2) / 2 * np.sqrt(9.81 / length)
    # The error of n rods is of order 1/n², and grows with the square of the mode's number.
    np.testing.assert_allclose(np.sqrt(squared[0]), rope[0], rtol=0.05 / n**2)
    np.testing.assert_allclose(np.sqrt(squared[1]), rope[1], rtol=1.1 / n**2)


@pytest.mark.parametrize("axis", [0, 1])
def test_chain_of_ball_joints_swings_alike_in_both_directions(axis):
    n = 3
    model = chain(n, joint="ball")
    q = np.random.default_rng(2).normal(size=n)
    quaternions = np.zeros((n, 4))
    quaternions[:, 0], quaternions[:, 1 + axis] = np.cos(q / 2), np.sin(q / 2)
    M, G, _ = hanging_rods(q, n, 1.0, 1.0)
    about = slice(axis, None, 3)
    np.testing.assert_allclose(mass_matrix(model, quaternions.ravel())[about, about], M, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(gravity(model, quaternions.ravel())[about], G, rtol=1e-11, atol=1e-12)
