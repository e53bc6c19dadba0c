"""Compiled steps of an optimizer, from one start or from many at once."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree

from jdyn.tuning.minibatches import Minibatches
from jdyn.tuning.parameters import strong
from jdyn.tuning.problem import Problem

# Parameters are kept by step if they are no more numbers than this.
FEW = 64


class Walk(NamedTuple):
    """Place of the optimizer. With many starts, every array has a leading axis of them.

    Attributes:
        free: Free coordinates.
        optimizer: State of the optimizer.
        best: The best coordinates met.
        best_loss: Their loss.
        alive: Whether loss and gradient have been finite so far.
    """

    free: PyTree[Array]
    optimizer: PyTree
    best: PyTree[Array]
    best_loss: Float[Array, "*starts"]
    alive: Bool[Array, "*starts"]


class Seen(NamedTuple):
    """Figures of a step, at the coordinates that it starts from.

    Attributes:
        loss: The loss, of the rows that the step sees.
        gradient_norm: Euclidean norm of its gradient with respect to free coordinates.
        judged: Loss by which the best step is chosen: that of all rows; NaN if it was not computed.
        learning_rate: Of optimizers that have it in their state; NaN for others.
        path: Leaves of the tuned parameters; empty if they are many.
    """

    loss: Any
    gradient_norm: Any
    judged: Any
    learning_rate: Any
    path: tuple


class Programs(NamedTuple):
    """The compiled functions of a descent.

    Attributes:
        step: `(walk, data, numbers of rows) -> following walk, what was seen, gradient`.
        judge: `(walk, data) -> walk with the best so far, loss of all rows`; None where every step sees them all.
        text: Its `step` before compiling, with the numbers that the loss closes over, as a function without arguments.
        seen: Shapes and types of what a step tells.
        compile_seconds: What compiling took.
    """

    step: Callable
    judge: Callable | None
    text: Callable[[], str]
    seen: Seen
    compile_seconds: float


def first_walk(optimizer: optax.GradientTransformationExtraArgs, free: PyTree[Array], starts: int | None) -> Walk:
    """At the start.

    Args:
        optimizer: What makes steps of gradients.
        free: Free coordinates; with a leading axis if there are `starts`.
        starts: Their number; None for one without that axis.
    """

    def walk(free):
        state = jax.tree.map(lambda leaf: jnp.asarray(leaf) if eqx.is_array_like(leaf) else leaf, optimizer.init(free))
        return strong(Walk(free, state, free, jnp.asarray(jnp.inf, float), jnp.asarray(True)))

    return walk(free) if starts is None else jax.vmap(walk)(free)


def compiled(
    problem: Problem,
    optimizer: optax.GradientTransformationExtraArgs,
    walk: Walk,
    batches: Minibatches | None,
    starts: int | None,
) -> Programs:
    """The programs of a descent, each traced and compiled once."""
    began = time.perf_counter()
    judging = batches is not None and batches.steps_per_epoch > 1
    few = sum(leaf.size for leaf in jax.tree.leaves(walk.free)) <= FEW * (starts or 1)

    def step(walk, data, numbers):
        rows = () if data is None else (jax.tree.map(lambda x: x[numbers], data),)
        return _step(problem, optimizer, judging, few, walk, rows)

    def judge(walk, data):
        return _judge(problem, walk, data)

    data = None if batches is None else batches.data
    if starts is not None:
        step, judge = jax.vmap(step, in_axes=(0, None, None)), jax.vmap(judge, in_axes=(0, None))
    lowered = jax.jit(step).lower(walk, data, None if batches is None else batches.numbers(0))
    of_all = jax.jit(judge).lower(walk, data).compile() if judging else None
    run = lowered.compile()
    return Programs(run, of_all, lowered.as_text, lowered.out_info[1], time.perf_counter() - began)


def _step(problem, optimizer, judging, few, walk, rows):
    def loss(free):
        return problem.loss(free, *rows)

    value, gradient = eqx.filter_value_and_grad(loss)(walk.free)
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))
    updates, state = optimizer.update(
        gradient, walk.optimizer, walk.free, value=value, grad=gradient, value_fn=loss
    )  # fmt: skip
    judged = jnp.full_like(value, jnp.nan) if judging else value
    walk = _with_best(walk, judged)
    following = Walk(
        optax.apply_updates(walk.free, updates), state, walk.best, walk.best_loss,
        walk.alive & jnp.isfinite(value) & jnp.isfinite(norm),
    )  # fmt: skip
    seen = Seen(value, norm, judged, _learning_rate(state), tuple(jax.tree.leaves(problem.tuned(walk.free))) * few)
    # Types stay, so that the same program takes the following step.
    return jax.tree.map(lambda new, old: new.astype(old.dtype), following, walk), seen, gradient


def _judge(problem, walk, data):
    value = problem.loss(walk.free, data)
    return _with_best(walk, value), value


def _with_best(walk, value):
    value = value.astype(walk.best_loss.dtype)
    better = walk.alive & jnp.isfinite(value) & (value <= walk.best_loss)
    best = jax.tree.map(lambda new, old: jnp.where(better, new, old), walk.free, walk.best)
    return walk._replace(best=best, best_loss=jnp.where(better, value, walk.best_loss))


def _learning_rate(state):
    try:
        found = optax.tree_utils.tree_get(state, "learning_rate", filtering=lambda _, value: eqx.is_array(value))
    except KeyError:  # there are several
        found = None
    return jnp.asarray(jnp.nan if found is None else found, float)
