"""Base parameters: against Pinocchio, closed forms, NumPy, and what noise does by theory."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import null_space

import jdyn
from jdyn.identification import standard_names, standard_regressor, standard_values
from jdyn.identification.base import stacked_regressor
from jdyn.identification.weighted import weighted_least_squares
from tests.drawn import drawn_states, with_joint_elements
from tests.identification.arms import planar_arm

pytestmark = pytest.mark.fast_compile

# As many as there are standard parameters, so that `base_parameters` runs the same program.
SAMPLES = 26

ARM = planar_arm()


@pytest.fixture(scope="module")
def motion():
    """States of the arm, and the forces that they take."""
    q, v, a, _ = drawn_states(ARM, SAMPLES)
    return q, v, a, np.asarray(jax.vmap(lambda *x: jdyn.inverse_dynamics(ARM, *x))(q, v, a))


@pytest.mark.slow
def test_forces_are_linear_in_the_standard_parameters():
    """Of joints of one and of several coordinates, and of one that follows another."""
    builder = jdyn.Builder("tree")
    solid = {"mass": 1.5, "com": (0.1, -0.2, 0.3), "inertia": (0.1, 0.12, 0.14)}
    builder.add_link("ball", jdyn.Ball(), **solid)
    builder.add_link("leader", jdyn.Revolute((0, 0, 1)), parent="ball", **solid)
    builder.add_link(
        "follower", jdyn.Prismatic((1, 0, 0)), parent="leader", mimic=jdyn.Mimic("leader", 0.5, 0.1), **solid
    )
    model = dataclasses.replace(with_joint_elements(builder.build()), stiffness=jnp.zeros(5))
    q, v, a, _ = drawn_states(model)
    Y, tau = jax.jit(lambda *x: (standard_regressor(model, *x), jdyn.inverse_dynamics(model, *x)))(q, v, a)
    assert_allclose(Y @ standard_values(model), tau, rtol=1e-12)
    assert standard_names(model)[10:12] == ("body:leader.mass", "body:leader.mx")
    assert standard_names(model)[30:36] == (
        *(f"joint:ball.damping[{i}]" for i in range(3)), "joint:leader.damping", "joint:follower.damping",
        "joint:ball.friction[0]",
    )  # fmt: skip


def test_the_base_parameters_of_a_planar_arm_are_those_in_closed_form():
    """By Lagrange's equations of two links, of which the second turns about (l, 0, 0) of the first."""
    base, length = jdyn.identification.base_parameters(ARM), 0.5
    names = standard_names(ARM)
    expected = [
        {"body:upper.mx": 1, "body:fore.mass": length}, {"body:upper.mz": 1},
        {"body:upper.Iyy": 1, "joint:shoulder.armature": 1, "body:fore.mass": length**2},
        {"body:fore.mx": 1}, {"body:fore.mz": 1}, {"body:fore.Iyy": 1}, {"joint:elbow.armature": 1},
        *({f"joint:{joint}.{what}": 1} for joint in ("shoulder", "elbow") for what in ("damping", "friction")),
    ]  # fmt: skip
    rows = np.array([[row.get(name, 0) for name in names] for row in expected])
    # Another basis of the same space: of the same rank, alone and together.
    assert base.rank == len(rows) == np.linalg.matrix_rank(rows)
    assert np.linalg.matrix_rank(np.concatenate([rows, base.combinations]), tol=1e-9) == base.rank
    kinds = dict(zip(names, base.identifiable, strict=True))
    lone = {next(iter(row)) for row in expected if len(row) == 1}
    assert {name for name in names if kinds[name] == "alone"} == lone
    assert {name for name in names if kinds[name] == "combined"} == set().union(*expected) - lone
    assert "body:fore.mass" in str(base) and "11 base parameters of 26 standard ones" in str(base)


