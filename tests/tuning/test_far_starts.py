"""Tuning robots from gains that are ten times off, beside a grid; and for payloads, beside the one in the middle."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jdyn
from benchmarks import tuning

pytestmark = [pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_gains_of_a_puma_that_are_ten_times_off_come_within_five_per_cent_of_a_grid(monkeypatch):
    monkeypatch.setattr(tuning, "GRID", 12)
    monkeypatch.setattr(tuning, "STEPS", 30)
    monkeypatch.setattr(tuning, "TEN_TIMES_OFF", tuning.TEN_TIMES_OFF[[0, 2]])
    loss = tuning.Reach.of(jdyn.load("puma560"), tuning.FAR).loss
    best, least = tuning.best_of_grid(loss)
    for result in tuning.tuned_from_far(loss, best).results:
        assert np.exp(result.losses[0]) > 3 * least and tuning.steps_to_within(result, least) is not None


@pytest.mark.exhaustive
@pytest.mark.parametrize("robot", tuning.ROBOTS)
def test_so_do_other_starts_of_two_robots(robot):
    loss = tuning.Reach.of(jdyn.load(robot), tuning.FAR).loss
    best, least = tuning.best_of_grid(loss)
    found = tuning.tuned_from_far(loss, best)
    assert all(tuning.steps_to_within(result, least) is not None for result in found.results)
    assert np.exp(found.best.losses[found.best.best_step]) < 1.001 * least


@pytest.mark.exhaustive
@pytest.mark.parametrize("robot", tuning.ROBOTS)
def test_tuning_for_the_worst_payload_makes_it_better(robot):
    reach = tuning.Reach.of(tuning.without_friction(robot), tuning.NEAR)
    of_all = jax.jit(jax.vmap(reach.loss, (None, 0)))
    nominal = tuning.tuned_for([1.0], reach)
    robust = tuning.tuned_for(tuning.OFF, reach, jdyn.tuning.CVaR(1 / len(tuning.OFF)))
    worst = [float(np.max(of_all(gains, jnp.asarray(tuning.OFF)))) for gains in (nominal, robust)]
    assert worst[1] < (0.999 if robot == "puma560" else 0.9) * worst[0]
    # And costs where the payload is right.
    assert float(reach.loss(robust)) > float(reach.loss(nominal))
