"""Minimising a loss by gradient."""

import dataclasses
import warnings
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree
from tqdm import tqdm

from jdyn.tuning.bijections import Bijection
from jdyn.tuning.bounds import from_free, to_free
from jdyn.tuning.parameters import scalar, strong, tunable


@dataclasses.dataclass(frozen=True)
class TuneResult:
    """The result of `tune`.

    Attributes:
        params: Parameters with the smallest loss met.
        losses: Loss of the initial parameters and after each step, shape (steps + 1,) unless it ended early.
        gradient_norms: Euclidean norm of the gradient at the same parameters, with respect to free coordinates where
            parameters have bounds.
        best_step: Index into `losses` of `params`.
        message: Why it ended before the last step; empty if it did not.
    """

    params: PyTree
    losses: Float[np.ndarray, " evaluations"]
    gradient_norms: Float[np.ndarray, " evaluations"]
    best_step: int
    message: str


class TuneWarning(UserWarning):
    """Tuning ended before its last step."""


def tune(
    loss: Callable[[PyTree], Float[Array, ""]],
    params: PyTree,
    *,
    optimizer: optax.GradientTransformation,
    steps: int,
    bounds: PyTree[Bijection | None] = None,
    progress: bool | None = None,
) -> TuneResult:
    """Minimise `loss(params)` by gradient descent with an optax optimizer.

    ```
    result = jdyn.tune(loss, {"kp": 10.0, "kd": 1.0}, optimizer=optax.adam(0.1), steps=100)
    ```

    With `bounds`, the optimizer walks in free coordinates, and cannot leave them; a step of 0.1 in the logarithm of a
    gain is 10 % of it:

    ```
    bounds = {"kp": jdyn.Positive(), "kd": jdyn.Interval(0.1, 50.0)}
    ```

    `loss` is compiled once. Where it simulates, give `simulate` the option `throw=False`: a failed simulation then
    makes the loss NaN, which ends the tuning and keeps what was found.

    Args:
        loss: Scalar function of the parameters.
        params: Any PyTree; its floating-point leaves are tuned, everything else stays. A controller or a model as a
            whole includes every mass and length: pass only the numbers that should change.
        optimizer: Any optax optimizer, those that use the value of the loss (`optax.lbfgs()`) included.
        steps: Number of updates.
        bounds: A PyTree prefix of `params`, with `jdyn.Positive`, `jdyn.Interval`, `jdyn.Simplex` or
            `jdyn.PhysicalInertia` for each part that has bounds, and None for others.
        progress: Whether to show a progress bar on standard error; if left out, where that is a terminal.

    Returns:
        The best parameters met, and the history.

    Raises:
        ValueError: if nothing can be tuned, `loss` is not a scalar, or is not finite for the initial parameters, or if
            these are not within their bounds.

    Warns:
        TuneWarning: if the loss or its gradient stops being finite, naming the step.
    """
    if steps < 0:
        raise ValueError(f"steps: expected a number that is not negative, got {steps}")
    tuned, fixed = tunable(params)
    free = to_free(bounds, tuned)

    def in_bounds(free):
        return eqx.combine(from_free(bounds, free), fixed)

    evaluate = _evaluation(lambda free: scalar(loss(in_bounds(free))), optax.with_extra_args_support(optimizer))
    state, best, best_step, message = strong(optimizer.init(free)), free, 0, ""
    losses, norms = [], []
    with tqdm(total=steps, unit="step", desc="tune", disable=None if progress is None else not progress) as bar:
        for step in range(steps + 1):
            value, norm, following, state = evaluate(free, state)
            losses.append(float(value))
            norms.append(float(norm))
            if not np.isfinite(losses[-1]):
                message = f"the loss is {losses[-1]} after {step} steps"
                break
            if losses[-1] <= losses[best_step]:
                best, best_step = free, step
            if not np.isfinite(norms[-1]):
                message = f"the gradient is not finite after {step} steps, where the loss is {losses[-1]:.6g}"
                break
            if step < steps:
                free = following
                bar.update()
                bar.set_postfix(loss=f"{losses[-1]:.4g}")
    if message:
        _report(message, len(losses), best_step)
    return TuneResult(in_bounds(best), np.array(losses), np.array(norms), best_step, message)


def _evaluation(loss, optimizer):
    @eqx.filter_jit
    def evaluate(free, state):
        """Loss and gradient norm at `free`, and the next step of the optimizer."""
        value, gradient = eqx.filter_value_and_grad(loss)(free)
        updates, state = optimizer.update(gradient, state, free, value=value, grad=gradient, value_fn=loss)
        return value, _norm(gradient), *strong((optax.apply_updates(free, updates), state))

    return evaluate


def _norm(tree):
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def _report(message, evaluations, best_step):
    if evaluations == 1:
        raise ValueError(
            f"tune cannot start: {message}; start where the loss and its gradient are finite. jdyn.gradient_health "
            "says where they stop being so; a shorter horizon or float64 (jax_enable_x64) often helps"
        )
    text = f"tune stopped early: {message}; the result holds the best parameters met, those after {best_step} steps"
    warnings.warn(text, TuneWarning, stacklevel=3)
