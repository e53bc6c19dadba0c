"""Minimising a loss from many starts at once."""

import os
import warnings
from collections.abc import Callable

import jax
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from jdyn.tuning.bijections import Bijection
from jdyn.tuning.bounds import to_free
from jdyn.tuning.descent import descend, outcome
from jdyn.tuning.history import Patience
from jdyn.tuning.minibatches import Minibatches, minibatches
from jdyn.tuning.parameters import named_leaves, tunable
from jdyn.tuning.problem import Problem
from jdyn.tuning.result import StartsResult, TuneWarning
from jdyn.tuning.tune import CANNOT_START, check_steps


def tune_starts(
    loss: Callable[..., Float[Array, ""]],
    starts: PyTree,
    *,
    optimizer: optax.GradientTransformation,
    steps: int,
    bounds: PyTree[Bijection | None] = None,
    data: PyTree[Array] | Minibatches = None,
    patience: Patience | None = None,
    check: bool = True,
    checkpoint: str | os.PathLike | None = None,
    progress: bool | None = None,
) -> StartsResult:
    """Minimise `loss(params)` from many starts at once, in one batched program, as `tune` does from one.

    ```
    starts = {"kp": jnp.geomspace(1.0, 1000.0, 16), "kd": jnp.full(16, 10.0)}
    result = jdyn.tune_starts(loss, starts, optimizer=optax.adam(0.1), steps=100, bounds=jdyn.tuning.Positive())
    result.params, result.best_start
    ```

    Each start has an optimizer's state and a history of its own. One that fails affects no other. Steps go on until the
    last one, or until every start has failed or stalled.

    >>> import optax
    >>> starts = {"x": jnp.array([-2.0, 0.5, 3.0])}
    >>> def loss(p):
    ...     return (p["x"] ** 2 - 1) ** 2 + p["x"]
    >>> found = jdyn.tune_starts(loss, starts, optimizer=optax.adam(0.1), steps=100)
    >>> print(jnp.round(found.params["x"], 1))
    -1.1

    Args:
        loss: Scalar function of the parameters of one start, or of these and rows of data.
        starts: The parameters, with a leading axis of starts in every floating-point leaf, shape (starts, ...); other
            leaves are shared.
        optimizer, steps, bounds, data, patience, check, checkpoint, progress: As for `tune`.
            All starts see the same rows.

    Returns:
        The result of each start, and which is best.

    Raises:
        ValueError: as for `tune`; if leading axes differ, or if no start has a finite loss and gradient.
        OSError: if the checkpoint cannot be read or written.

    Warns:
        TuneWarning: naming the starts that failed; on Ctrl-C; and if a gradient disagrees with differences.
    """
    check_steps(steps)
    tuned, fixed = tunable(starts)
    problem, number = Problem(loss, fixed, bounds), _number(tuned)
    found = descend(
        problem, optimizer, _free(bounds, tuned, number), starts=number, steps=steps,
        batches=minibatches(data), patience=patience, check=check, checkpoint=checkpoint, progress=progress,
    )  # fmt: skip
    failed = {start: history.message for start, history in enumerate(found.histories) if history.failed}
    if len(failed) == number and all(len(history.losses) == 1 for history in found.histories):
        raise ValueError(CANNOT_START.format("tune_starts can start nowhere", f"at start 0, {failed[0]}"))
    results = tuple(outcome(problem, found, start) for start in range(number))
    if found.interrupted:
        message = f"interrupted after {len(found.seen.loss) - 1} steps; the result holds the best parameters met"
        warnings.warn(f"tune_starts stopped early: {message}", TuneWarning, stacklevel=2)
    if failed:
        named = "; ".join(f"start {start}, {message}" for start, message in failed.items())
        warnings.warn(f"tune_starts: {len(failed)} of {number} starts failed: {named}", TuneWarning, stacklevel=2)
    least = [np.nan_to_num(result.judged[result.best_step], nan=np.inf) for result in results]
    return StartsResult(results, int(np.argmin(least)))


def _number(tuned):
    lengths = {name: len(leaf) if leaf.ndim else None for name, leaf in named_leaves(tuned)}
    if None in lengths.values() or len(set(lengths.values())) > 1 or 0 in lengths.values():
        found = ", ".join(f"{name} has {length or 'none'}" for name, length in lengths.items())
        raise ValueError(f"starts: expected one leading axis of starts in every floating-point leaf; {found}")
    return len(jax.tree.leaves(tuned)[0])


def _free(bounds, tuned, number):
    """Free coordinates of all starts; a start that is not within its bounds is named."""
    try:
        return to_free(bounds, tuned)
    except ValueError:
        for start in range(number):
            try:
                to_free(bounds, jax.tree.map(lambda x, start=start: x[start], tuned))
            except ValueError as error:
                raise ValueError(f"start {start}: {error}") from error
        raise
