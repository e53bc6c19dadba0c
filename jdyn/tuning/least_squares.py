"""Minimising a sum of squares."""

import time
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from jdyn.terminal.interruption import interruptions
from jdyn.terminal.progress import progress_bar
from jdyn.tuning.bijections import Bijection
from jdyn.tuning.bounds import to_free
from jdyn.tuning.history import History
from jdyn.tuning.parameters import tunable
from jdyn.tuning.problem import Problem
from jdyn.tuning.result import TuneResult, TuneWarning
from jdyn.tuning.steps import FEW
from jdyn.tuning.tune import CANNOT_START, check_steps

Jacobian = Literal["forward", "reverse"]

CONVERGED = "converged to the tolerances of the solver"


def tune_least_squares(
    residuals: Callable[[PyTree], PyTree[Array]],
    params: PyTree,
    *,
    solver: optx.AbstractLeastSquaresSolver | None = None,
    steps: int = 100,
    bounds: PyTree[Bijection | None] = None,
    jacobian: Jacobian | None = None,
    progress: bool | None = None,
) -> TuneResult:
    """Minimise half the sum of squares of `residuals(params)` by Levenberg-Marquardt or Gauss-Newton steps.

    ```
    def residuals(friction):
        motion = jdyn.simulate(model.with_joint("elbow", **friction), q0, v0, 2.0, saveat=times,
                               adjoint=diffrax.ForwardMode(), throw=False)
        return motion.q - measured

    result = jdyn.tune_least_squares(residuals, {"damping": 0.1, "friction": 0.1}, bounds=jdyn.tuning.Positive())
    ```

    Where residuals are small in the end, a few steps do what takes an optimizer of `tune` hundreds. It ends once a step
    changes parameters and residuals by no more than the tolerances of the solver. Ctrl-C ends it after the step that
    runs, and keeps what was found.

    >>> model, rest = jdyn.load("pendulum"), jnp.zeros(1)
    >>> def residuals(p):  # which mass takes 9.81 N m to be held level?
    ...     heavier = jdyn.vary(model, {"body:link1.mass": p["mass"]})
    ...     return jdyn.gravity_forces(heavier, jnp.array([jnp.pi / 2])) - 9.81
    >>> print(jnp.round(jdyn.tune_least_squares(residuals, {"mass": 1.0}, progress=False).params["mass"], 3))
    2.0

    Args:
        residuals: An array, or a PyTree of arrays, of any shapes; divide each by its standard deviation, so that all
            have the same unit.
        params: Any PyTree; its floating-point leaves are tuned, everything else stays.
        solver: Of optimistix, such as `optimistix.GaussNewton(rtol=1e-6, atol=1e-6)`; if left out, Levenberg-Marquardt
            with both tolerances the square root of the rounding error.
        steps: Most steps. Levenberg-Marquardt may reject one, and try a shorter one next.
        bounds: As for `tune`. The solver's steps and tolerances are those of free coordinates.
        jacobian: By `"forward"` mode, one derivative for each parameter, or by `"reverse"` mode, one for each residual;
            if left out, forward unless parameters are more than residuals. Simulations need
            `adjoint=diffrax.ForwardMode()` for it.
        progress: As for `tune`.

    Returns:
        The best parameters met, and the history; its losses are half the sums of squares.

    Raises:
        ValueError: if nothing can be tuned, residuals are no floating-point arrays or not finite for the initial
            parameters, these are not within their bounds, or forward mode finds a function that only has reverse mode.

    Warns:
        TuneWarning: if residuals or their derivatives stop being finite, or the solver fails; and on Ctrl-C.

    Source: Nocedal, Wright 2006, Numerical Optimization, chapter 10; by optimistix.
    """
    check_steps(steps)
    if jacobian not in (None, "forward", "reverse"):
        raise ValueError(f"jacobian: expected 'forward', 'reverse' or None, got {jacobian!r}")
    tuned, fixed = tunable(params)
    problem, free = Problem(residuals, fixed, bounds), to_free(bounds, tuned)
    began = time.perf_counter()
    vector, unravel = _vector(free)
    first, step = _compiled(problem, vector, unravel, solver or _usual(free), jacobian)
    compiled = time.perf_counter()
    history, best, path, message = _walk(step, first, steps, progress)
    if history.failed and len(path) == 1:
        raise ValueError(CANNOT_START.format("tune_least_squares cannot start", message))
    if message and not message.startswith(CONVERGED):
        kept = f"the result holds the best parameters met, those after {history.best_step} steps"
        warnings.warn(f"tune_least_squares stopped early: {message}; {kept}", TuneWarning, stacklevel=2)
    few = sum(leaf.size for leaf in jax.tree.leaves(free)) <= FEW
    return TuneResult(
        params=problem.params(unravel(best)),
        losses=np.array(history.losses),
        gradient_norms=np.array(history.gradient_norms),
        best_step=history.best_step,
        message=message,
        judged=np.array(history.judged),
        learning_rates=np.full(len(path), np.nan),
        path=jax.tree.map(lambda *values: np.stack(values), *path) if few else None,
        info={
            "compile_seconds": compiled - began,
            "run_seconds": time.perf_counter() - compiled,
            "device": str(jax.devices()[0].device_kind),
        },
    )


