"""The regulator against closed forms, SciPy, and motions that fall over without it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.test_util import check_grads

import jdyn
from jdyn.control import LQR, riccati
from jdyn.dynamics import linearize

pytestmark = pytest.mark.fast_compile

ACROBOT, CARTPOLE = jdyn.load("acrobot"), jdyn.load("cartpole")
UPRIGHT = np.array([np.pi, 0.0])
COSTS = np.array([10.0, 10.0, 1.0, 1.0])


def _system(n, m, dtype=np.float64):
    rng = np.random.default_rng(n)
    A, B, root = rng.normal(size=(n, n)), rng.normal(size=(n, m)), rng.normal(size=(n, n))
    return [x.astype(dtype) for x in (A, B, root @ root.T, np.diag(rng.uniform(0.1, 1, m)))]


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_riccati_against_scipy(dtype, tolerance):
    A, B, Q, R = _system(6, 2, dtype)
    found = riccati(*map(jnp.asarray, (A, B, Q, R)))
    expected = scipy.linalg.solve_continuous_are(*(x.astype(float) for x in (A, B, Q, R)))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, atol=tolerance * np.max(np.abs(expected)))


@pytest.mark.slow
def test_riccati_has_derivatives_of_any_order_in_both_modes():
    A, B, Q, R = map(jnp.asarray, _system(3, 2))

    def cost(A, B, root, R):
        return riccati(A, B, root @ root.T, R @ R.T)

    check_grads(cost, (A, B, jnp.linalg.cholesky(Q), R), order=2, modes=("fwd", "rev"), rtol=1e-5)


def test_riccati_is_nan_where_there_is_no_solution():
    eye, push = jnp.eye(2), jnp.array([[0.0], [1.0]])
    falls, drifts = jnp.diag(jnp.array([1.0, -1.0])), jnp.array([[0.0, 1.0], [0.0, 0.0]])
    assert np.all(np.isnan(riccati(falls, push, eye, eye[:1, :1])))
    assert np.all(np.isnan(riccati(drifts, push, jnp.diag(jnp.array([0.0, 1.0])), eye[:1, :1])))


def test_double_integrator():
    """K = [√(q₁/r), √(q₂/r + 2 m √(q₁/r))] for a mass m."""
    builder = jdyn.Builder("slider")
    builder.add_link("mass", jdyn.Prismatic((1, 0, 0)), mass=2.0, inertia=(1, 1, 1))
    controller = LQR(builder.build(), [0.3], Q=[4.0, 5.0], R=0.25)
    stiffness = 4.0
    np.testing.assert_allclose(controller.gain, [[stiffness, np.sqrt(20 + 4 * stiffness)]], rtol=1e-12)
    force = -stiffness * 0.2 - np.sqrt(36) * 0.1
    np.testing.assert_allclose(controller(0.0, jnp.array([0.5]), jnp.array([0.1])), [force], rtol=1e-12)


@pytest.mark.slow
def test_ball_joint_by_either_quaternion():
    """A satellite about its principal axes: three double integrators."""
    inertia = np.array([1.0, 2.0, 2.5])
    builder = jdyn.Builder("satellite", gravity=(0, 0, 0))
    builder.add_link("body", jdyn.Ball(), mass=1.0, inertia=tuple(inertia))
    model = builder.build()
    target = model.integrate(model.neutral(), jnp.array([0.4, -1.0, 0.8]))
    controller = LQR(model, target, Q=[1.0] * 3 + [0.0] * 3, R=1.0)
    np.testing.assert_allclose(
        controller.gain, np.hstack([np.eye(3), np.diag(np.sqrt(2 * inertia))]), rtol=1e-12, atol=1e-12
    )
    q = model.integrate(target, jnp.array([0.0, 0.5, 0.0]))
    for quaternion in (q, -q):
        np.testing.assert_allclose(controller(0.0, quaternion, jnp.zeros(3)), [0, -0.5, 0], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, target, driven, offset",
    [
        (ACROBOT, UPRIGHT, 1, [0.05, -0.05]),
        pytest.param(CARTPOLE, [0.5, 0.0], 0, [-0.5, 0.2], marks=pytest.mark.exhaustive),
    ],
)
def test_balances_what_it_drives_at_one_joint(model, target, driven, offset):
    controller = LQR(model, target, Q=COSTS, R=0.5, actuated=[driven])
    A, B = linearize(model, controller.target, jnp.zeros(2), jnp.zeros(2))
    expected = scipy.linalg.solve_continuous_are(A, B[:, [driven]], np.diag(COSTS), 0.5 * np.eye(1))
    np.testing.assert_allclose(controller.cost_to_go, expected, rtol=1e-8)
    tau = controller(0.0, jnp.asarray(target) + 0.1, jnp.ones(2))
    assert tau[1 - driven] == 0 and tau[driven] != 0
    start = jnp.asarray(target) + jnp.asarray(offset)
    motion = jdyn.simulate(model, start, jnp.zeros(2), 8.0, controller=controller, saveat=[8.0])
    np.testing.assert_allclose(motion.q[-1], target, atol=5e-3)
    np.testing.assert_allclose(motion.v[-1], 0, atol=5e-3)


@pytest.mark.slow
def test_actuators_by_index_mask_or_matrix_and_what_they_hold():
    arm = jdyn.load("double_pendulum")
    q = [0.4, -0.9]
    by_matrix = LQR(arm, q, Q=COSTS, R=1.0, actuated=np.eye(2))
    np.testing.assert_allclose(by_matrix.tau, jdyn.gravity_forces(arm, jnp.array(q)), rtol=1e-12)
    np.testing.assert_allclose(by_matrix.gain, LQR(arm, q, Q=np.diag(COSTS), R=np.eye(2)).gain, rtol=1e-12)
    by_index, by_mask = (LQR(CARTPOLE, [0, 0], Q=1.0, R=1.0, actuated=a).gain for a in ([0], [True, False]))
    np.testing.assert_array_equal(by_index, by_mask)
    geared = LQR(CARTPOLE, [0, 0], Q=1.0, R=100.0, actuated=np.array([[10.0], [0.0]])).gain
    np.testing.assert_allclose(10 * geared, by_index, rtol=1e-10)


@jax.jit
def _gains(masses):
    """Gains and their derivatives, of acrobots with different lower links."""

    def gain(mass):
        return LQR(ACROBOT.with_body("lower", mass=mass), UPRIGHT, Q=COSTS, R=1.0, actuated=[1]).gain[0]

    return jax.vmap(gain)(masses), jax.vmap(jax.jacrev(gain))(masses)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_gain_over_models_and_its_derivative():
    masses = np.array([0.5, 1.0, 2.0])
    gains, derivatives = _gains(masses)
    for mass, gain in zip(masses, gains, strict=True):
        alone = LQR(ACROBOT.with_body("lower", mass=mass), UPRIGHT, Q=COSTS, R=1.0, actuated=[1]).gain[0]
        np.testing.assert_allclose(gain, alone, rtol=1e-8)
    # Gains are good to 1e-10, of which such a step makes 2e-7; its own error is a tenth of that.
    step = 1e-3
    differences = (_gains(masses + step)[0] - _gains(masses - step)[0]) / (2 * step)
    np.testing.assert_allclose(derivatives, differences, rtol=1e-6)


@pytest.mark.slow
def test_float32():
    single = LQR(ACROBOT.astype(jnp.float32), UPRIGHT, Q=COSTS, R=1.0, actuated=[1])
    tau = single(0.0, jnp.array([3.0, 0.1], jnp.float32), jnp.zeros(2, jnp.float32))
    assert single.gain.dtype == tau.dtype == jnp.float32
    np.testing.assert_allclose(single.gain, LQR(ACROBOT, UPRIGHT, Q=COSTS, R=1.0, actuated=[1]).gain, rtol=2e-2)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"target": [0.0]}, r"target: expected shape \(2,\)"),
        ({"target": [0.5, 0.2]}, r"no equilibrium of 'cartpole'.* leave 0\.0974 N m or N on joint 'hinge'"),
        ({"actuated": [1]}, r"cannot be stabilized at the target: .* eigenvalue 0 1/s"),
        ({"actuated": [2]}, r"actuated: expected different indices from 0 to 1"),
        ({"actuated": [0, 0]}, r"actuated: expected different indices"),
        ({"actuated": np.ones((3, 1))}, r"actuated: .* a matrix of floating-point numbers of shape \(2, inputs\)"),
        ({"Q": [1.0, 1.0]}, r"Q: expected a scalar or shape \(4,\) or shape \(4, 4\)"),
        ({"Q": -1.0}, r"Q: expected a positive semidefinite matrix, got one with the eigenvalue -1"),
        ({"Q": np.triu(np.ones((4, 4)))}, r"Q: expected a symmetric matrix"),
        ({"Q": [0.0, 1.0, 1.0, 1.0]}, r"Q: no gain of least cost makes the target stable"),
        ({"R": 0.0}, r"R: expected a positive definite matrix, got one with the eigenvalue 0"),
        ({"R": np.nan}, r"R: expected a symmetric matrix of finite numbers"),
    ],
)
def test_what_cannot_be_regulated_is_refused(changes, message):
    arguments = {"target": [0.0, 0.0], "Q": 1.0, "R": 1.0, "actuated": [0]} | changes
    with pytest.raises(ValueError, match=message):
        LQR(CARTPOLE, arguments.pop("target"), **arguments)
