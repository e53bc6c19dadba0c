"""Operational-space control against oscillators, the textbook's formula, and singular arms."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import jdyn
from jdyn.control import OperationalSpace

pytestmark = pytest.mark.fast_compile

PANDA = jdyn.load("panda")
Q = jnp.array([0.3, -0.5, 0.2, -1.8, 0.1, 1.4, 0.6])
V = jnp.array([0.5, -0.3, 0.8, -0.2, 0.4, 1.0, -0.6])
STRAIGHT = jnp.zeros(7)
TARGET = jdyn.frame_pose(PANDA, Q + 0.3, "flange")


@jax.jit
def _accelerations(controller, q, v):
    tau = controller(0.0, q, v)
    return tau, jdyn.forward_dynamics(PANDA, q, v, tau)


def _task_velocity(q, v):
    return jdyn.jacobian(PANDA, q, "flange", frame="aligned") @ v


@pytest.mark.slow
@pytest.mark.parametrize("target", [TARGET, TARGET.translation])
def test_the_textbooks_formula(target):
    """F = Λ (ẍ* − J̇ v) + J̄ᵀ h and τ = Jᵀ F + (I − Jᵀ J̄ᵀ) τ₀, in NumPy; and the task accelerates as asked for."""
    rows = slice(0 if isinstance(target, jdyn.Transform) else 3, 6)
    speed = np.array([0.1, -0.2, 0.3, 0.4, -0.5, 0.6])[rows]
    controller = OperationalSpace(
        PANDA, "flange", target, kp=30.0, kd=4.0, target_velocity=speed, target_acceleration=2 * speed,
        posture=jdyn.control.Posture(STRAIGHT, kp=5.0, kd=jnp.arange(7.0)), damping=0.0,
    )  # fmt: skip
    tau, a = _accelerations(controller, Q, V)
    pose = jdyn.frame_pose(PANDA, Q, "flange")
    turn = Rotation.from_matrix(TARGET.rotation @ pose.rotation.T).as_rotvec()
    error = np.concatenate([turn, TARGET.translation - pose.translation])[rows]
    J = np.asarray(jdyn.jacobian(PANDA, Q, "flange", frame="aligned"))[rows]
    bias = np.asarray(jax.jvp(_task_velocity, (Q, V), (V, jnp.zeros(7)))[1])[rows]
    wanted = 2 * speed + 30 * error + 4 * (speed - J @ V)
    M, h = np.asarray(jdyn.mass_matrix(PANDA, Q)), np.asarray(jdyn.bias_forces(PANDA, Q, V))
    inertia = np.linalg.inv(J @ np.linalg.solve(M, J.T))
    inverse = np.linalg.solve(M, J.T) @ inertia
    posture = M @ (-5 * np.asarray(Q) - np.arange(7) * np.asarray(V)) + h
    expected = J.T @ (inertia @ (wanted - bias) + inverse.T @ h) + posture - J.T @ (inverse.T @ posture)
    np.testing.assert_allclose(tau, expected, atol=1e-11 * np.max(np.abs(expected)))
    np.testing.assert_allclose(J @ np.asarray(a) + bias, wanted, atol=1e-11 * np.max(np.abs(wanted)))


@pytest.mark.parametrize("damping, tolerance", [(0.0, 0.0), (1e-4, 1e-5)])
def test_the_posture_does_not_disturb_the_task(damping, tolerance):
    """But for damping, and for rounding, which solving with the mass matrix magnifies by its condition number."""
    options = {"kp": 30.0, "kd": 4.0, "damping": damping}
    _, without = _accelerations(OperationalSpace(PANDA, "flange", TARGET, **options), Q, V)
    posture = jdyn.control.Posture(kp=50.0, kd=3.0)
    _, a = _accelerations(OperationalSpace(PANDA, "flange", TARGET, posture=posture, **options), Q, V)
    assert np.max(np.abs(a - without)) > 1
    asked = float(jnp.max(jnp.abs(_task_velocity(Q, -50 * Q - 3 * V))))
    rounding = np.finfo(float).eps * np.linalg.cond(jdyn.mass_matrix(PANDA, Q))
    np.testing.assert_allclose(_task_velocity(Q, a - without), 0, atol=(tolerance + rounding) * asked)


@pytest.mark.slow
def test_a_pose_is_reached_like_an_oscillator():
    """From rest both the position and the angle, about an axis that stays, are those of ω = 4, ζ = 1/2."""
    pose = jdyn.frame_pose(PANDA, Q, "flange")
    turn, shift = np.array([0.2, -0.3, 0.4]), np.array([0.1, -0.05, 0.1])
    target = jdyn.Transform(
        jnp.asarray(Rotation.from_rotvec(turn).as_matrix()) @ pose.rotation, pose.translation + shift
    )
    controller = OperationalSpace(
        PANDA, "flange", target, kp=16.0, kd=4.0, posture=jdyn.control.Posture(kd=2.0), damping=0.0
    )
    motion = jdyn.simulate(
        PANDA, Q, jnp.zeros(7), 1.0, controller=controller, saveat=[0.0, 0.25, 0.5, 1.0],
        stepsize_controller=diffrax.PIDController(rtol=1e-9, atol=1e-11),
    )  # fmt: skip
    t, damped = np.asarray(motion.ts), 4 * np.sqrt(1 - 0.5**2)
    decay = np.exp(-2 * t) * (np.cos(damped * t) + 2 / damped * np.sin(damped * t))
    reached = jax.vmap(lambda q: jdyn.frame_pose(PANDA, q, "flange"))(motion.q)
    turns = Rotation.from_matrix(np.asarray(target.rotation) @ np.swapaxes(np.asarray(reached.rotation), 1, 2))
    np.testing.assert_allclose(turns.as_rotvec(), np.outer(decay, turn), atol=1e-7)
    np.testing.assert_allclose(
        np.asarray(target.translation) - np.asarray(reached.translation), np.outer(decay, shift), atol=1e-7
    )


def test_orientation_error_up_to_half_a_turn():
    """A body of unit inertia turns with the rotation vector of its error, in world axes."""
    builder = jdyn.Builder("body", gravity=(0, 0, 0))
    builder.add_link("body", jdyn.Free(), mass=1.0, inertia=(1.0, 1.0, 1.0))
    model = builder.build()
    axis = np.array([0.6, -0.48, 0.64])
    turns = [np.zeros(3), *(angle * sign * a for angle in (1.0, 3.14) for a in (*np.eye(3), axis) for sign in (1, -1))]
    q = model.random(jax.random.key(0))
    here = jdyn.frame_pose(model, q, 0)

    @jax.jit
    @jax.vmap
    def force(turned):
        target = jdyn.Transform(turned @ here.rotation, here.translation)
        return here.rotation @ OperationalSpace(model, 0, target, kp=1.0, kd=0.0, damping=0.0)(0.0, q, jnp.zeros(6))[:3]

    np.testing.assert_allclose(force(jnp.asarray(Rotation.from_rotvec(turns).as_matrix())), turns, atol=1e-12)


@jax.jit
def _torque_and_slopes(controller, q, v):
    def torque(q):
        return controller(0.0, q, v)

    return torque(q), jax.jacfwd(torque)(q), jax.jacrev(torque)(q)


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype, tolerance", [pytest.param(jnp.float64, 1e-9, marks=pytest.mark.exhaustive), (jnp.float32, 1e-3)]
)
def test_finite_where_the_arm_is_singular(dtype, tolerance):
    model, straight = PANDA.astype(dtype), STRAIGHT.astype(dtype)
    J = jdyn.jacobian(model, straight, "flange", frame="aligned")
    assert np.linalg.matrix_rank(J) < 6
    for target in (TARGET, jdyn.frame_pose(model, straight, "flange")):
        controller = OperationalSpace(model, "flange", target, kp=30.0, kd=4.0)
        tau, forward, reverse = _torque_and_slopes(controller, straight, V.astype(dtype))
        assert tau.dtype == dtype and np.all(np.isfinite(tau))
        np.testing.assert_allclose(forward, reverse, atol=tolerance * float(jnp.max(jnp.abs(forward))))


def test_a_planar_arm_takes_the_part_of_the_task_that_it_can():
    arm = jdyn.load("double_pendulum")
    q, target = jnp.array([0.5, 0.8]), jnp.array([0.3, 5.0, -0.9])
    controller = OperationalSpace(arm, "tip", target, kp=10.0, kd=0.0)
    a = jdyn.forward_dynamics(arm, q, jnp.zeros(2), controller(0.0, q, jnp.zeros(2)))
    wanted = 10 * (target - jdyn.frame_pose(arm, q, "tip").translation)
    reached = jdyn.jacobian(arm, q, "tip", frame="aligned")[3:] @ a
    np.testing.assert_allclose(reached[::2], wanted[::2], rtol=1e-5)
    assert abs(reached[1]) < 1e-12


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match=r"'link0' is fixed to the world"):
        OperationalSpace(PANDA, "link0", jnp.zeros(3), kp=1.0, kd=1.0)
    with pytest.raises(ValueError, match=r"no body or frame is called 'hand'"):
        OperationalSpace(PANDA, "hand", jnp.zeros(3), kp=1.0, kd=1.0)
    with pytest.raises(ValueError, match=r"target: expected shape \(3,\), got \(6,\)"):
        OperationalSpace(PANDA, "flange", jnp.zeros(6), kp=1.0, kd=1.0)
    with pytest.raises(ValueError, match=r"kd: expected a scalar or shape \(6,\)"):
        OperationalSpace(PANDA, "flange", TARGET, kp=1.0, kd=jnp.ones(3))
    with pytest.raises(ValueError, match=r"posture: expected shape \(7,\)"):
        OperationalSpace(PANDA, "flange", TARGET, kp=1.0, kd=1.0, posture=jdyn.control.Posture(jnp.ones(3)))
