"""Tuning on batches of rows: every row its turn, orders from the seed and the step alone."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jdyn
from jdyn.tuning.minibatches import Minibatches

pytestmark = [pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]


ROWS = np.random.default_rng(0).normal(size=12)


def to_the_mean(p, rows):
    """A step of gradient descent at rate 1 leads to the mean of the rows."""
    return 0.5 * jnp.mean((p - rows["x"]) ** 2)


def test_an_epoch_sees_every_row_once_and_each_in_an_order_of_its_own():
    orders = Minibatches(jnp.arange(12), 4, seed=3)
    epochs = [np.concatenate([orders.numbers(3 * epoch + i) for i in range(3)]) for epoch in range(4)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(12))
    assert len({tuple(epoch) for epoch in epochs}) == 4
    # From the seed and the step alone, whatever was asked before.
    np.testing.assert_array_equal(Minibatches(jnp.arange(12), 4, seed=3).numbers(10), orders.numbers(10))
    assert not np.array_equal(Minibatches(jnp.arange(12), 4, seed=4).numbers(10), orders.numbers(10))


def test_each_step_sees_its_batch():
    result = jdyn.tune(
        to_the_mean, 5.0, optimizer=optax.sgd(1.0), steps=6, data=Minibatches({"x": ROWS}, 4, seed=1), check=False
    )
    orders = Minibatches({"x": ROWS}, 4, seed=1)
    means = [ROWS[orders.numbers(step)].mean() for step in range(6)]
    np.testing.assert_allclose(result.path[1:], means, rtol=1e-12)
    # Means of the batches of an epoch have the mean of all rows.
    assert np.mean(result.path[1:4]) == pytest.approx(ROWS.mean())


def test_the_best_parameters_are_best_for_all_rows():
    result = jdyn.tune(to_the_mean, 5.0, optimizer=optax.sgd(0.6), steps=11, data=Minibatches({"x": ROWS}, 4))
    judged = np.flatnonzero(np.isfinite(result.judged))
    assert list(judged) == [0, 3, 6, 9, 11]
    of_all = 0.5 * np.mean((result.path[judged, None] - ROWS) ** 2, axis=1)
    np.testing.assert_allclose(result.judged[judged], of_all, rtol=1e-12)
    assert result.best_step == judged[np.argmin(of_all)] and result.params == result.path[result.best_step]


def test_data_without_a_batch_is_seen_by_every_step():
    result = jdyn.tune(to_the_mean, 5.0, optimizer=optax.sgd(1.0), steps=2, data={"x": ROWS})
    np.testing.assert_allclose(result.path[1:], ROWS.mean())
    np.testing.assert_array_equal(result.judged, result.losses)


def test_patience_counts_steps_and_judges_epochs():
    """The loss of all rows is least at once; batches go on to differ."""
    result = jdyn.tune(
        to_the_mean,
        float(ROWS.mean()),
        optimizer=optax.sgd(0.1),
        steps=99,
        data=Minibatches({"x": ROWS}, 4),
        patience=jdyn.tuning.Patience(5),
    )
    assert len(result.losses) == 7 and result.best_step == 0