def test_rank_and_null_space_are_those_of_pinocchios_regressor(tmp_path):
    """Of three links whose axes point in different directions. The parameters of its bodies have the same order."""
    builder = jdyn.Builder("spatial")
    for i, axis in enumerate([(0, 0, 1), (0, 1, 0), (1, 0, 1)]):
        parent = {"parent": f"l{i - 1}", "placement": (0.1 * i, 0.2, 0.3)} if i else {}
        builder.add_link(f"l{i}", jdyn.Revolute(axis), mass=1.0, inertia=(0.1, 0.1, 0.1), **parent)
    model = builder.build()
    jdyn.save_urdf(model, tmp_path / "spatial.urdf")
    peer = pin.buildModelFromUrdf(str(tmp_path / "spatial.urdf"))
    data, rng = peer.createData(), np.random.default_rng(0)
    Y = np.concatenate([pin.computeJointTorqueRegressor(peer, data, *rng.normal(size=(3, 3))) for _ in range(60)])
    base = jdyn.identification.base_parameters(model)
    inertial = base.combinations[:, : 10 * model.nb]
    assert np.linalg.matrix_rank(inertial, tol=1e-9) == np.linalg.matrix_rank(Y)
    # What moves no force moves no base parameter.
    assert_allclose(inertial @ null_space(Y), 0, atol=1e-9)


def test_motion_along_one_joint_alone_tells_less(motion):
    q, v, a, _ = motion
    still = jnp.array([[0.0, 1.0]])
    base = jdyn.identification.base_parameters(ARM, q * still, v * still, a * still)
    kinds = dict(zip(base.standard, base.identifiable, strict=True))
    assert kinds["joint:shoulder.damping"] == "no" and kinds["joint:elbow.damping"] == "alone"
    assert base.rank < jdyn.identification.base_parameters(ARM).rank


def test_a_fit_is_that_of_numpy_with_the_same_weights(motion):
    q, v, a, tau = motion
    noise = np.array([0.5, 0.1])
    noisy = tau + noise * np.random.default_rng(0).normal(size=tau.shape)
    # Estimates do not depend on the nominal model, here one of another mass and friction.
    nominal = ARM.with_body("fore", mass=3.0).with_joint("elbow", friction=0.0)
    fit = jdyn.identification.fit_base_parameters(nominal, q, v, a, noisy)
    Y = stacked_regressor(ARM, q, v, a)[..., fit.base.columns]
    weights = np.tile(1 / fit.noise, SAMPLES)[:, None]
    rows = Y.reshape(-1, fit.base.rank)
    expected, *_ = np.linalg.lstsq(weights * rows, weights[:, 0] * noisy.ravel())
    assert_allclose(fit.values, expected, rtol=1e-9, atol=1e-9)
    assert_allclose(fit.covariance, np.linalg.inv((weights * rows).T @ (weights * rows)), rtol=1e-8, atol=1e-12)
    assert_allclose(fit.root.T @ fit.root @ fit.covariance, np.eye(fit.base.rank), atol=1e-8)
    # The noise is a fixed point: residuals over degrees of freedom.
    residuals = noisy - (rows @ fit.values).reshape(tau.shape)
    scaled = weights * rows
    hat = np.einsum("ij,jk,ik->i", scaled, fit.covariance, scaled).reshape(tau.shape).sum(axis=0)
    assert_allclose(fit.noise**2, np.sum(residuals**2, axis=0) / (SAMPLES - hat), rtol=1e-5)
    # Its relative error is one over the square root of twice the degrees of freedom, here 0.15; three of them.
    assert_allclose(fit.noise, noise, rtol=0.45)


def test_forces_without_noise_give_the_parameters_back(motion):
    nominal = ARM.with_body("fore", mass=3.0).with_joint("elbow", friction=0.0)
    fit = jdyn.identification.fit_base_parameters(nominal, *motion)
    assert_allclose(fit.values, fit.base.combinations @ standard_values(ARM), rtol=1e-9, atol=1e-12)
    assert np.all(fit.noise < 1e-9)


