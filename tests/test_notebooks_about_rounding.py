"""Notebooks that show rounding, or compute for long, compiled as users compile them."""

import dataclasses

import jax
import numpy as np
import pytest

import jdyn
from tests.test_notebooks import run


@pytest.mark.slow
@pytest.mark.exhaustive
def test_formulation_stiffness(tmp_path, monkeypatch):
    names = run("formulation-stiffness", tmp_path, monkeypatch)
    assert names["rough"][str(names["bad"])] > 100 * names["rough"]["ABA()"]
    assert names["diagnosis"].method == jdyn.ABA()
    assert np.all(np.isfinite(names["lines"]["ABA() float32"][1]))
    assert np.isnan(names["lines"]["CRBA() float32"][1][-1])


@pytest.mark.slow
@pytest.mark.exhaustive
def test_many_formulations(tmp_path, monkeypatch):
    rows = run("many-formulations", tmp_path, monkeypatch)["rows"]
    # The condition number of M, up to a thousand here, times rounding.
    assert all(double < 1e-12 and single < 1e-4 for double, single in rows.values())
    assert rows["CRBA"][1] > 5 * rows["ABA"][1]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_learn_to_reach_and_walk(tmp_path, monkeypatch):
    """Both tasks are learned with all three seeds; the steps are short enough for the gait."""
    names = run("learn-to-reach-and-walk", tmp_path, monkeypatch)
    assert names["reach_curves"].shape == (30, 3) and names["walk_curves"].shape == (40, 3)
    # A goal is 0.2 m away at first; a trunk that stands goes nowhere.
    assert np.all(np.median(names["misses"], axis=1) < 0.01) and np.all(names["misses"] < 0.05)
    assert np.all(names["reach_curves"][-5:].mean(axis=0) > names["reach_curves"][:5].mean(axis=0) + 5)
    assert np.all(np.median(names["lengths"], axis=1) > 2)
    assert np.all(names["walk_curves"][-5:].mean(axis=0) > names["walk_curves"][:5].mean(axis=0) + 0.3)
    walk, gait = names["walk"], names["gait"]
    shorter = dataclasses.replace(walk, dt=walk.dt / 4, steps_per_action=4 * walk.steps_per_action)

    def way(policy, key):
        _, states = names["earned"](shorter, key, lambda now: gait(policy, 0.02 * now.steps))
        return states.q[-1, 0]

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        ways = jax.jit(jax.vmap(way))(names["walking"], names["starts"][:3])
    assert np.all(np.array(ways) > 2 * names["BODY"])
