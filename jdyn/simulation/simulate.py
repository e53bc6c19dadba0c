"""Simulation: the front door."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from jdyn.dynamics import Method
from jdyn.model import Model, checked
from jdyn.simulation.guard import GuardState, guarded
from jdyn.simulation.projection import Projected
from jdyn.simulation.result import MESSAGES, Result, raise_on_failure
from jdyn.simulation.saving import clean, normalized, rows_to_save
from jdyn.simulation.trajectory import Trajectory
from jdyn.simulation.vector_field import Control, VectorField, has_quaternions


def simulate(
    model: Model,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    t1: ArrayLike,
    *,
    controller: Control | None = None,
    method: Method | None = None,
    solver: diffrax.AbstractSolver | None = None,
    stepsize_controller: diffrax.AbstractStepSizeController | None = None,
    saveat: diffrax.SaveAt | Float[Array, " times"] | None = None,
    adjoint: diffrax.AbstractAdjoint | None = None,
    throw: bool = True,
    t0: ArrayLike = 0.0,
    dt0: ArrayLike | None = None,
    max_steps: int = 16384,
) -> Trajectory:
    """The motion of a mechanism from a state at `t0` to `t1`.

    ```
    trajectory = jdyn.simulate(model, q0, v0, 2.0, controller=jdyn.PD(model, target, kp=100.0, kd=20.0))
    ```

    Works under `jit`, `vmap` and `grad`. The whole solve runs in the dtype of the model and the state. For
    forward-mode derivatives pass `adjoint=diffrax.ForwardMode()`. A controller that is an `equinox.Module` is
    compiled once a structure; a new lambda is compiled anew.

    Args:
        model: The mechanism.
        q0: Configuration at `t0` [rad or m]; quaternions are scaled to unit length.
        v0: Velocity at `t0` [rad/s or m/s].
        t1: End [s].
        controller: `controller(t, q, v) -> tau`; no torque if left out.
        method: Forward-dynamics method; `jdyn.ABA()` if left out.
        solver: A diffrax solver for ordinary differential equations; `Tsit5()` if left out. On models with
            quaternions each step ends with their projection onto the unit sphere.
        stepsize_controller: A diffrax step controller; if left out, `PIDController(rtol=1e-6, atol=1e-8)`, and
            `rtol=1e-5, atol=1e-6` in float32, where rounding leaves nothing below.
        saveat: Times of the rows [s], or a `diffrax.SaveAt` of `t0`, `t1`, `ts` or `steps`; 101 evenly spaced times
            from `t0` to `t1` if left out.
        adjoint: How to differentiate; `diffrax.RecursiveCheckpointAdjoint()` if left out.
        throw: Whether failure raises. Otherwise it leaves its code in `result` and NaN in the rows not reached.
        t0: Start [s].
        dt0: First step [s]: required by `diffrax.ConstantStepSize()`, 0.01 s for step controllers that adapt it.
        max_steps: Most steps to try.

    Returns:
        The trajectory.

    Raises:
        ValueError: at trace time, if a size disagrees with `model` or `saveat` does not give rows.
        SimulationError: if `throw` and the end is not reached. Compiled into a larger program, the error is a
            RuntimeError with the same explanation.

    Source: Tsitouras, Runge-Kutta pairs of order 5(4), Computers & Mathematics with Applications 2011.
    """
    q0, v0 = checked(model, q=q0, v=v0)
    dtype = jnp.promote_types(model.dtype, jnp.promote_types(q0.dtype, v0.dtype))
    model = model.astype(dtype)
    q0, v0, t0, t1 = (jnp.asarray(x, dtype) for x in (q0, v0, t0, t1))
    if t0.shape or t1.shape:
        raise ValueError(f"t0 and t1: expected scalars, got shapes {t0.shape} and {t1.shape}")
    trajectory = _simulate(
        VectorField(model, controller, method),
        (q0, v0),
        t0,
        t1,
        None if dt0 is None else jnp.asarray(dt0, dtype),
        diffrax.Tsit5() if solver is None else solver,
        _default_controller(dtype) if stepsize_controller is None else stepsize_controller,
        rows_to_save(saveat, t0, t1),
        diffrax.RecursiveCheckpointAdjoint() if adjoint is None else adjoint,
        max_steps,
    )
    if not throw:
        return trajectory
    progress = (trajectory.stats["t_reached"] - t0) / (t1 - t0)
    return raise_on_failure(trajectory, trajectory.result, progress, lambda: _failure(model, trajectory, t1))


def _default_controller(dtype):
    if jnp.finfo(dtype).bits < 64:
        return diffrax.PIDController(rtol=1e-5, atol=1e-6)
    return diffrax.PIDController(rtol=1e-6, atol=1e-8)


@eqx.filter_jit
def _simulate(field, state, t0, t1, dt0, solver, stepsize_controller, rows, adjoint, max_steps) -> Trajectory:
    model, (q0, v0) = field.model, state
    counted = solver
    if has_quaternions(model):
        state = model.normalize(q0), v0
        solver, rows = Projected(solver, model), normalized(rows, model)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        solver,
        t0,
        t1,
        dt0,
        state,
        saveat=diffrax.SaveAt(subs=rows, controller_state=True),
        stepsize_controller=guarded(stepsize_controller),
        adjoint=adjoint,
        max_steps=max_steps,
        throw=False,
    )
    guard: GuardState = solution.controller_state  # type: ignore[assignment]
    ts, q, v = clean(rows, solution, t0, t1)
    forwards = t0 < t1
    stats = {
        "t_reached": jnp.where(forwards, jnp.minimum(guard.reached, t1), jnp.maximum(-guard.reached, t1)),
        "accepted_steps": solution.stats["num_accepted_steps"],
        "rejected_steps": solution.stats["num_rejected_steps"],
        "dynamics_calls": _dynamics_calls(counted, solution.stats["num_steps"], guard.first_stages),
    }
    result = jnp.where(jnp.isfinite(t0) & jnp.isfinite(t1), _result(solution.result, guard), Result.nonfinite)
    return Trajectory(ts, q, v, result, jax.lax.stop_gradient(stats))


def _result(result: diffrax.RESULTS, guard: GuardState):
    codes = diffrax.RESULTS
    code = jnp.array(Result.solver_failed, jnp.int32)
    for theirs, ours in (
        (codes.successful, Result.success),
        (codes.max_steps_reached, Result.max_steps),
        (codes.dt_min_reached, Result.step_too_small),
    ):
        code = jnp.where(result == theirs, ours, code)
    return jnp.where(guard.nonfinite, Result.nonfinite, code)


def _dynamics_calls(solver, steps, first_stages):
    """Exact for explicit Runge-Kutta methods: a first-same-as-last step takes its first stage from the one before."""
    if not isinstance(solver, diffrax.AbstractERK) or isinstance(solver, diffrax.AbstractWrappedSolver):
        return None
    tableau: diffrax.ButcherTableau = solver.tableau  # type: ignore[assignment]
    if not tableau.fsal:
        return steps * tableau.num_stages
    return steps * (tableau.num_stages - 1) + first_stages


def _failure(model: Model, trajectory: Trajectory, t1) -> str:
    stats, code = trajectory.stats, Result(int(trajectory.result))
    return (
        f"simulation of {model.name!r} stopped at t = {float(stats['t_reached']):.6g} s of {float(t1):.6g} s "
        f"({int(stats['accepted_steps'])} steps accepted, {int(stats['rejected_steps'])} rejected): {MESSAGES[code]}. "
        "With throw=False a failed simulation returns NaN and its result code instead of raising."
    )