def test_what_is_known_is_taken_from_the_model(motion):
    """Friction that is not estimated is that of the model."""
    fit = jdyn.identification.fit_base_parameters(ARM, *motion, parts=["inertias", "armature"])
    assert_allclose(fit.values, fit.nominal, rtol=1e-9, atol=1e-12)
    assert not np.any(fit.base.combinations[:, [i for i, n in enumerate(fit.base.standard) if "damping" in n]])
    assert fit.base.rank == 7
    known = {name for name, kind in zip(fit.base.standard, fit.base.identifiable, strict=True) if kind == "known"}
    assert known == {name for name in fit.base.standard if "damping" in name or "friction" in name}


@pytest.mark.slow
def test_intervals_contain_the_truth_as_often_as_they_say():
    """Of 300 fits with noise that differs tenfold between joints; each interval counts."""
    rng = np.random.default_rng(1)
    Y, x, noise = rng.normal(size=(30, 2, 5)), np.arange(5.0), np.array([1.0, 0.1])
    names = tuple("abcde")
    inside, variances = [], []
    for _ in range(300):
        fit = weighted_least_squares(Y, Y @ x + noise * rng.normal(size=(30, 2)), 0.0)
        base = jdyn.identification.BaseParameters(names, np.arange(5), np.arange(5), np.eye(5), np.ones(5))
        found = jdyn.identification.BaseFit(base, x, fit.values, fit.covariance, fit.noise, fit.freedom, fit.root)
        low, high = found.intervals(0.9).T
        inside.append((low < x) & (x < high))
        variances.append(fit.noise**2 / noise**2)
    # The standard deviation of a count of 1500 at 90 % is 0.8 %, half as much again as intervals of a fit depend on
    # each other; weights that are estimated from 30 rows shorten intervals by about 1 %.
    assert 0.86 < np.mean(inside) < 0.94
    # Not biased: three standard deviations of the mean of 300, each of about sqrt(2 / 27).
    assert_allclose(np.mean(variances, axis=0), 1, atol=3 * np.sqrt(2 / 25 / 300))


def test_what_cannot_be_is_refused(motion):
    q, v, a, tau = motion
    with pytest.raises(ValueError, match=r"tau: expected shape \(26, 2\) for 'arm', got \(25, 2\)"):
        jdyn.identification.fit_base_parameters(ARM, q, v, a, tau[1:])
    with pytest.raises(ValueError, match=r"v: expected finite numbers, got \[ +nan .*\] at sample 3"):
        jdyn.identification.fit_base_parameters(ARM, q, v.at[3, 0].set(jnp.nan), a, tau)
    with pytest.raises(ValueError, match=r"expected more rows than the .* base parameters, got 2 samples"):
        jdyn.identification.fit_base_parameters(ARM, q[:2], v[:2], a[:2], tau[:2])
    with pytest.raises(ValueError, match="parts: expected some of inertias, damping, friction, armature, got 'fr"):
        jdyn.identification.fit_base_parameters(ARM, q, v, a, tau, parts="friction")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="forces of this motion depend on no parameter of damping"):
        jdyn.identification.fit_base_parameters(ARM, q, 0 * v, a, tau, parts=["damping"])
    with pytest.raises(ValueError, match="expected numbers, got traced ones; which parameters forces tell depends on"):
        jax.jit(lambda q: jdyn.identification.fit_base_parameters(ARM, q, v, a, tau).values)(q)
    with pytest.raises(ValueError, match="q, v, a: expected all of them, or none"):
        jdyn.identification.base_parameters(ARM, q)
    with pytest.raises(ValueError, match="level: expected a probability between 0 and 1, got 95"):
        jdyn.identification.fit_base_parameters(ARM, q, v, a, tau).intervals(95)


@pytest.mark.slow
def test_in_float32_the_same_parameters_are_identifiable(motion):
    q, v, a, tau = (jnp.asarray(x, jnp.float32) for x in motion)
    model = ARM.astype(jnp.float32)
    assert (
        jdyn.identification.base_parameters(model).identifiable == jdyn.identification.base_parameters(ARM).identifiable
    )
    fit = jdyn.identification.fit_base_parameters(model, q, v, a, tau)
    # Roundings of forces of some 50 N m, enlarged by the condition of the motion.
    assert_allclose(fit.values, fit.nominal, atol=50 * 26 * np.finfo(np.float32).eps)
