"""Simulation: the front door."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, overload

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.actuators import Actuator
from jdyn.array import where
from jdyn.constraints import blocked, constraint_distance
from jdyn.contact import Contact, ContactWarning, distances
from jdyn.control import Driven
from jdyn.control.controller import DynamicController
from jdyn.dynamics import Method, resolved
from jdyn.elements import ForceElement
from jdyn.execution.compiled import precise, uncollected
from jdyn.execution.memory_maps import memory_maps
from jdyn.model import Constraint, Model, checked
from jdyn.model.values import impossible, possible
from jdyn.sensors import Sensor
from jdyn.simulation.adjoint import solve, solve_forwards
from jdyn.simulation.events import Event, event_table, watched
from jdyn.simulation.joint_limits import CompliantLimits, ImpactLimits
from jdyn.simulation.loop import Equations, Problem
from jdyn.simulation.manifold import on_manifold
from jdyn.simulation.parts import Known, Unknown, has_functions
from jdyn.simulation.prepared import default_controller, judged_contact, prepared, suitable_solver, with_tolerances
from jdyn.simulation.result import MESSAGES, Result, raise_on_failure
from jdyn.simulation.sensor_memory import without_memory
from jdyn.simulation.state import Clock, State, controller_memory
from jdyn.simulation.system import System
from jdyn.simulation.trajectory import Events, Trajectory
from jdyn.terminal.messages import enumerated, short
from jdyn.terminal.messages import unknown as unknown_name

DEFAULT_SAMPLES = 101
_SAVE_STATE = diffrax.SubSaveAt(t1=True).fn
# A start may miss its constraints by this power of rounding [m or rad, and per second].
ON_CONSTRAINTS = 0.375
# Overlaps of shapes are warned of from these shares of the least size of a shape on: at the start, and in the motion.
DEEP_START, DEEP_MOTION = 0.1, 0.5

Control = Callable[[Scalar, Float[Array, " nq"], Float[Array, " nv"]], Float[Array, " nv"]]


class Steps(NamedTuple):
    """Lengths and numbers of steps, as `simulate` describes them."""

    stepsize_controller: Any = None
    dt0: Any = None
    max_steps: int = 16384
    max_events: int = 64
    jump_times: Any = ()


class PartOptions(TypedDict, total=False):
    """Parts of a `System` beside its model."""

    controller: Control | DynamicController | None
    actuators: Sequence[Actuator]
    contact: Contact | None
    elements: Sequence[ForceElement]
    constraints: Sequence[Constraint]
    joint_limits: CompliantLimits | ImpactLimits | None
    sensors: Sequence[Sensor]
    method: Method | Literal["auto"] | None


class StepOptions(TypedDict, total=False):
    """Options of `Steps`."""

    stepsize_controller: diffrax.AbstractStepSizeController | None
    dt0: ArrayLike | None
    max_steps: int
    max_events: int
    jump_times: Sequence[float] | Float[ArrayLike, " jumps"]


class AllOptions(PartOptions, StepOptions, total=False):
    """Both."""


@overload
def simulate(
    system: System,
    state: State,
    t1: ArrayLike,
    *,
    t0: ArrayLike = 0.0,
    events: Sequence[Event] = (),
    solver: diffrax.AbstractSolver | None = None,
    saveat: diffrax.SaveAt | Float[Array, " times"] | None = None,
    adjoint: diffrax.ForwardMode | None = None,
    throw: bool = True,
    **more: Unpack[StepOptions],
) -> Trajectory: ...


@overload
def simulate(
    model: Model,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    t1: ArrayLike,
    *,
    t0: ArrayLike = 0.0,
    events: Sequence[Event] = (),
    solver: diffrax.AbstractSolver | None = None,
    saveat: diffrax.SaveAt | Float[Array, " times"] | None = None,
    adjoint: diffrax.ForwardMode | None = None,
    throw: bool = True,
    **more: Unpack[AllOptions],
) -> Trajectory: ...


def simulate(
    *start: Any,
    t0: ArrayLike = 0.0,
    events: Sequence[Event] = (),
    solver: diffrax.AbstractSolver | None = None,
    saveat: diffrax.SaveAt | Float[Array, " times"] | None = None,
    adjoint: diffrax.ForwardMode | None = None,
    throw: bool = True,
    **more: Any,
) -> Trajectory:
    """Simulate the motion of a system from a state at `t0` to `t1`.

    ```
    system = jdyn.System(model, controller=jdyn.PD(model, target, kp=100.0, kd=20.0))
    trajectory = jdyn.simulate(system, system.state(q0, v0), 2.0)
    ```

    `jdyn.simulate(model, q0, v0, 2.0, controller=...)` is the short form of these two lines.

    Works under `jit`, `vmap` and `grad`. Under `vmap` no lane waits for another: finished lanes make room for the next
    ones. The whole solve runs in the dtype of the model and the state. A controller that is an `equinox.Module` is
    compiled once for each structure, a new lambda every time.

    >>> model = jdyn.load("pendulum")
    >>> motion = jdyn.simulate(model, jnp.array([1.0]), jnp.zeros(1), 1.0)
    >>> print(motion.q.shape, motion.q[-1].round(3))
    (101, 1) [-0.902]

    Args:
        start: `system`, what is simulated, `state`, that at `t0`, see `System.state`, and `t1`, the end [s]; in the
            short form `model`, `q0`, `v0` and `t1`. The state has to meet constraints, see `jdyn.assemble`; the end of
            every step and rows in between are moved to the nearest state that does. A controller starts anew where the
            state has no part of it.
        t0: Start [s].
        events: Where the state jumps, or the simulation ends, see `jdyn.Event`. Impacts of joint limits come after
            them; their entries are all upper ends, then all lower ends, of joints whose coordinates are single numbers.
        solver: `jdyn.solvers.ConvexEuler()` with convex contact, else `jdyn.solvers.Automatic()` if left out: an
            explicit method of order 6 (8 for relative tolerances of 3e-7 and less), and `jdyn.solvers.ROSJ43` while
            gains, dampers or friction on light links would hold the step, each lane of a batch as it needs;
            `stats["implicit_steps"]` says how often. Or a Runge-Kutta method of diffrax, which then works in local
            coordinates, see `jdyn.solvers.OnManifold`, or one of jdyn's own: `jdyn.solvers.Rodas5P()` for stiffness
            that couples joints; `jdyn.solvers.BulirschStoer()`, whose dense output has its full order, for small
            tolerances.
        saveat: Times of the rows [s], or a `diffrax.SaveAt` of `t0`, `t1`, `ts` or `steps`; 101 evenly spaced times
            from `t0` to `t1` if left out.
        adjoint: `diffrax.ForwardMode()` for forward-mode derivatives. If left out, derivatives are those of reverse
            mode: the accepted steps are recorded, and replayed from the last to the first. If a coordinate rests for a
            twentieth of the time, a simulation that is differentiated, in either mode, begins again, with steps of
            `PIDController` that are short enough for its derivatives; `stats` counts these. Steps of
            `jdyn.solvers.ConvexEuler` stay as they are.
        throw: Whether failure raises. Otherwise it leaves its code in `result` and NaN in the rows not reached.
        stepsize_controller: A diffrax step controller; if left out, `PIDController(rtol=1e-6, atol=1e-8)`, and
            `rtol=1e-5, atol=1e-6` in float32, since rounding hides smaller errors, or with contact
            `rtol=1e-4, atol=1e-5`. With `jdyn.solvers.ConvexEuler`, which at small tolerances follows all vibrations of
            stiff shapes, it is `rtol=1e-4, atol=1e-5`, `atol=1e-4` in float32, and `safety=0.8, factormax=2`, which
            suit it at other tolerances as well.
        dt0: Size of the first step [s], whatever its sign: required by `diffrax.ConstantStepSize()`, 0.01 s for step
            controllers that adapt it.
        max_steps: Most steps to try.
        max_events: Most events to let happen.
        jump_times: Times at which forces jump as functions of time [s], shape (jumps,), in any order; NaN and infinity
            are none. Steps end there exactly, and see the forces of their own side alone, so that no pulse is missed,
            however short. They may be traced and differentiated by; a row at a jump has the derivatives of the side
            before. Ticks of controllers are known without this.
        more: In the short form the parts of the system as well: `controller`, `actuators`, `contact`, `elements`,
            `constraints`, `joint_limits`, `sensors` and `method`, which may be `"auto"`: what `jdyn.diagnose`
            recommends.

    Returns:
        The trajectory.

    Raises:
        ValueError: at trace time, if a size disagrees with the model, `saveat` does not give rows, `jump_times` are not
            an array of times, an option is something else, the controller takes other arguments or returns another
            shape, or a model of which no two collision shapes may touch is to touch something.
        SimulationError: if `throw` and the end is not reached. Compiled into a larger program, the error is a
            RuntimeError with the same explanation.
    """
    system, state, t1, steps = beginning("simulate", start, more)
    steps = Steps(**steps)
    q0, v0 = checked(system.model, q=state.q, v=state.v)
    dtype = jnp.result_type(system.model.dtype, q0.dtype, v0.dtype)
    whole = system = system.astype(dtype)
    shapes = system.touching()
    system = system.but(model=system.model.without_shapes(), sensors=(), configurations={})
    q0, v0, t0, t1 = (jnp.asarray(x, dtype) for x in (q0, v0, t0, t1))
    state = dataclasses.replace(without_memory(state), q=system.model.normalize(q0), v=v0)
    if not (adjoint is None or isinstance(adjoint, diffrax.ForwardMode)):
        raise ValueError(
            f"adjoint: simulate differentiates by record and replay, or forwards with diffrax.ForwardMode(); "
            f"it does not take a {type(adjoint).__name__}"
        )
    if t0.shape or t1.shape:
        raise ValueError(f"t0 and t1: expected scalars, got shapes {t0.shape} and {t1.shape}")
    backwards = not any(isinstance(t, Tracer) for t in (t0, t1)) and t1 < t0
    solver = suitable_solver(solver, system, f"expected t1 after t0 = {t0}, got {t1}" if backwards else None)
    by_default = default_controller(dtype, solver, touches=shapes is not None)
    steps = _checked_steps(steps, by_default, dtype)
    contact = judged_contact(system.contact, steps.stepsize_controller, by_default)
    system, whole = system.but(contact=contact), whole.but(contact=contact)
    trajectory, functions = _simulate(
        system,
        shapes,
        state,
        t0,
        t1,
        rows_to_save(saveat, t0, t1),
        with_tolerances(solver, steps.stepsize_controller, by_default),
        adjoint,
        steps,
        tuple(events),
    )
    controller = Unknown() if has_functions(system.controller) else system.controller
    known = whole.but(controller=controller, configurations={}, **functions)
    trajectory = dataclasses.replace(trajectory, known=Known.of(known))
    if system.contact is not None and shapes is not None and not system.contact.reacts:
        _warn_of_overlaps(system.model.name, trajectory.stats)
    if not throw:
        return trajectory
    progress = (trajectory.stats["t_reached"] - t0) / (t1 - t0)
    constant = steps.dt0 if isinstance(steps.stepsize_controller, diffrax.ConstantStepSize) else None
    return raise_on_failure(
        trajectory, trajectory.result, progress, lambda: _failure(whole, q0, constant, trajectory, t1)
    )


_SHARED = ("t0", "events", "solver", "saveat", "adjoint", "throw", *Steps._fields)
WHOLE, SHORT = ("system", "state", "t1"), ("model", "q0", "v0", "t1")


def named(
    function: str,
    start: Sequence[Any],
    more: dict[str, Any],
    whole: tuple[str, ...] = WHOLE,
    short: tuple[str, ...] = SHORT,
) -> dict[str, Any]:
    """Arguments with which a function of a system begins, by name, in its form `whole` or in the `short` one of a
    model; they are taken out of `more`."""
    names = whole if "system" in more or (bool(start) and isinstance(start[0], System)) else short
    if names is short and any(isinstance(x, State) for x in (*start, *more.values())):
        form = ", ".join("jdyn.System(model)" if name == "system" else name for name in whole)
        raise TypeError(f"{function}: a state goes with a system, {function}({form})")
    if len(start) > len(names):
        raise TypeError(f"{function}: expected {', '.join(names)}, got {len(start)} arguments without names")
    given = dict(zip(names, start, strict=False))
    if twice := [name for name in given if name in more]:
        raise TypeError(f"{function}: got {twice[0]} twice")
    given |= {name: more.pop(name) for name in names if name in more}
    if missing := [name for name in names if name not in given]:
        raise TypeError(f"{function}: expected {', '.join(names)}, got no {' and no '.join(missing)}")
    return given


def checked_start(system: Any, state: Any) -> tuple[System, State]:
    """Check that arguments are a system and a state.

    Raises:
        ValueError: if they are something else.
    """
    if not isinstance(system, System):
        raise ValueError(f"system: expected a jdyn.System, got a {type(system).__name__}")
    if not isinstance(state, State):
        raise ValueError(f"state: expected one of the system, as jdyn.System.state gives it, got {short(state)}")
    return system, state


def beginning(function: str, start: Sequence[Any], more: dict[str, Any]) -> tuple[System, State, Any, dict[str, Any]]:
    """System, state, end, and options for steps."""
    given = named(function, start, more)
    parts = tuple(PartOptions.__annotations__)
    if "system" in given:
        if asked := [name for name in parts if name in more]:
            raise TypeError(f"{function}: {asked[0]} is a part of the system, jdyn.System(model, {asked[0]}=...)")
        system, state = checked_start(given["system"], given["state"])
    else:
        own = {name: more.pop(name) for name in parts if name in more}
        if "method" in own:
            own["method"] = resolved(own["method"], given["model"])
        system, state = System(given["model"], **own), State(given["q0"], given["v0"])
    if unknown := sorted(more.keys() - set(Steps._fields)):
        known = (*_SHARED, *(() if "system" in given else parts))
        raise TypeError(f"{function}: {unknown_name('option', unknown[0], known)}")
    return system, state, given["t1"], more


def _checked_steps(steps, by_default, dtype):
    """Options of steps as arrays of a type, with the step controller to take by default."""
    controller = steps.stepsize_controller
    if not isinstance(controller, diffrax.AbstractStepSizeController | None):
        raise ValueError(
            "stepsize_controller: expected one of diffrax, such as diffrax.PIDController(rtol=1e-6, atol=1e-8), got "
            f"{controller!r}"
        )
    jump_times = jnp.asarray(steps.jump_times, dtype)
    if jump_times.ndim != 1:
        raise ValueError(f"jump_times: expected an array of shape (jumps,), got shape {jump_times.shape}")
    return steps._replace(
        stepsize_controller=by_default if controller is None else controller,
        dt0=None if steps.dt0 is None else jnp.abs(jnp.asarray(steps.dt0, dtype)),
        jump_times=jump_times,
    )


def _warn_of_overlaps(name, stats):
    """Warn of overlaps where numbers are known: traced ones cannot be judged."""
    if any(isinstance(x, Tracer) for x in stats.values()):
        return

    def warn(when, during, then):
        depth, share = (float(stats[f"{when}_depth{by}"]) for by in ("", "_by_size"))
        warnings.warn(
            f"{name!r}: shapes overlap by {depth:.3g} m {during}, {100 * share:.2g} % of the least size of one of "
            f"them, and {then}",
            ContactWarning,
            stacklevel=4,
        )

    if stats["start_depth_by_size"] > DEEP_START:
        warn("start", "at the start", "springs will throw them apart")
    elif stats["greatest_depth_by_size"] > DEEP_MOTION:
        warn("greatest", "in this motion", "may pass through each other: are they stiff enough for what they bear?")


@uncollected
@eqx.filter_jit
@precise
def _simulate(system: System, shapes, start: State, t0, t1, rows, solver, adjoint, steps: Steps, events):
    memory_maps.look()
    field, y0, own = prepared(system, shapes, solver, t0, start)
    events = (*events, *own)
    watches = tuple(watched(event, t0, y0) for event in events)
    direction = jnp.where(t0 <= t1, 1, -1).astype(t0.dtype)
    on_constraints = _starts_on_constraints(field, t0, y0)
    problem = Problem(
        equations=Equations(field, Clock(direction)),
        y0=y0,
        start_result=_start(field, shapes, t0, y0, on_constraints),
        on_constraints=on_constraints,
        t0=direction * t0,
        t1=direction * t1,
        row_times=direction * rows.times,
        jump_times=direction * steps.jump_times,
        dt0=steps.dt0,
        solver=on_manifold(solver, field.model),
        stepsize_controller=steps.stepsize_controller.wrap(direction),
        events=watches,
        max_steps=steps.max_steps,
        max_events=steps.max_events,
        steps_per_row=rows.steps_per_row,
        row_at_end=rows.row_at_end,
        rows_within_steps=rows.rows_within_steps,
    )
    run = solve(problem) if adjoint is None else solve_forwards(problem)
    stats = {
        "t_reached": direction * run.motion.instant.t,
        "accepted_steps": run.accepted,
        "rejected_steps": run.rejected,
        "dynamics_calls": None if run.work is None else run.work.evaluations,
        "jacobians": None if run.work is None else run.work.jacobians,
        "implicit_steps": None if run.work is None else run.work.implicit,
    }
    if rows.steps_per_row:
        stats |= {
            "row_tries": run.rows.tries,
            "row_dynamics_calls": run.rows.evaluations,
            "row_implicit_steps": run.rows.implicit,
        }
    for when, overlap in (("start", run.start_overlap), ("greatest", run.most_overlap)):
        if overlap is not None:
            stats |= {f"{when}_depth": overlap.depth, f"{when}_depth_by_size": overlap.share}
    ts = direction * run.rows.ts if rows.steps_per_row else rows.times
    ys, log = run.rows.ys, run.log
    if rows.rows_within_steps and field.constraints:
        ys = _rows_on_constraints(field, y0, ts, ys)
    which, entry = (jnp.append(jnp.asarray(column, jnp.int32), -1)[log.which] for column in event_table(watches))
    happened = Events(direction * log.ts, which, entry, log.ys.q, log.ys.v)
    stats = jax.lax.stop_gradient(stats)
    commands = None
    if has_functions(system.controller):
        actor = field.controller
        outputs = actor.commands if isinstance(actor, Driven) else actor.force
        commands = jax.vmap(outputs)(ts, ys.q, ys.v, controller_memory(ys))
    trajectory = Trajectory(ts, ys.q, ys.v, ys.parts, happened, run.result, stats, run.rows.forces, commands)
    closed = {"constraints": field.constraints, "elements": field.elements.each}
    return trajectory, {name: part for name, part in closed.items() if has_functions(getattr(system, name))}


def _start(field, shapes, t0, y0, on_constraints):
    """Success, or the reason why no simulation begins with these numbers."""
    result = jnp.asarray(Result.success)
    if on_constraints is not None:
        # At rest there is no velocity along which the motion goes on.
        singular = blocked(field.model, field.constraints, t0, y0.q, y0.v, along=jnp.any(y0.v != 0))
        result = jnp.where(on_constraints & singular, Result.singular, result)
    if field.contact is not None and field.contact.reacts:
        result = jnp.where(field.contact.overlaps(field.model, y0.q), Result.overlap, result)
    result = jnp.where(jnp.all(jnp.isfinite(y0.q)), result, Result.bad_configuration)
    return jnp.where(possible(field.model, shapes), result, Result.bad_model).astype(jnp.int32)


def _starts_on_constraints(field, t0, y0):
    """Tell whether the start nearly meets the constraints; None where there are none."""
    if not field.constraints:
        return None
    missed = constraint_distance(field.model, field.constraints, y0.q, y0.v, t=t0)
    return jnp.maximum(*missed) <= jnp.finfo(t0.dtype).eps ** ON_CONSTRAINTS


def _rows_on_constraints(field, y0, ts, ys):
    """Project rows of dense output within steps onto the constraints, unless they were not reached or the projection
    does not converge. Derivatives remain those of dense output, which are as near to those of the motion."""
    arrays, rest = eqx.partition((field, y0), eqx.is_array)
    field, y0 = eqx.combine(jax.lax.stop_gradient(arrays), rest)

    def projected(row):
        t, y = row
        reached = jnp.all(jnp.isfinite(jnp.append(y.q, y.v)))
        on_constraints, projection, _ = field.projected(t, where(reached, y, y0))
        return where(reached & projection.converged, on_constraints, y)

    fixed = jax.lax.stop_gradient((ts, ys))
    return jax.tree.map(lambda new, y, old: new + (y - old), jax.lax.map(projected, fixed), ys, fixed[1])


def _failure(system: System, q0, step, trajectory: Trajectory, t1) -> str:
    """Describe what happened, and what to do; `step` is the length of all steps, if they have one."""
    model, stats, code = system.model, trajectory.stats, Result(int(trajectory.result))
    reason = MESSAGES[code]
    if step is not None and code == Result.nonfinite:
        reason = f"a step of {abs(float(step)):.6g} s gives no finite state; take a shorter one, or let steps adapt"
    hint = "Do shapes overlap at the start (jdyn.contact.distances)? "
    hint = "" if system.contact is None or int(stats["accepted_steps"]) else hint
    if code == Result.bad_model:
        hint = "".join(f"{problem}. " for problem in impossible(model))
    if code == Result.overlap:
        found = distances(model, model.normalize(q0))
        deepest = int(np.argmin(found.distance))
        a, b = found.names[deepest]
        hint = f"{a!r} and {b!r} overlap by {-float(found.distance[deepest]):.3g} m. "
    if code == Result.bad_configuration:
        bad = ~np.isfinite(np.asarray(model.normalize(q0)))
        hint = (
            f"Look at {enumerated([name for name, wrong in zip(model.topology.q_names, bad, strict=True) if wrong])}. "
        )
    return (
        f"simulation of {model.name!r} stopped at t = {float(stats['t_reached']):.6g} s of {float(t1):.6g} s "
        f"({int(stats['accepted_steps'])} steps accepted, {int(stats['rejected_steps'])} rejected): {reason}. "
        f"{hint}With throw=False a failed simulation returns NaN and its result code instead of raising."
    )


class RowsToSave(NamedTuple):
    """Rows of a trajectory.

    Attributes:
        times: Of rows [s], in order.
        steps_per_row: Number of steps after which a row follows, beside those at `times`; 0 for none.
        row_at_end: Whether the end is a row even if `steps_per_row` does not make it one.
        rows_within_steps: Whether rows may lie within steps, not only at their ends.
    """

    times: Float[Array, " times"]
    steps_per_row: int
    row_at_end: bool
    rows_within_steps: bool


def rows_to_save(saveat, t0, t1) -> RowsToSave:
    """The rows that `saveat` asks for: evenly spaced ones, given times, or those of a `diffrax.SaveAt`.

    Raises:
        ValueError: for options of `diffrax.SaveAt` that do not give rows of (q, v).
    """
    if saveat is None:
        return RowsToSave(jnp.linspace(t0, t1, DEFAULT_SAMPLES, dtype=t0.dtype), 0, False, True)
    if not isinstance(saveat, diffrax.SaveAt):
        times = jnp.asarray(saveat, t0.dtype)
        if times.ndim != 1 or times.size == 0:
            raise ValueError(f"saveat: expected a non-empty array of times of shape (n,), got shape {times.shape}")
        _check_times(times, t0, t1)
        return RowsToSave(times, 0, False, True)
    rows = saveat.subs
    plain = isinstance(rows, diffrax.SubSaveAt) and rows.fn is _SAVE_STATE
    if not plain or saveat.dense or saveat.solver_state or saveat.controller_state or saveat.made_jump:
        raise ValueError(
            "saveat: simulate saves rows of (q, v), so of diffrax.SaveAt it takes t0, t1, ts and steps only; "
            "compute other quantities from the trajectory"
        )
    steps_per_row = int(rows.steps)
    times = [t0[None]] if rows.t0 else []
    times += [] if rows.ts is None else [rows.ts.astype(t0.dtype)]
    times += [t1[None]] if rows.t1 and not steps_per_row else []
    return RowsToSave(jnp.concatenate([*times, jnp.zeros(0, t0.dtype)]), steps_per_row, rows.t1, rows.ts is not None)


def _check_times(times, t0, t1):
    """Rows must lie between start and end, in the order of time; traced times are checked by diffrax."""
    if any(isinstance(x, Tracer) for x in (times, t0, t1)):
        return
    path = jnp.concatenate([t0[None], times, t1[None]])
    steps = jnp.diff(path if t1 >= t0 else -path)
    if not jnp.all(steps >= 0):
        raise ValueError(f"saveat: expected times in order between t0 = {t0} and t1 = {t1}, got {times}")
