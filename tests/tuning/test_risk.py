"""Risks of many samples, against SciPy and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.test_util import check_grads
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

import jdyn

pytestmark = [pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]


LOSSES = np.random.default_rng(0).normal(size=10)


def by_minimisation(losses, share):
    """Rockafellar and Uryasev's definition, min over c of c + mean(max(loss - c, 0)) / share; a loss is the best c."""
    return min(c + np.mean(np.maximum(losses - c, 0)) / share for c in losses)


def test_a_share_below_one_sample_is_the_maximum_in_both_precisions():
    for dtype in (jnp.float32, jnp.float64):
        assert jdyn.tuning.CVaR(1e-300)(jnp.array([1.0, 3.0, 2.0], dtype)) == 3


@pytest.mark.parametrize("share", [0.05, 0.1, 0.25, 0.3, 0.77, 1.0])
def test_cvar_is_the_least_of_its_definition(share):
    risk = jdyn.tuning.CVaR(share)
    assert float(risk(jnp.asarray(LOSSES))) == pytest.approx(by_minimisation(LOSSES, share), rel=1e-12)
    # Of the worst losses, each counts as a part of the share.
    weights = jax.grad(risk)(jnp.asarray(LOSSES))
    assert np.sum(weights) == pytest.approx(1) and np.max(weights) == pytest.approx(min(0.1 / share, 1))
    check_grads(jax.jit(risk), (jnp.asarray(LOSSES),), order=1, modes=["fwd", "rev"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_smooth_worst_is_near_the_maximum_and_never_overflows(dtype):
    losses, risk = jnp.asarray(1e3 * LOSSES, dtype), jdyn.tuning.Worst(0.5)
    expected = 0.5 * (logsumexp(1e3 * LOSSES / 0.5) - np.log(10))
    assert float(risk(losses)) == pytest.approx(expected, rel=4 * float(jnp.finfo(dtype).eps))
    assert losses.max() - 0.5 * np.log(10) <= risk(losses) <= losses.max()
    check_grads(jax.jit(jdyn.tuning.Worst(0.5)), (jnp.asarray(LOSSES),), order=2, modes=["fwd", "rev"])


def test_each_risk_leads_to_its_own_minimum():
    """Of (p - s)² for s = 0, 1, 5: the mean, the middle of the extremes, and what SciPy finds between."""
    samples = np.array([0.0, 1.0, 5.0])

    def found(risk, optimizer, steps):
        loss = jdyn.robust(lambda p, sample: (p - sample) ** 2, risk)
        return float(jdyn.tune(loss, 0.5, data=samples, optimizer=optimizer, steps=steps, check=False).params)

    descent = optax.sgd(optax.exponential_decay(0.1, 1, 0.97))
    assert found(jnp.mean, descent, 200) == pytest.approx(2.0, abs=1e-2)
    assert found(jdyn.tuning.CVaR(0.1), descent, 200) == pytest.approx(2.5, abs=2e-2)
    between = minimize_scalar(lambda p: by_minimisation((p - samples) ** 2, 0.5), (0, 5)).x
    assert found(jdyn.tuning.CVaR(0.5), descent, 200) == pytest.approx(between, abs=2e-2) and between > 2.05
    smooth = minimize_scalar(lambda p: logsumexp((p - samples) ** 2 / 0.3), (0, 5)).x
    assert found(jdyn.tuning.Worst(0.3), optax.lbfgs(), 20) == pytest.approx(smooth, abs=1e-5)


def test_a_sample_that_fails_is_not_hidden():
    loss = jdyn.robust(lambda p, sample: jnp.sqrt(p - sample), jdyn.tuning.CVaR(0.5))
    assert np.isnan(loss(1.0, jnp.array([0.0, 0.5, 2.0])))


def test_risks_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="expected a share of the samples, above 0 and at most 1, got 0"):
        jdyn.tuning.CVaR(0.0)
    with pytest.raises(ValueError, match="expected a positive width in units of the loss, got 0"):
        jdyn.tuning.Worst(0.0)
