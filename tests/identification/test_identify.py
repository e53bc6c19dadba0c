"""Models that can exist, from forces: against the conditions of the minimum in other coordinates, by NumPy."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jdyn
from jdyn.identification.entropic import inertia_residuals, positive_residuals
from jdyn.spatial import from_log_cholesky
from jdyn.spatial.log_cholesky import pseudo_inertia
from tests.drawn import drawn_states
from tests.identification.arms import nominal_arm, planar_arm

pytestmark = [pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]

SAMPLES, NOISE, SPREAD = 26, 2.0, 0.7
ARM, NOMINAL = planar_arm(), nominal_arm()


def _motion(noise):
    q, v, a, _ = drawn_states(ARM, SAMPLES)
    tau = np.asarray(jax.vmap(lambda *x: jdyn.inverse_dynamics(ARM, *x))(q, v, a))
    return q, v, a, tau + noise * np.random.default_rng(0).normal(size=tau.shape)


def _pseudo(vector):
    """The pseudo-inertia of ten parameters, written anew."""
    m, h, (xx, xy, yy, xz, yz, zz) = vector[0], vector[1:4], vector[4:]
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return np.block([[np.trace(I) / 2 * np.eye(3) - I, h[:, None]], [h[None], m]])


# The pseudo-inertia is linear in the ten parameters: its derivatives.
BASIS = np.array([_pseudo(row) for row in np.eye(10)])


@pytest.mark.slow
def test_the_distance_of_bodies_is_their_relative_entropy():
    rng = np.random.default_rng(0)

    @jax.jit
    def drawn(free):
        one, other = (jax.vmap(from_log_cholesky)(x) for x in free)
        return inertia_residuals(one, other), *(jax.vmap(pseudo_inertia)(body) for body in (one, other))

    residuals, *bodies = map(np.asarray, drawn(rng.normal(scale=0.5, size=(2, 7, 10))))
    found = np.sum(residuals**2, axis=1) / 2
    for i, (J, J0) in enumerate(zip(*bodies, strict=True)):
        # Eigenvalues of J0⁻¹ J, that is, of one pseudo-inertia relative to the other.
        values = np.linalg.eigvals(np.linalg.solve(J0, J)).real
        assert_allclose(found[i], np.sum(values - np.log(values) - 1), rtol=1e-8)


def test_distances_are_smooth_where_nothing_differs():
    """And where a series takes over from the formula."""
    x = np.exp([-3.0, -0.1001, -0.0999, 0.0, 1e-9, 0.0999, 0.1001, 3.0])
    one = np.ones_like(x)
    residuals = jax.jit(lambda x: jax.jvp(lambda x: positive_residuals(x, one), (x,), (one,)))
    found, slopes = map(np.asarray, residuals(x))
    assert_allclose(found**2, 2 * (x - np.log(x) - 1), rtol=1e-9, atol=1e-15)
    # d(r²) = 2 r dr is 2 (1 - 1/x), and dr = 1 at zero.
    assert_allclose(found * slopes, 1 - 1 / x, rtol=1e-9, atol=1e-15)
    assert float(slopes[3]) == pytest.approx(1.0)


@pytest.mark.slow
def test_the_estimate_is_the_minimum_of_a_convex_problem():
    """In the linear parameters the problem is convex, so that the minimum is where the gradient vanishes. Noise is so
    large that forces alone ask for a body that cannot exist."""
    motion = _motion(NOISE)
    result = jdyn.identify(NOMINAL, *motion, spread=SPREAD)
    fit, values, nominal = result.fit, result.values, result.nominal
    assert result.message.startswith("converged")
    B = fit.base.combinations
    by_forces = B.T @ np.linalg.solve(fit.covariance, B @ values - fit.values)
    by_distance = np.zeros_like(values)
    for body in range(2):
        rows = slice(10 * body, 10 * body + 10)
        J, J0 = _pseudo(values[rows]), _pseudo(nominal[rows])
        assert np.all(np.linalg.eigvalsh(J) > 0)
        by_distance[rows] = np.einsum("kij,ij->k", BASIS, np.linalg.inv(J0) - np.linalg.inv(J)) / SPREAD**2
    by_distance[20:] = (1 / nominal[20:] - 1 / values[20:]) / SPREAD**2
    # At the tolerance of the solver, the square root of rounding, of the largest terms that cancel.
    scale = np.abs(by_forces).max()
    assert scale > 1
    assert_allclose(by_forces + by_distance, 0, atol=1e-6 * scale)
    assert np.all(values[20:] > 0)
    # The model has these values, and keeps everything else.
    assert_allclose(jdyn.identification.standard_values(result.model), values, rtol=1e-12)
    assert result.model.topology == ARM.topology
    lone = fit.intervals()[list(fit.base.columns).index(16)]
    (row,) = (line for line in str(result).splitlines() if line.startswith("body:fore.Iyy"))
    assert f"{values[16]:.4g}" in row and f"{lone[0]:.4g} to {lone[1]:.4g}" in row and row.endswith("alone")
    assert lone[0] < 0


def test_what_cannot_be_is_refused():
    motion = np.zeros((4, SAMPLES, 2))
    with pytest.raises(ValueError, match="spread: expected a positive number, got 0"):
        jdyn.identify(NOMINAL, *motion, spread=0)
    with pytest.raises(ValueError, match="bodies that fill a volume, got points, rods or impossible ones: fore"):
        jdyn.identify(NOMINAL.with_body("fore", inertia=np.zeros((3, 3))), *motion)


@pytest.mark.slow
def test_forces_without_noise_give_the_base_parameters_back():
    """Also of friction that is zero nominally."""
    result = jdyn.identify(NOMINAL.with_joint("elbow", friction=0.0), *_motion(0.0))
    B = result.fit.base.combinations
    assert_allclose(B @ result.values, B @ jdyn.identification.standard_values(ARM), rtol=1e-6, atol=1e-9)
    # Forces do not tell the mass of the first link from its centre of mass: both stay near the nominal ones.
    assert float(result.model.inertias.mass[0]) == pytest.approx(2.0, rel=0.05)


@pytest.mark.slow
def test_friction_that_forces_deny_becomes_zero():
    without = ARM.with_joint("elbow", friction=0.0, damping=0.0)
    q, v, a, _ = drawn_states(without, SAMPLES)
    tau = np.asarray(jax.vmap(lambda *x: jdyn.inverse_dynamics(without, *x))(q, v, a))
    # Forces that push the elbow on, as no friction would.
    pushed = tau - 0.3 * np.tanh(np.asarray(v) / 0.1) * [0, 1]
    result = jdyn.identify(without, q, v, a, pushed + 0.1 * np.random.default_rng(0).normal(size=tau.shape))
    assert result.message.startswith("converged")
    assert float(result.model.friction[1]) == 0 and float(result.model.damping[1]) < 0.3


def test_what_forces_deny_altogether_stays_as_it_is():
    still = ARM.with_joint("shoulder", damping=0.0).with_joint("elbow", damping=0.0)
    q, v, a, _ = drawn_states(still, SAMPLES)
    tau = jax.vmap(lambda *x: jdyn.inverse_dynamics(still, *x))(q, v, a)
    result = jdyn.identify(still, q, v, a, tau - 0.3 * v, parts=["damping"])
    assert result.message == "forces ask for none of these parameters" and not np.any(result.model.damping)


def test_few_samples_are_said_to_be_few():
    with pytest.warns(jdyn.tuning.TuneWarning, match="forces of a joint are left over, which say little of its noise"):
        jdyn.identification.fit_base_parameters(NOMINAL, *(x[:9] for x in _motion(0.1)))


def test_dampers_alone_are_identified_with_bodies_that_are_points():
    point = ARM.with_body("fore", inertia=np.zeros((3, 3)))
    q, v, a, _ = drawn_states(point, SAMPLES)
    tau = np.asarray(jax.vmap(lambda *x: jdyn.inverse_dynamics(point, *x))(q, v, a))
    result = jdyn.identify(point.with_joint("elbow", damping=1.0), q, v, a, tau, parts=["damping"])
    assert_allclose(result.model.damping, 0.3, rtol=1e-6)
    assert_allclose(result.model.inertias.mass, point.inertias.mass)
