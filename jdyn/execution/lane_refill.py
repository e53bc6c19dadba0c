"""A while loop whose batch does not wait for its slowest lane."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from jdyn.execution.compiled import precise
from jdyn.execution.few_kernels import in_few_kernels
from jdyn.execution.lanes import all_varying, merged, one_by_one
from jdyn.execution.threads.kernel import on_threads, threaded

# Measured on two arms: on a CPU, a lane costs a tenth less among 96 than among 64, and no less among 128, since more of
# them wait for the last ones. Accelerators need thousands of lanes to be busy.
CPU_LANES = 96
ACCELERATOR_LANES = 8192

# Fraction of lanes that may be idle before they are refilled.
IDLE = 16


class Loop(NamedTuple):
    """`result(job, state)` of `while running(state): state = body(job, state)`, from `state = init(job)`.

    Attributes:
        init: From a job, a PyTree of arrays, to the state.
        running: Whether to advance a state.
        body: Advances a state. It must not change one that is not running: a batch then need not select among whole
            states, buffers included, after every step.
        result: Computes the result from the last state.
        apart: Whether lanes run one by one on a CPU. Lanes of a batch do all that any of them does within a step, and
            lanes that touch things do different things: one by one a lane takes 0.3 to 0.95 of the time, and a batch
            compiles in two thirds of it. Others share what XLA vectorizes, and one by one take four times as long.
        cut: Whether one lane runs in few kernels of a CPU.
    """

    init: Callable[[Any], Any]
    running: Callable[[Any], Any]
    body: Callable[[Any, Any], Any]
    result: Callable[[Any, Any], Any]
    apart: bool = False
    cut: bool = True


def run(loop: Loop, job):
    """The result of a loop. Under `jax.vmap`, nested or not, a fixed number of lanes processes all jobs: a lane that is
    done takes the next job, so that a batch costs the mean number of steps, not the largest. With forward-mode
    derivatives all lanes of a batch advance together instead.

    `loop` must not close over traced values.
    """
    leaves, structure = jax.tree.flatten(job)

    def advancing(compiled, leaves):
        job = jax.tree.unflatten(structure, leaves)
        state, static = eqx.partition(loop.init(job), eqx.is_array)
        state = jax.lax.while_loop(
            lambda state: loop.running(eqx.combine(state, static)),
            compiled(lambda state: eqx.filter(loop.body(job, eqx.combine(state, static)), eqx.is_array)),
            state,
        )
        return loop.result(job, eqx.combine(state, static))

    whole = precise(functools.partial(advancing, lambda body: body))
    alone = precise(functools.partial(advancing, in_few_kernels)) if loop.cut else whole

    @precise
    def refilled(jobs, batched, leaves):
        return _refilled(loop, jobs, *(jax.tree.unflatten(structure, tree) for tree in (batched, leaves)))

    if threaded():
        together = functools.partial(_on_threads, alone, refilled)
    elif loop.apart and jax.default_backend() == "cpu":

        def together(jobs, batched, leaves):
            return one_by_one(alone, batched, leaves)

    else:
        together = refilled
    batchable = custom_vmap(alone)

    @batchable.def_vmap
    def batch(jobs, batched, leaves):
        return all_varying(merged(together, jobs, batched[0], leaves))

    # `custom_vmap` would treat primal values as batched wherever tangents are, which `jax.jacfwd` does not allow.
    differentiable = jax.custom_jvp(batchable)
    differentiable.defjvp(lambda *args: jax.jvp(lambda leaves: _batched_like(leaves, whole(leaves)), *args))
    return differentiable(leaves)


def _on_threads(alone, refilled, jobs, batched, leaves):
    """One job a thread."""
    shapes = [jax.ShapeDtypeStruct(x.shape[each:], x.dtype) for x, each in zip(leaves, batched, strict=True)]
    structure = jax.tree.structure(jax.eval_shape(alone, shapes))

    def lane(*leaves):
        return jax.tree.leaves(alone(list(leaves)))

    def otherwise(*leaves):
        return jax.tree.leaves(refilled(jobs, batched, list(leaves)))

    return structure.unflatten(on_threads(lane, otherwise, jobs, batched, leaves))


def _batched_like(leaves: list, results):
    """The results, batched wherever any leaf is. JAX takes from the function which results of its derivative are
    batched, and a batch has all results of all jobs, also those that no job changes."""
    different = jnp.any(jnp.array([jnp.any(x != x) for x in leaves]))
    return jax.tree.map(lambda x: jax.lax.select(different, x, x), results)


def lanes_at_once(jobs: int) -> int:
    """Number of `jobs` that run at a time."""
    return min(jobs, CPU_LANES if jax.default_backend() == "cpu" else ACCELERATOR_LANES)


class _Lane(NamedTuple):
    """Lanes at work.

    Attributes:
        number: Job of each lane; the number of jobs if none is left.
        job: The arrays that differ between jobs.
        state: State of each job.
    """

    number: Any
    job: Any
    state: Any


def _refilled(loop: Loop, jobs: int, batched, job):
    own, shared = eqx.partition(job, batched)
    count, static = lanes_at_once(jobs), None

    def started(number):
        nonlocal static
        mine = jax.tree.map(lambda x: x.at[number].get(mode="clip"), own)
        state, static = eqx.partition(loop.init(eqx.combine(mine, shared)), eqx.is_array)
        return _Lane(number, mine, state)

    def running(lane):
        return loop.running(eqx.combine(lane.state, static)) & (lane.number < jobs)

    def advanced(lane):
        state = loop.body(eqx.combine(lane.job, shared), eqx.combine(lane.state, static))
        return lane._replace(state=eqx.filter(state, eqx.is_array))

    def result(lane):
        return loop.result(eqx.combine(lane.job, shared), eqx.combine(lane.state, static))

    def collect(collected, lanes, results, done):
        where = jnp.where(done, lanes.number, jobs)
        return jax.tree.map(lambda all, x: all.at[where].set(x, mode="drop"), collected, results)

    def worked(carry):
        lanes, following, collected = carry
        # When no job is left to take, stop when all are done.
        allowed = jnp.where(following < jobs, max(count // IDLE, 1), count)
        lanes = jax.lax.while_loop(
            lambda lanes: jnp.sum(~jax.vmap(running)(lanes)) < allowed, jax.vmap(advanced), lanes
        )
        done = ~jax.vmap(running)(lanes)
        collected = collect(collected, lanes, jax.vmap(result)(lanes), done)
        order = jnp.cumsum(done) - 1
        numbers = jnp.where(done, jnp.minimum(following + order, jobs), lanes.number)
        lanes = jax.tree.map(
            lambda new, old: jnp.where(done.reshape(-1, *[1] * (new.ndim - 1)), new, old),
            jax.vmap(started)(numbers),
            lanes,
        )
        return lanes, jnp.minimum(following + jnp.sum(done), jobs), collected

    lanes = jax.vmap(started)(jnp.arange(count))
    collected = jax.tree.map(
        lambda x: jnp.zeros((jobs, *x.shape), x.dtype), jax.eval_shape(result, jax.tree.map(lambda x: x[0], lanes))
    )
    carry = lanes, jnp.array(count), collected
    return jax.lax.while_loop(lambda carry: jnp.any(carry[0].number < jobs), worked, carry)[2]
