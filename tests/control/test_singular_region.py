"""A task near singular configurations: against eigenvalues, bounds, and damped least squares with the same torques."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.control import OperationalSpace, Posture, SingularRegion
from tests.errors import tol

PUMA = jdyn.load("puma560")


def _by_eigenvalues(values, border):
    """(1 − E) / s, as the docstring says; where s = 0, its limit."""
    y = 6 * np.asarray(values) / border
    given = -np.expm1(-32 * np.log1p((y + y**2) / 32))
    return np.where(y == 0, 1, given / np.where(y == 0, 1, y)) * 6 / border


def _mobilities(count, n, rng):
    """Semidefinite matrices of a mean of one, with eigenvalues over nine decades, equal ones and zeros."""
    values = 10.0 ** rng.uniform(-8, 0.5, size=(count, n))
    values[::3, 1] = values[::3, 0]
    values[::2, 2] = 0
    turns = np.linalg.qr(rng.normal(size=(count, n, n)))[0]
    return values, turns, turns * values[:, None] @ np.swapaxes(turns, 1, 2)


@jax.jit
def _forces(borders, limit, S, demands):
    return jax.vmap(lambda border, S, d: SingularRegion(border, limit).force(S, d))(borders, S, demands)


def test_forces_are_those_of_eigenvalues():
    rng = np.random.default_rng(0)
    values, turns, S = _mobilities(300, 6, rng)
    borders = 10.0 ** rng.uniform(-5, -1, size=300)
    demands = rng.normal(size=(300, 6))
    found = np.asarray(_forces(borders, jnp.inf, S, demands))
    within = np.einsum("kji,kj->ki", turns, demands)
    exact = np.einsum("kij,kj->ki", turns, _by_eigenvalues(values, borders[:, None]) * within)
    # Rounding of S moves eigenvalues that are lost by eps of the largest, as a share of the border; and each
    # of five doublings rounds.
    error = np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert np.all(error < tol(float, 5 + 6 * np.max(values, axis=1) / borders))
    # At the border nothing is given up.
    assert np.max(np.abs(_by_eigenvalues(borders, borders) * borders - 1)) < 3e-12


def test_accelerations_stay_below_the_limit():
    """√(aᵀ M a) of a = M⁻¹ Jᵀ F is √(Fᵀ S F)."""
    rng = np.random.default_rng(1)
    _, _, S = _mobilities(600, 6, rng)
    demands = rng.normal(size=(600, 6)) * 10.0 ** rng.uniform(-3, 4, size=(600, 1))
    F = np.asarray(_forces(np.full(600, 1e-6), 50.0, S, demands))
    caused = np.sqrt(np.einsum("ki,kij,kj->k", F, S, F))
    assert np.all(caused <= 50.0) and np.max(caused) > 25
    # What needs less than 0.47 of it is not limited, directions apart that S does not have.
    regular, demands = S + 0.01 * np.eye(6), demands / np.linalg.norm(demands, axis=1)[:, None]
    F = np.asarray(_forces(np.full(600, 1e-6), 25.0, regular, demands))
    np.testing.assert_allclose(np.einsum("kij,kj->ki", regular, F), demands, atol=1e-10)


def test_derivatives_at_equal_and_lost_directions():
    """By divided differences of (1 − E) / s (Daletskii and Krein 1965); those of second order are finite."""
    border, values = 0.1, np.array([0.0, 0.0, 0.03, 0.03, 1.0])
    rng = np.random.default_rng(2)
    change = rng.normal(size=(5, 5))
    change = change + change.T
    region = SingularRegion(jnp.asarray(border))

    def forces(s):
        return jax.vmap(lambda d: region.force(jnp.diag(values) + s * change, d))(jnp.eye(5))

    found = jax.jit(jax.jacfwd(forces))(0.0)
    apart = values[:, None] - values[None]
    h = 1e-6
    slopes = (_by_eigenvalues(values + h, border) - _by_eigenvalues(values - h, border)) / (2 * h)
    g = _by_eigenvalues(values, border)
    quotients = np.where(apart == 0, slopes[:, None], (g[:, None] - g[None]) / np.where(apart == 0, 1, apart))
    # Differences of second order are good to h², as shares of the border.
    np.testing.assert_allclose(found, quotients * change, atol=1e-7 * np.max(np.abs(quotients)))
    assert np.all(np.isfinite(jax.jit(jax.jacfwd(jax.jacrev(forces)))(0.0)))


# The elbow is singular where the forearm is in line with the upper arm, and the wrist where two axes are.
BENT = jnp.array([0.3, 0.5, -1.2, 0.4, 0.2, -0.3])
SWEEP = jnp.array([0.2, -0.3, -0.8, 0.5, -0.4, 0.6])


@jax.jit
def _puma(region, qs, v):
    """Torques of a pose's task, the task's accelerations and demand, and the least scaled mobility."""
    target = jdyn.frame_pose(PUMA, BENT + 0.1, "tool")

    def one(q):
        posture = Posture(kp=2.0, kd=1.0)
        tau = OperationalSpace(PUMA, "tool", target, kp=30.0, kd=4.0, posture=posture, damping=region)(0.0, q, v)
        J = jdyn.jacobian(PUMA, q, "tool", frame="aligned")
        a = jdyn.forward_dynamics(PUMA, q, v, tau)
        reached = J @ a + jdyn.jacobian_rate(PUMA, q, v, "tool", frame="aligned") @ v
        pose = jdyn.frame_pose(PUMA, q, "tool")
        turn = jdyn.spatial.quaternion_log(jdyn.spatial.matrix_to_quaternion(target.rotation @ pose.rotation.T))
        error = jnp.concatenate([turn, target.translation - pose.translation])
        S = J @ jnp.linalg.solve(jdyn.mass_matrix(PUMA, q), J.T)
        means = jnp.repeat(jnp.mean(jnp.diagonal(S).reshape(-1, 3), axis=1), 3) ** 0.5
        return tau, reached, 30 * error - 4 * J @ v, jnp.linalg.eigvalsh(S / means[:, None] / means[None])[0]

    return jax.lax.map(one, qs, batch_size=256)


@pytest.mark.slow
def test_a_puma_passes_singularities_without_jumps():
    """On a path through its elbow's singularity and its wrist's. Outside of the region the task is met; torques have
    slopes that do not grow as steps get shorter, where those of the exact inverse have poles."""
    v, steps = 0.3 * jnp.ones(6), 4096
    s = jnp.linspace(-1, 1, steps + 1)
    tau, reached, asked, least = (
        np.asarray(x) for x in _puma(SingularRegion(1e-3), BENT[None] + s[:, None] * SWEEP[None], v)
    )
    regular = least > 1e-3
    assert 0.05 < np.mean(regular) < 0.95 and np.min(least) < 1e-6
    np.testing.assert_allclose(reached[regular], asked[regular], atol=1e-10 * np.max(np.abs(asked)))

    def steepest(stride):
        return np.max(np.abs(np.diff(tau[::stride], axis=0))) * steps / 2 / stride

    assert steepest(1) < 1.05 * steepest(4)
    sharp, *_ = (np.asarray(x) for x in _puma(SingularRegion(1e-12), BENT[None] + s[:, None] * SWEEP[None], v))
    assert np.max(np.abs(sharp)) > 100 * np.max(np.abs(tau))


ARM = jdyn.load("double_pendulum")


@jax.jit
def _followed(damping, q, beyond, height):
    """Errors of an arm's tip, and the largest torques, along a way that leads to the end of its reach or beyond it at
    2 s and at 6 s, and back between; from 1.5 m, or at constant length where `height` is zero."""

    def path(t):
        reach = 1.5 + height * (0.5 + beyond) * jnp.sin(jnp.pi * t / 4) ** 2
        return reach * jnp.array([jnp.sin(0.3), 0.0, -jnp.cos(0.3)])

    speed = jax.jacfwd(path)

    def control(t, q, v):
        return OperationalSpace(
            ARM, "tip", path(t), kp=100.0, kd=20.0, target_velocity=speed(t), damping=damping,
            target_acceleration=jax.jacfwd(speed)(t), posture=Posture([0.5, -1.0], kp=10.0, kd=5.0),
        )(t, q, v)  # fmt: skip

    times = jnp.linspace(0, 6, 301)
    motion = jdyn.simulate(ARM, q, jnp.zeros(2), 6.0, controller=control, saveat=times, max_steps=20000)
    tips = jax.vmap(lambda q: jdyn.frame_pose(ARM, q, "tip").translation)(motion.q)
    torques = jax.vmap(control)(motion.ts, motion.q, motion.v)
    return jnp.linalg.norm(tips - jax.vmap(path)(times), axis=1), jnp.max(jnp.abs(torques))


@pytest.mark.slow
def test_an_arm_follows_into_its_singularity_and_out_of_it():
    """Beside damped least squares that ask for the same torques where the target is beyond reach."""
    start = jnp.array([0.3 + np.arccos(0.75), -2 * np.arccos(0.75)])
    region, least_squares = SingularRegion(jnp.asarray(1e-4), jnp.asarray(100.0)), jnp.asarray(5e-3)
    (_, torque), (_, same) = (_followed(damping, start, 0.05, 1.0) for damping in (region, least_squares))
    assert 100 < torque < same < 1.3 * torque
    for beyond, smaller in ((0.0, 5), (-0.001, 300)):
        (error, _), (damped, _) = (_followed(damping, start, beyond, 1.0) for damping in (region, least_squares))
        assert jnp.max(damped) > smaller * jnp.max(error), (jnp.max(damped), jnp.max(error))
    assert jnp.max(error) < 2e-6
    # From rest in the singular configuration, bent by the posture.
    error, _ = _followed(region, jnp.full(2, 0.3).at[1].set(0.0), 0.0, 0.0)
    assert abs(error[0] - 0.5) < 1e-12 and error[-1] < 1e-6


@pytest.mark.slow
def test_torques_have_derivatives_where_the_arm_is_stretched():
    straight, v = jnp.array([0.3, 0.0]), jnp.array([0.5, -0.3])
    region = SingularRegion(jnp.asarray(0.01), jnp.asarray(30.0))
    reach = OperationalSpace(
        ARM, "tip", [0.5, 0.0, -1.5], kp=30.0, kd=4.0, posture=Posture(kp=2.0, kd=1.0), damping=region
    )
    forwards, backwards = (jax.jit(mode(lambda q: reach(0.0, q, v)))(straight) for mode in (jax.jacfwd, jax.jacrev))
    h = 1e-5
    steps = (reach(0.0, straight + h * e, v) - reach(0.0, straight - h * e, v) for e in jnp.eye(2))
    size = np.max(np.abs(forwards))
    np.testing.assert_allclose(forwards, np.stack(list(steps), axis=1) / (2 * h), atol=1e-7 * size)
    np.testing.assert_allclose(backwards, forwards, atol=1e-12 * size)


def test_wrong_regions_are_named():
    for region, name in ((SingularRegion(0.0), "border"), (SingularRegion(limit=-1.0), "limit")):
        with pytest.raises(ValueError, match=f"damping.{name}: expected a number greater than zero"):
            OperationalSpace(ARM, "tip", jnp.zeros(3), kp=1.0, kd=1.0, damping=region)
