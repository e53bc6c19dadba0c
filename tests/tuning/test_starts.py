"""Tuning from many starts at once: as each alone, and none spoils another."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import brute

import jdyn
from jdyn.tuning.history import History

pytestmark = [pytest.mark.fast_compile, pytest.mark.usefixtures("ordinary_promotion")]


# Himmelblau's function with a slope: four minima of which one is lowest.
def slanted(p):
    x, y = p["x"], p["y"]
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2 + 0.5 * x + 0.3 * y


STARTS = {"x": jnp.array([3.0, 3.0, -3.0, -3.0]), "y": jnp.array([3.0, -3.0, -3.0, 3.0]), "n": 1}


def test_the_best_of_many_starts_is_the_global_minimum():
    result = jdyn.tune_starts(slanted, STARTS, optimizer=optax.lbfgs(), steps=25)
    expected = brute(lambda p: slanted({"x": p[0], "y": p[1]}), ((-5, 5), (-5, 5)), Ns=60)
    np.testing.assert_allclose([result.params["x"], result.params["y"]], expected, atol=1e-4)
    least = [one.losses[one.best_step] for one in result.results]
    # All four minima are found, and differ.
    assert result.best_start == 2 and np.min(np.diff(np.sort(least))) > 0.1
    assert result.params["n"] == 1


def test_each_start_goes_its_own_way():
    """With momentum, bounds and rows: the same as alone, but for rounding."""
    options = dict(
        optimizer=optax.adam(0.1), steps=7, bounds={"kp": jdyn.tuning.Positive(), "x": None},
        data=jdyn.tuning.Minibatches(np.random.default_rng(0).normal(size=(6, 2)), 2), check=False,
    )  # fmt: skip
    starts = {"kp": jnp.array([0.1, 1.0, 10.0]), "x": jnp.asarray(np.random.default_rng(1).normal(size=(3, 2)))}

    def loss(p, rows):
        return jnp.mean((p["kp"] * jnp.sin(p["x"]) - rows) ** 2)

    together = jdyn.tune_starts(loss, starts, **options)
    for start, one in enumerate(together.results):
        alone = jdyn.tune(loss, jax.tree.map(lambda x, start=start: x[start], starts), **options)
        np.testing.assert_allclose(one.losses, alone.losses, rtol=1e-10)
        np.testing.assert_allclose(one.judged, alone.judged, rtol=1e-10)
        assert one.best_step == alone.best_step
        for found, expected in ((one.params, alone.params), (one.path, alone.path)):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), found, expected)


def test_a_start_that_fails_spoils_no_other_and_is_named():
    def loss(x):
        return jnp.where(x > 3, jnp.sqrt(2.5 - x), (x - 1) ** 2)

    starts = jnp.array([0.0, 4.0, 2.0])
    with pytest.warns(jdyn.tuning.TuneWarning, match=r"1 of 3 starts failed: start 1, the loss is nan after 0 steps"):
        result = jdyn.tune_starts(loss, starts, optimizer=optax.sgd(0.3), steps=5)
    np.testing.assert_allclose(result.results[0].losses, 0.16 ** np.arange(6))
    np.testing.assert_allclose(result.results[2].losses, 0.16 ** np.arange(6))
    assert len(result.results[1].losses) == 1 and result.best_start in (0, 2)
    dataset = result.to_xarray()
    assert dataset.loss.dims == ("start", "step") and dataset.loss.shape == (3, 6)
    assert np.all(np.isnan(dataset.loss[1, 1:])) and np.all(np.isfinite(dataset.loss[0]))
    np.testing.assert_allclose(dataset.params[2], 1 + 0.4 ** np.arange(6))
    assert dataset.message.values[1] == "the loss is nan after 0 steps" and dataset.attrs["best_start"] in (0, 2)


def test_starts_without_any_hope_are_refused():
    with pytest.raises(ValueError, match="tune_starts can start nowhere: at start 0, the loss is nan"):
        jdyn.tune_starts(jnp.sqrt, -jnp.ones(2), optimizer=optax.sgd(0.1), steps=1)
    with pytest.raises(ValueError, match=r"starts: expected one leading axis.*\['a'\] has 2, \['b'\] has none"):
        jdyn.tune_starts(lambda p: p["a"], {"a": jnp.ones(2), "b": 1.0}, optimizer=optax.sgd(0.1), steps=1)
    with pytest.raises(ValueError, match=r"start 1: params: outside of their bounds.*positive numbers, got -2"):
        jdyn.tune_starts(
            lambda x: x, jnp.array([1.0, -2.0]), optimizer=optax.sgd(0.1), steps=1, bounds=jdyn.tuning.Positive()
        )


def test_starts_go_on_from_a_checkpoint(tmp_path):
    options = dict(optimizer=optax.adam(0.1), check=False)
    whole = jdyn.tune_starts(slanted, STARTS, steps=6, **options)
    jdyn.tune_starts(slanted, STARTS, steps=3, checkpoint=tmp_path / "c", **options)
    resumed = jdyn.tune_starts(slanted, STARTS, steps=6, checkpoint=tmp_path / "c", **options)
    for a, b in zip(resumed.results, whole.results, strict=True):
        np.testing.assert_array_equal(a.losses, b.losses)
        jax.tree.map(np.testing.assert_array_equal, a.params, b.params)


def test_it_goes_on_while_a_start_has_not_stalled():
    def loss(x):
        return jnp.where(x < 0, 2.0, 1 + x)  # flat below 0

    result = jdyn.tune_starts(
        loss, jnp.array([-1.0, 1.0]), optimizer=optax.sgd(0.1), steps=8, patience=jdyn.tuning.Patience(3)
    )
    assert len(result.to_xarray().step) == 9
    assert "no further than to 2 in 8 steps" in result.results[0].message and not result.results[1].message
    both = jdyn.tune_starts(
        loss, jnp.array([-1.0, -2.0]), optimizer=optax.sgd(0.1), steps=8, patience=jdyn.tuning.Patience(3)
    )
    assert len(both.to_xarray().step) == 4


def test_a_start_that_stalls_may_fall_again_or_fail_later():
    history = History(jdyn.tuning.Patience(2))
    for loss in (2.0, 1.0, 1.0, 1.0):
        history.add(loss, 1.0, loss)
    assert history.stalled and not history.failed and history.best_step == 3
    history.add(0.5, 1.0, 0.5)
    assert not history.message and history.best_step == 4
    for loss in (0.5, 0.5, np.nan, 0.1):
        history.add(loss, 1.0, loss)
    assert history.failed and history.message == "the loss is nan after 7 steps"
    assert len(history.losses) == 8 and history.best_step == 6


class Push(jdyn.Controller):
    """A force on the cart that is linear in time from knot to knot; none on the pole."""

    force: jax.Array

    def __call__(self, t, q, v):
        return jnp.array([jnp.interp(t, jnp.linspace(0.0, 3.0, len(self.force)), self.force), 0.0])


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_cart_pole_swings_up_and_is_held_there():
    """From random pushes, within the rail and the force of its motor: all swing up, the best ends near rest."""
    model = jdyn.load("cartpole")
    hanging, still, times = jnp.array([0.0, jnp.pi]), jnp.zeros(2), jnp.linspace(0.0, 3.0, 31)

    def swing(params):
        controller = Push(params["force"])
        return jdyn.simulate(model, hanging, still, times[-1], controller=controller, saveat=times, throw=False)

    def loss(params):
        motion = swing(params)
        q, v = motion.q[-1], motion.v[-1]
        beyond = jnp.mean(jax.nn.relu(jnp.abs(motion.q[:, 0]) - 2.0) ** 2)
        return (1 - jnp.cos(q[1])) + 0.25 * q[0] ** 2 + 0.05 * jnp.sum(v**2) + 10 * beyond

    result = jdyn.tune_starts(
        loss, {"force": jax.random.uniform(jax.random.key(0), (8, 16), minval=-5.0, maxval=5.0)},
        optimizer=optax.adam(0.3), steps=250, bounds=jdyn.tuning.Interval(-10.0, 10.0),
    )  # fmt: skip
    ends = np.array([swing(found.params).q[-1] for found in result.results])
    assert np.all(np.cos(ends[:, 1]) > np.cos(0.6))
    best = swing(result.params)
    assert np.cos(best.q[-1, 1]) > np.cos(0.2)
    assert np.max(np.abs(best.q[:, 0])) < 2.4
    turns = 2 * np.pi * np.round(best.q[-1, 1] / (2 * np.pi))
    upright = jdyn.LQR(model, jnp.array([0.0, turns]), Q=1.0, R=1.0, actuated=[0])
    after = jdyn.simulate(model, best.q[-1], best.v[-1], 8.0, controller=jdyn.Saturated(upright, model))
    np.testing.assert_allclose(after.q[-1], upright.target, atol=2e-2)
    assert np.max(np.abs(after.q[:, 0])) < 2.4
