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

from jdyn.tuning.parameters import scalar, strong, tunable


@dataclasses.dataclass(frozen=True)
class TuneResult:
    """The result of `tune`.

    Attributes:
        params: Parameters with the smallest loss met.
        losses: Loss of the initial parameters and after each step, shape (steps + 1,) unless it ended early.
        gradient_norms: Euclidean norm of the gradient at the same parameters.
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
    progress: bool = True,
) -> TuneResult:
    """Minimise `loss(params)` by gradient descent with an optax optimizer.

    ```
    result = jdyn.tune(loss, {"kp": 10.0, "kd": 1.0}, optimizer=optax.adam(0.1), steps=100)
    ```

    `loss` is compiled once. Where it simulates, give `simulate` the option `throw=False`: a failed simulation then
    makes the loss NaN, which ends the tuning and keeps what was found.

    Args:
        loss: Scalar function of the parameters.
        params: Any PyTree; its floating-point leaves are tuned, everything else stays. A controller or a model as a
            whole includes every mass and length: pass only the numbers that should change.
        optimizer: Any optax optimizer, those that use the value of the loss (`optax.lbfgs()`) included.
        steps: Number of updates.
        progress: Whether to show a progress bar on standard error.

    Returns:
        The best parameters met, and the history.

    Raises:
        ValueError: if nothing can be tuned, `loss` is not a scalar, or is not finite for the initial parameters.

    Warns:
        TuneWarning: if the loss or its gradient stops being finite, naming the step.
    """
    if steps < 0:
        raise ValueError(f"steps: expected a number that is not negative, got {steps}")
    tuned, fixed = tunable(params)
    evaluate = _evaluation(loss, fixed, optax.with_extra_args_support(optimizer))
    state, best, best_step, message = strong(optimizer.init(tuned)), tuned, 0, ""
    losses, norms = [], []
    with tqdm(total=steps, unit="step", desc="tune", disable=not progress) as bar:
        for step in range(steps + 1):
            value, norm, following, state = evaluate(tuned, state)
            losses.append(float(value))
            norms.append(float(norm))
            if not np.isfinite(losses[-1]):
                message = f"the loss is {losses[-1]} after {step} steps"
                break
            if losses[-1] <= losses[best_step]:
                best, best_step = tuned, step
            if not np.isfinite(norms[-1]):
                message = f"the gradient is not finite after {step} steps, where the loss is {losses[-1]:.6g}"
                break
            if step < steps:
                tuned = following
                bar.update()
                bar.set_postfix(loss=f"{losses[-1]:.4g}")
    if message:
        _report(message, len(losses), best_step)
    return TuneResult(eqx.combine(best, fixed), np.array(losses), np.array(norms), best_step, message)


def _evaluation(loss, fixed, optimizer):
    def scalar_loss(tuned):
        return scalar(loss(eqx.combine(tuned, fixed)))

    @eqx.filter_jit
    def evaluate(tuned, state):
        """Loss and gradient norm at `tuned`, and the next step of the optimizer."""
        value, gradient = eqx.filter_value_and_grad(scalar_loss)(tuned)
        updates, state = optimizer.update(
            gradient, state, tuned, value=value, grad=gradient, value_fn=scalar_loss
        )  # fmt: skip
        return value, _norm(gradient), *strong((optax.apply_updates(tuned, updates), state))

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
