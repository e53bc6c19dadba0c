"""Minimising a loss by gradient."""

import os
import warnings
from collections.abc import Callable

import optax
from jaxtyping import Array, Float, PyTree

from jdyn.tuning.bijections import Bijection
from jdyn.tuning.bounds import to_free
from jdyn.tuning.descent import descend, outcome
from jdyn.tuning.history import Patience
from jdyn.tuning.minibatches import Minibatches, minibatches
from jdyn.tuning.parameters import tunable
from jdyn.tuning.problem import Problem
from jdyn.tuning.result import TuneResult, TuneWarning


def tune(
    loss: Callable[..., Float[Array, ""]],
    params: PyTree,
    *,
    optimizer: optax.GradientTransformation,
    steps: int,
    bounds: PyTree[Bijection | None] = None,
    data: PyTree[Array] | Minibatches = None,
    patience: Patience | None = None,
    check: bool = True,
    checkpoint: str | os.PathLike | None = None,
    progress: bool | None = None,
) -> TuneResult:
    """Minimise `loss(params)` by gradient descent with an optax optimizer.

    ```
    result = jdyn.tune(loss, {"kp": 10.0, "kd": 1.0}, optimizer=optax.adam(0.1), steps=100)
    ```

    With `bounds`, the optimizer walks in free coordinates, and cannot leave them; a step of 0.1 in the logarithm of a
    gain is 10 % of it. With `data`, each step sees a batch of its rows:

    ```
    bounds = {"kp": jdyn.tuning.Positive(), "kd": jdyn.tuning.Interval(0.1, 50.0)}
    result = jdyn.tune(loss, gains, optimizer=optax.adam(0.1), steps=500, bounds=bounds,
                       data=jdyn.tuning.Minibatches(initial_states, 16))  # loss(gains, rows)
    ```

    With a `checkpoint`, the same call goes on from where it was interrupted, and finds the same to the last bit. So
    does one with more `steps`; with minibatches, where those before end an epoch. Ctrl-C ends the tuning after the step
    that runs, and keeps what was found.

    `loss` is compiled once. Where it simulates, give `simulate` the option `throw=False`: a failed simulation then
    makes the loss NaN, which ends the tuning and keeps what was found.

    >>> import optax
    >>> model = jdyn.load("pendulum")
    >>> def loss(p):  # the torque that holds the rod level
    ...     return jnp.sum((jdyn.forward_dynamics(model, jnp.array([jnp.pi / 2]), jnp.zeros(1), p["tau"])) ** 2)
    >>> found = jdyn.tune(loss, {"tau": jnp.zeros(1)}, optimizer=optax.adam(0.3), steps=100, progress=False)
    >>> print(found.params["tau"].round(1))
    [4.9]

    Args:
        loss: Scalar function of the parameters, or of the parameters and rows of data.
        params: Any PyTree; its floating-point leaves are tuned, everything else stays. A controller or a model as a
            whole includes every mass and length: pass only the numbers that should change.
        optimizer: Any optax optimizer, those that use the value of the loss (`optax.lbfgs()`) included. Chains have
            schedules, clipping and so on: `optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))`.
        steps: Number of updates.
        bounds: A PyTree prefix of `params`, with `jdyn.tuning.Positive`, `jdyn.tuning.Interval`, `jdyn.tuning.Simplex`
            or `jdyn.tuning.PhysicalInertia` for each part that has bounds, and None for others.
        data: A PyTree of arrays with one leading axis, of rows, which every step sees, or `jdyn.tuning.Minibatches` of
            them; None for a loss of the parameters alone. The best parameters on minibatches are those with the
            smallest loss of all rows, which is computed at the start of each epoch and in the end.
        patience: When it ends because the loss does not fall; `steps` alone end it if left out.
        check: Whether to compare the gradient with differences of the loss along a random direction, at the first step
            and where the loss stalls. It takes as long as eight steps, and compiles nothing.
        checkpoint: File to keep the state in, and to go on from if it exists. It is replaced as a whole, as often as
            takes a twentieth of the time, and in the end.
        progress: Whether to show a progress bar on standard error; if left out, where that is a terminal.

    Returns:
        The best parameters met, and the history.

    Raises:
        ValueError: if nothing can be tuned, `loss` is not a scalar, or is not finite for the initial parameters, if
            these are not within their bounds, or the checkpoint is that of another tuning.
        OSError: if the checkpoint cannot be read or written.

    Warns:
        TuneWarning: if the loss or its gradient stops being finite, naming the step; on Ctrl-C; and if the gradient
            disagrees with differences.
    """
    check_steps(steps)
    tuned, fixed = tunable(params)
    problem = Problem(loss, fixed, bounds)
    found = descend(
        problem, optimizer, to_free(bounds, tuned), starts=None, steps=steps,
        batches=minibatches(data), patience=patience, check=check, checkpoint=checkpoint, progress=progress,
    )  # fmt: skip
    (history,), result = found.histories, outcome(problem, found, None)
    if history.failed and len(history.losses) == 1:
        raise ValueError(CANNOT_START.format("tune cannot start", result.message))
    if history.failed or found.interrupted:
        kept = f"the result holds the best parameters met, those after {result.best_step} steps"
        warnings.warn(f"tune stopped early: {result.message}; {kept}", TuneWarning, stacklevel=2)
    return result


CANNOT_START = (
    "{}: {}; start where the loss and its gradient are finite. jdyn.gradient_health says where they stop being so; a "
    "shorter horizon or float64 (jax_enable_x64) often helps"
)


def check_steps(steps: int) -> None:
    """Raise a ValueError if there cannot be so many."""
    if steps < 0:
        raise ValueError(f"steps: expected a number that is not negative, got {steps}")
