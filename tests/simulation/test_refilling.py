"""A batch of loops costs the mean number of steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jdyn.execution.lane_refill import CPU_LANES, Loop, run

pytestmark = pytest.mark.fast_compile


def counting(calls=None):
    """Adds `add` as many times as `steps` says."""

    def body(job, state):
        if calls is not None:
            jax.debug.callback(lambda: calls.append(1))
        going = state["left"] > 0
        return {"left": state["left"] - jnp.where(going, 1, 0), "sum": state["sum"] + jnp.where(going, job["add"], 0.0)}

    return Loop(
        init=lambda job: {"left": job["steps"], "sum": jnp.zeros_like(job["add"])},
        running=lambda state: state["left"] > 0,
        body=body,
        result=lambda job, state: {"sum": state["sum"], "twice": 2 * job["add"]},
    )


def jobs(count, seed=0):
    steps = np.random.default_rng(seed).lognormal(1, 1.5, count).astype(np.int64)
    return {"steps": jnp.asarray(steps), "add": jnp.linspace(-1, 1, count)}


@pytest.mark.parametrize("count", [1, 7, CPU_LANES, CPU_LANES + 1, 700])
def test_every_job_is_done_once(count):
    job = jobs(count)
    found = jax.jit(jax.vmap(lambda job: run(counting(), job)))(job)
    np.testing.assert_allclose(found["sum"], np.asarray(job["steps"], float) * job["add"], rtol=1e-14)
    np.testing.assert_array_equal(found["twice"], 2 * job["add"])


@pytest.mark.parametrize("count", [0, 1, 7])
def test_lanes_run_one_by_one(count):
    """As many rounds as all of them need, whatever the batch: no lane takes a step because another does."""
    job, calls = jobs(count), []
    apart = counting(calls)._replace(apart=True)
    nested = {"steps": jnp.stack([job["steps"]] * 2), "add": jnp.stack([job["add"]] * 2)}
    found = jax.jit(jax.vmap(jax.vmap(lambda job: run(apart, job))))(nested)
    jax.effects_barrier()
    np.testing.assert_allclose(found["sum"], np.asarray(nested["steps"], float) * nested["add"], rtol=1e-14)
    assert len(calls) == 2 * int(job["steps"].sum())


def test_derivatives_of_lanes_one_by_one():
    job = jobs(5)
    _, slope = jax.jvp(
        jax.vmap(lambda add, steps: run(counting()._replace(apart=True), {"steps": steps, "add": add})["sum"]),
        (job["add"], job["steps"]),
        (jnp.ones(5), np.zeros(5, jax.dtypes.float0)),
    )
    np.testing.assert_allclose(slope, job["steps"], rtol=1e-14)


def test_shared_arguments_are_not_copied():
    job = jobs(200)
    found = jax.jit(jax.vmap(lambda steps, add: run(counting(), {"steps": steps, "add": add}), (0, None)))(
        job["steps"], jnp.array(0.5)
    )
    np.testing.assert_array_equal(found["sum"], 0.5 * np.asarray(job["steps"]))


def test_lanes_do_not_wait_for_the_slowest():
    job, calls = jobs(4096, seed=1), []
    jax.block_until_ready(jax.jit(jax.vmap(lambda job: run(counting(calls), job)))(job))
    jax.effects_barrier()
    steps = np.asarray(job["steps"])
    lane_steps = len(calls)
    assert steps.max() > 40 * steps.mean()
    # Idle lanes before a refill, and at the end lanes that find no job any more, while the longest goes on.
    assert lane_steps < 1.2 * steps.sum() + CPU_LANES * steps.max()


def test_a_batch_of_batches_is_one_batch():
    """What differs in one of them only, and what lanes cost: as in the batch of all."""
    job, calls = jobs(4096, seed=1), []
    steps, add = job["steps"].reshape(4, 2, 512), jnp.linspace(-1, 1, 2)
    lane = jax.vmap(lambda steps, add: run(counting(calls), {"steps": steps, "add": add}), (0, None))
    found = jax.jit(jax.vmap(jax.vmap(lane), (0, None)))(steps, add)
    np.testing.assert_allclose(found["sum"], np.asarray(steps) * np.asarray(add)[:, None], rtol=1e-13)
    jax.effects_barrier()
    steps = np.asarray(steps)
    assert len(calls) < 1.2 * steps.sum() + CPU_LANES * steps.max()
    assert 4 * 2 * steps.max(axis=2).sum() * CPU_LANES > 2 * len(calls)  # else this shows nothing


def test_forward_derivatives_of_a_batch():
    job = jobs(100)

    def total(scale):
        return jax.vmap(lambda s, a: run(counting(), {"steps": s, "add": scale * a}))(job["steps"], job["add"])["sum"]

    np.testing.assert_allclose(
        jax.jit(jax.jacfwd(total))(1.0), np.asarray(job["steps"], float) * job["add"], rtol=1e-14
    )


def test_derivatives_of_a_batch_have_all_results_of_all_jobs():
    """Also those that depend on no job: JAX differentiates the batch here, and batches the derivative there."""
    loop = counting()._replace(result=lambda job, state: (state["sum"], jnp.ones(2), jnp.zeros((0, 3))))
    job = jobs(3)

    @jax.jit
    def one(steps, add):
        return run(loop, {"steps": steps, "add": add})

    def derivative(function, add, change):
        return jax.jvp(function, (add,), (change,))

    add, change = job["add"], jnp.array([0.5, 1.0, 2.0])
    found = derivative(lambda add: jax.vmap(one)(job["steps"], add), add, change)
    expected = jax.vmap(lambda steps, *x: derivative(lambda add: one(steps, add), *x))(job["steps"], add, change)
    assert [x.shape for x in found[0]] == [(3,), (3, 2), (3, 0, 3)]
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(x, y)
