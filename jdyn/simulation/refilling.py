"""A while loop whose batch does not wait for its slowest lane."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

# Measured on a six-axis arm: from 64 lanes on, more of them make no lane cheaper on a CPU. Accelerators need
# thousands of lanes to be busy.
CPU_LANES = 64
ACCELERATOR_LANES = 8192

# How many lanes may stand idle, as a share of all, before they are refilled.
IDLE = 8

# The last few lanes go on by themselves, in a narrower loop, which is another program to compile. On a CPU a step of
# two lanes costs a seventh of one of 64; an accelerator would not notice.
CPU_LAST_LANES = 2


class Loop(NamedTuple):
    """`result(job, state)` of `while running(state): state = body(job, state)`, from `state = init(job)`.

    Attributes:
        init: From a job, a PyTree of arrays, to the state.
        running: Whether a state is to be advanced.
        body: Advances a state, and must leave one that is not running as it is: that spares a batch to select among
            whole states, buffers included, after every step.
        result: What is wanted of the last state.
    """

    init: Callable[[Any], Any]
    running: Callable[[Any], Any]
    body: Callable[[Any, Any], Any]
    result: Callable[[Any, Any], Any]


def run(loop: Loop, job):
    """The result of a loop. Under `jax.vmap`, nested or not, a fixed number of lanes works off all jobs: a lane that is
    done takes the next job, so that a batch costs the mean number of steps, not the largest. With forward-mode
    derivatives a batch goes in step instead.

    `loop` must not close over traced values.
    """
    leaves, structure = jax.tree.flatten(job)

    def alone(leaves):
        job = jax.tree.unflatten(structure, leaves)
        state, static = eqx.partition(loop.init(job), eqx.is_array)
        state = jax.lax.while_loop(
            lambda state: loop.running(eqx.combine(state, static)),
            lambda state: eqx.filter(loop.body(job, eqx.combine(state, static)), eqx.is_array),
            state,
        )
        return loop.result(job, eqx.combine(state, static))

    batchable = custom_vmap(alone)

    @batchable.def_vmap
    def batch(jobs, batched, leaves):
        results = _all(loop, structure, jobs, batched[0], leaves)
        return results, jax.tree.map(lambda _: True, results)

    # `custom_vmap` would take primal values for batched wherever tangents are, which `jax.jacfwd` does not allow.
    differentiable = jax.custom_jvp(batchable)
    differentiable.defjvp(lambda primals, tangents: jax.jvp(alone, primals, tangents))
    return differentiable(leaves)


def _all(loop: Loop, structure, jobs: int, batched: list[bool], leaves: list):
    """Results of many jobs; under another `jax.vmap`, all batches' jobs are those of one larger batch."""

    @custom_vmap
    def batch(leaves):
        return _refilled(loop, jobs, *(jax.tree.unflatten(structure, tree) for tree in (batched, leaves)))

    @batch.def_vmap
    def nested(batches, outside, leaves):
        def flattened(x, inner, outer):
            if not inner:
                return jnp.repeat(x, jobs, axis=0) if outer else x
            return (x if outer else jnp.stack([x] * batches)).reshape(batches * jobs, *x.shape[1 + outer :])

        flat = [flattened(*leaf) for leaf in zip(leaves, batched, outside[0], strict=True)]
        either = [inner or outer for inner, outer in zip(batched, outside[0], strict=True)]
        results = _all(loop, structure, batches * jobs, either, flat)
        return (
            jax.tree.map(lambda x: x.reshape(batches, jobs, *x.shape[1:]), results),
            jax.tree.map(lambda _: True, results),
        )

    return batch(leaves)


def lanes_at_once(jobs: int) -> int:
    """How many of `jobs` are worked on at a time."""
    return min(jobs, CPU_LANES if jax.default_backend() == "cpu" else ACCELERATOR_LANES)


def last_lanes(jobs: int) -> int:
    """How many are left to a narrower loop in the end."""
    narrower = jax.default_backend() == "cpu" and 2 * jobs >= CPU_LANES
    return CPU_LAST_LANES if narrower else 0


class _Lanes(NamedTuple):
    """Attributes:
    number: Job that each lane works on; the number of jobs where there is none left.
    job: What of it differs between jobs.
    state: How far it is.
    """

    number: Any
    job: Any
    state: Any


def _refilled(loop: Loop, jobs: int, batched, job):
    own, shared = eqx.partition(job, batched)
    count, last = lanes_at_once(jobs), last_lanes(jobs)
    static = None

    def job_of(mine):
        return eqx.combine(mine, shared)

    def started(numbers):
        nonlocal static
        mine = jax.tree.map(lambda x: x.at[numbers].get(mode="clip"), own)

        def init(mine):
            nonlocal static
            state, static = eqx.partition(loop.init(job_of(mine)), eqx.is_array)
            return state

        return _Lanes(numbers, mine, jax.vmap(init, axis_size=count)(mine))

    def running(lanes):
        return jax.vmap(lambda state: loop.running(eqx.combine(state, static)))(lanes.state) & (lanes.number < jobs)

    def advanced(lanes):
        def body(mine, state):
            return eqx.filter(loop.body(job_of(mine), eqx.combine(state, static)), eqx.is_array)

        return lanes._replace(state=jax.vmap(body)(lanes.job, lanes.state))

    def results(lanes):
        return jax.vmap(lambda mine, state: loop.result(job_of(mine), eqx.combine(state, static)))(
            lanes.job, lanes.state
        )

    def with_results(collected, lanes, done):
        where = jnp.where(done, lanes.number, jobs)
        return jax.tree.map(lambda all, x: all.at[where].set(x, mode="drop"), collected, results(lanes))

    def worked(carry):
        lanes, following, collected = carry
        # With nothing left to take, there is nothing to stop for but the narrower loop.
        allowed = jnp.where(following < jobs, max(count // IDLE, 1), count - last)
        lanes = jax.lax.while_loop(lambda lanes: jnp.sum(~running(lanes)) < allowed, advanced, lanes)
        done = ~running(lanes)
        collected = with_results(collected, lanes, done)
        order = jnp.cumsum(done) - 1
        numbers = jnp.where(done, jnp.minimum(following + order, jobs), lanes.number)
        lanes = jax.tree.map(
            lambda new, old: jnp.where(done.reshape(-1, *[1] * (new.ndim - 1)), new, old), started(numbers), lanes
        )
        return lanes, jnp.minimum(following + jnp.sum(done), jobs), collected

    lanes = started(jnp.arange(count))
    collected = jax.tree.map(lambda x: jnp.zeros((jobs, *x.shape[1:]), x.dtype), jax.eval_shape(results, lanes))
    carry = lanes, jnp.array(count), collected
    lanes, _, collected = jax.lax.while_loop(lambda carry: jnp.sum(carry[0].number < jobs) > last, worked, carry)
    if not last:
        return collected
    unfinished = jnp.argsort(lanes.number)[:last]
    lanes = jax.tree.map(lambda x: x[unfinished], lanes)
    lanes = jax.lax.while_loop(lambda lanes: jnp.any(running(lanes)), advanced, lanes)
    return with_results(collected, lanes, lanes.number < jobs)
