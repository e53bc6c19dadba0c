"""Which method to trust: the evidence is right, and so is what follows from it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from jdyn.robots import prrr


def heavy_tip(dtype):
    """Seven links of a gram, at the end of which hangs a tonne."""
    model = jdyn.random_tree(0, 7, kinds=(jdyn.Revolute,), reach=1, dtype=dtype)
    for body, mass in zip(model.body_names, [1e-3] * 6 + [1e3], strict=True):
        model = model.with_body(body, mass=mass, inertia=mass * 0.01 * np.eye(3))
    return model


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_tame_robot():
    model = jdyn.load("puma560", dtype=jnp.float32)
    found = jdyn.diagnose(model, model.neutral()[None])
    M = jdyn.mass_matrix(model.astype(jnp.float64), jnp.zeros(6))
    np.testing.assert_allclose(found.condition, [np.linalg.cond(M)], rtol=1e-10)
    assert set(found.digits) == {jdyn.ABA(), jdyn.ArrayABA(), jdyn.CRBA()}
    for method, digits in found.digits.items():
        assert digits["float32"] > 5 and digits["float64"] > 13, method
        assert found.residuals[method]["float32"] < 1e-5 and found.residuals[method]["float64"] < 1e-13, method
    assert found.method == jdyn.ByBatch()
    assert found.recommendation.startswith("ABA() keeps") and "float32: use it" in found.recommendation
    assert "puma560: condition number" in str(found) and "CRBA()" in str(found)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_float64_is_judged_without_what_float32_makes_of_rotations():
    """Rotations that are rounded to float32 would leave a method that takes them for rotations seven digits."""
    model = jdyn.random_tree(0, 12, kinds=(jdyn.Revolute,), reach=1)
    found = jdyn.diagnose(model, samples=4)
    assert found.digits[jdyn.CRBA()]["float64"] > 12
    assert found.method == jdyn.ByBatch()
    raised = jdyn.diagnose(model.astype(jnp.float32), samples=4)
    assert raised.digits[jdyn.CRBA()]["float64"] < 9 < 13 < raised.digits[jdyn.ABA()]["float64"]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_formulations_part_where_masses_do():
    """At a condition number of 5e10 factoring M has lost what float32 has, and ten digits of float64."""
    found = jdyn.diagnose(
        prrr(2, lengths=(1, 1e5), masses=(1, 1e5)), method=jdyn.studies.MatrixABA("cancelling"), samples=4
    )
    assert 1e10 < min(found.condition) < max(found.condition) < 1e11
    assert found.digits[jdyn.ABA()]["float32"] > 5 and found.digits[jdyn.ABA()]["float64"] > 13
    for method in (jdyn.CRBA(), jdyn.studies.MatrixABA("cancelling")):
        assert found.digits[method]["float32"] == 0 and 4 < found.digits[method]["float64"] < 9
    assert found.method == jdyn.ABA()


@pytest.mark.slow
@pytest.mark.exhaustive
def test_square_roots_are_recommended_where_they_help():
    model = heavy_tip(jnp.float32)
    found = jdyn.diagnose(model, samples=4)
    assert found.digits[jdyn.ABA()]["float32"] < 4 < found.digits[jdyn.ArrayABA()]["float32"]
    assert found.method == jdyn.ArrayABA() and "or float64" in found.recommendation


def test_auto_chooses_once_and_never_in_a_trace(monkeypatch):
    """Whatever is diagnosed: here a stand-in for the evidence."""
    model, calls = jdyn.load("double_pendulum").with_joint("joint1", damping=0.123), []

    def counted(model):
        calls.append(model.name)
        return jdyn.Diagnosis(model.name, np.ones(1), {}, {}, jdyn.CRBA(), "")

    monkeypatch.setattr("jdyn.dynamics.diagnosis.diagnose", counted)
    x = jnp.array([0.3, -0.2])
    expected = jdyn.forward_dynamics(model, x, x, x, method=jdyn.CRBA())
    np.testing.assert_array_equal(jdyn.forward_dynamics(model, x, x, x, method="auto"), expected)
    again = jax.jit(lambda x: jdyn.forward_dynamics(model, x, x, x, method="auto"))
    np.testing.assert_allclose(again(x), expected, rtol=1e-13)
    assert calls == ["double_pendulum"]
    with pytest.raises(ValueError, match=r"method='auto' looks at numbers, and 'double_pendulum' is traced here"):
        jax.jit(lambda model: jdyn.forward_dynamics(model, x, x, x, method="auto"))(model)


def test_bad_arguments_are_named():
    model = jdyn.load("double_pendulum")
    with pytest.raises(ValueError, match=r"q: expected shape \(samples, 2\) for 'double_pendulum', got \(2,\)"):
        jdyn.diagnose(model, jnp.zeros(2))
    with pytest.raises(ValueError, match="samples: expected at least 1, got 0"):
        jdyn.diagnose(model, samples=0)
    with pytest.raises(ValueError, match="diagnose looks at numbers, and 'double_pendulum' is traced here"):
        jax.jit(lambda model: jdyn.diagnose(model).condition)(model)
