"""The loop of steps: what was found on the way, when to stop, and what is kept on disk."""

import hashlib
import os
import time
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jaxtyping import Array, PyTree

from jdyn.terminal.interruption import interruptions
from jdyn.terminal.progress import progress_bar
from jdyn.tuning.checkpoint import Checkpoint, as_numbers
from jdyn.tuning.gradient_check import disagreement
from jdyn.tuning.history import History, Patience
from jdyn.tuning.minibatches import Minibatches
from jdyn.tuning.problem import Problem
from jdyn.tuning.result import TuneResult, TuneWarning
from jdyn.tuning.steps import Programs, Seen, Walk, compiled, first_walk


class Descent(NamedTuple):
    """Result of a descent.

    Attributes:
        best: Best coordinates, of each start.
        histories: Of each start.
        seen: What each step told, stacked; axes of steps before those of starts.
        interrupted: Whether Ctrl-C ended it.
        info: `compile_seconds`, `run_seconds` and `device`.
    """

    best: PyTree[Array]
    histories: list[History]
    seen: Seen
    interrupted: bool
    info: dict[str, Any]


def descend(
    problem: Problem,
    optimizer: optax.GradientTransformation,
    free: PyTree[Array],
    *,
    starts: int | None,
    steps: int,
    batches: Minibatches | None,
    patience: Patience | None,
    check: bool,
    checkpoint: str | os.PathLike | None,
    progress: bool | None,
) -> Descent:
    """Walk from `free`, until the last step or until every start has ended.

    Args:
        problem: The loss.
        optimizer: What makes steps of gradients.
        free: Free coordinates; with a leading axis if there are `starts`.
        starts: Their number; None for one without that axis.
        steps: Number of updates.
        batches: Data; None for a loss without.
        patience: When it ends because the loss does not fall.
        check: Whether to compare the gradient with differences, at the first step and where the loss stalls.
        checkpoint: File to go on from, and to keep the walk in.
        progress: As for `tune`.
    """
    optimizer = optax.with_extra_args_support(optimizer)
    walk = first_walk(optimizer, free, starts)
    programs = compiled(problem, optimizer, walk, batches, starts)
    kept = None if checkpoint is None else Checkpoint(checkpoint, _digest(programs, walk, batches))
    walk, records = (walk, []) if kept is None else kept.load(walk, programs.seen)
    histories = [History(patience) for _ in range(starts or 1)]
    for seen in records:
        _add(histories, seen)
    began, bar = time.perf_counter(), progress_bar("tune", "step", steps, progress, max(len(records) - 1, 0))
    with interruptions() as interrupted, bar:
        while len(records) <= steps and not all(history.message for history in histories):
            before, stalled = walk, [history.stalled for history in histories]
            walk, seen, gradient = _take(programs, walk, batches, len(records), len(records) == steps)
            records.append(seen)
            _add(histories, seen)
            stalls = any(history.stalled > was for history, was in zip(histories, stalled, strict=True))
            if check and (len(records) == 1 or stalls):
                _check(programs, before, batches, len(records) - 1, seen.loss, gradient, starts)
            if kept is not None and kept.is_due():
                kept.save(walk, records)
            if len(records) > 1:
                bar.update()
            bar.set_postfix(loss=f"{np.fmin.reduce(np.ravel(seen.loss)):.4g}")
            if interrupted:
                break
    if kept is not None:
        kept.save(walk, records)
    info = {
        "compile_seconds": programs.compile_seconds,
        "run_seconds": time.perf_counter() - began,
        "device": str(jax.devices()[0].device_kind),
    }
    stacked = jax.tree.map(lambda *steps: np.stack(steps), *records)
    return Descent(walk.best, histories, stacked, bool(interrupted), info)


def outcome(problem: Problem, found: Descent, start: int | None) -> TuneResult:
    """The result of one start; of the only one, which has no axis, if it is None."""
    history = found.histories[start or 0]
    best, seen = found.best, found.seen
    if start is not None:
        best, seen = (jax.tree.map(lambda x: x[start], best), jax.tree.map(lambda x: x[:, start], seen))
    steps = len(history.losses)
    path = jax.tree.structure(problem.tuned(best)).unflatten(x[:steps] for x in seen.path) if seen.path else None
    interrupted = f"interrupted after {steps - 1} steps" if found.interrupted else ""
    return TuneResult(
        params=problem.params(best),
        losses=np.array(history.losses),
        gradient_norms=np.array(history.gradient_norms),
        best_step=history.best_step,
        message=history.message or interrupted,
        judged=np.array(history.judged),
        learning_rates=seen.learning_rate[:steps],
        path=path,
        info=found.info,
    )


def _take(programs: Programs, walk: Walk, batches, step, last) -> tuple[Walk, Seen, PyTree]:
    """A step, and before it the loss of all rows at the beginning of an epoch, and in the end."""
    judged = None
    if programs.judge is not None and (step % batches.steps_per_epoch == 0 or last):
        walk, judged = programs.judge(walk, batches.data)
    walk, seen, gradient = programs.step(walk, *_rows(batches, step))
    seen = seen if judged is None else seen._replace(judged=judged)
    return walk, jax.tree.map(np.asarray, seen), gradient


def _rows(batches, step):
    return (None, None) if batches is None else (batches.data, batches.numbers(step))


def _add(histories, seen: Seen):
    columns = (np.ravel(column) for column in (seen.loss, seen.gradient_norm, seen.judged))
    for history, *numbers in zip(histories, *columns, strict=True):
        history.add(*map(float, numbers))


def _check(programs, walk, batches, step, loss, gradient, starts):
    def losses(free):
        return programs.step(walk._replace(free=free), *_rows(batches, step))[1].loss

    for problem in disagreement(losses, walk.free, loss, gradient, starts, seed=step):
        warnings.warn(f"tune, after {step} steps: {problem}", TuneWarning, stacklevel=4)


def _digest(programs: Programs, walk: Walk, batches: Minibatches | None) -> str:
    """Digest of everything that the steps follow from, and of what compiles them."""
    found = hashlib.sha256(f"{jax.__version__} {jax.devices()[0].device_kind}\n{programs.text()}".encode())
    rows = () if batches is None else (batches.data, batches.seed)
    for leaf in jax.tree.leaves((walk, rows)):
        numbers = as_numbers(leaf)
        found.update(f"{numbers.dtype.str}{numbers.shape}".encode() + numbers.tobytes())
    return found.hexdigest()