def _usual(free):
    tolerance = max(float(jnp.finfo(leaf.dtype).eps) ** 0.5 for leaf in jax.tree.leaves(free))
    return optx.LevenbergMarquardt(rtol=tolerance, atol=tolerance)


class _At(NamedTuple):
    """Place of the solver.

    Attributes:
        vector: Free coordinates.
        state: Of the solver.
        tuned: Parameters.
        loss, gradient_norm: At these coordinates.
        done: Whether the solver has converged.
        failed: Whether it cannot go on.
    """

    vector: Float[Array, " parameters"]
    state: Any
    tuned: PyTree[Array] = None
    loss: Any = None
    gradient_norm: Any = None
    done: Any = False
    failed: Any = False


def _vector(free):
    """Free coordinates as one vector, and the way back. It has the widest type, in which optimistix computes whatever
    the parameters have."""
    vector, unravel = ravel_pytree(free)
    return vector.astype(float), lambda wide: unravel(wide.astype(vector.dtype))


def _compiled(problem, vector, unravel, solver, jacobian):
    """The solver at the start, and a compiled step of it. Its first step only looks at the start."""

    def residuals(vector):
        parts = [part.ravel().astype(float) for part in _checked(problem.of(unravel(vector)))]
        return jnp.concatenate(parts)

    shape = jax.eval_shape(residuals, vector)
    mode = jacobian or ("forward" if len(vector) <= shape.size else "reverse")
    function, options, tags = _with_jacobian(residuals, mode), {}, frozenset()

    @eqx.filter_jit
    def step(vector, state):
        vector, state, _ = solver.step(function, vector, None, options, state, tags)
        done, result = solver.terminate(function, vector, None, options, state, tags)
        norm = jnp.linalg.norm(state.f_info.compute_grad())
        failed = result != optx.RESULTS.successful
        return _At(vector, state, problem.tuned(unravel(vector)), state.f_info.as_min(), norm, done, failed)

    try:
        state = eqx.filter_jit(solver.init)(function, vector, None, options, shape, None, tags)
        return _At(vector, state), step.lower(vector, state).compile()
    except TypeError as error:
        if "custom_vjp" not in str(error):
            raise
        raise ValueError(
            "jacobian: forward mode meets a function that has reverse mode only; give simulations "
            "adjoint=diffrax.ForwardMode(), or take jacobian='reverse'"
        ) from error


def _with_jacobian(residuals, mode: Jacobian):
    """The residuals, for optimistix, whose derivative is a product with a Jacobian that is computed once: optimistix
    would differentiate again for each product, and transposes it, which forward mode of a loop cannot."""
    differentiate = jax.jacfwd if mode == "forward" else jax.jacrev

    @jax.custom_jvp
    def values(vector):
        return residuals(vector)

    @values.defjvp
    def _(vectors, moves):
        J, here = differentiate(lambda vector: (residuals(vector),) * 2, has_aux=True)(*vectors)
        return here, J @ moves[0]

    return lambda vector, _: (values(vector), None)


def _checked(residuals):
    parts = [jnp.asarray(part) for part in jax.tree.leaves(residuals)]
    wrong = [part.dtype for part in parts if not jnp.issubdtype(part.dtype, jnp.floating)]
    if wrong or not parts:
        found = f"one of {wrong[0]}" if wrong else "none"
        raise ValueError(f"residuals: expected floating-point arrays, got {found}")
    return parts


def _walk(step, here, steps, progress):
    """The history, the best coordinates, parameters by step, and why it ended before the last one."""
    history, best, path, message = History(), here.vector, [], ""
    with interruptions() as interrupted, progress_bar("tune", "step", steps, progress) as bar:
        while len(path) <= steps and not message:
            here = step(here.vector, here.state)
            history.add(*map(float, (here.loss, here.gradient_norm, here.loss)))
            path.append(jax.tree.map(np.asarray, here.tuned))
            best = here.vector if history.best_step == len(path) - 1 else best
            bar.update(len(path) > 1)
            bar.set_postfix(loss=f"{history.losses[-1]:.4g}")
            message = history.message or _ending(here, len(path) - 1, interrupted)
    return history, best, path, message


def _ending(here, steps, interrupted):
    if here.failed:
        return f"the solver found no step after {steps} steps"
    if here.done:
        return f"{CONVERGED} after {steps} steps"
    return f"interrupted after {steps} steps" if interrupted else ""
