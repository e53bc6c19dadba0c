"""Simulation: the front door."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Literal

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, Float, Scalar

from jdyn.array import is_single
from jdyn.contact import Contact, ContactWarning, colliders
from jdyn.control.controller import Controller
from jdyn.control.dynamic import DynamicController, Memoryless, with_memory
from jdyn.dynamics import Method, blocked, closed, distance, iterates, resolved
from jdyn.dynamics.recursion.joint_frames import with_links
from jdyn.model import Constraint, Model, checked
from jdyn.model.compiled import precise, uncollected
from jdyn.model.memory_maps import memory_maps
from jdyn.model.messages import enumerated
from jdyn.model.values import impossible, possible
from jdyn.simulation.adjoint import solve, solve_forwards
from jdyn.simulation.clock import Clock
from jdyn.simulation.contact_events import contact_events
from jdyn.simulation.energy_control import mechanical_energy
from jdyn.simulation.events import Event, numbers, watch
from jdyn.simulation.joint_limits import CompliantLimits, ImpactLimits, JointLimits
from jdyn.simulation.loop import Equations, Problem, where
from jdyn.simulation.result import MESSAGES, Result, raise_on_failure
from jdyn.simulation.saveat import rows_to_save
from jdyn.simulation.solvers import Automatic, ConvexEuler, on_manifold
from jdyn.simulation.traits import traits
from jdyn.simulation.trajectory import Events, Trajectory
from jdyn.simulation.vector_field import State, VectorField

# A start may miss its constraints by this power of rounding [m or rad, and per second].
NEAR = 0.375
# A start is warned of where shapes overlap by this share of the least size of one of them, a motion by that one.
DEEP, SUNK = 0.1, 0.5

Control = Callable[[Scalar, Float[Array, " nq"], Float[Array, " nv"]], Float[Array, " nv"]]


def simulate(
    model: Model,
    q0: Float[Array, " nq"],
    v0: Float[Array, " nv"],
    t1: ArrayLike,
    *,
    controller: Control | DynamicController | None = None,
    events: Sequence[Event] = (),
    joint_limits: CompliantLimits | ImpactLimits | None = None,
    contact: Contact | None = None,
    constraints: Sequence[Constraint] = (),
    method: Method | Literal["auto"] | None = None,
    solver: diffrax.AbstractSolver | None = None,
    stepsize_controller: diffrax.AbstractStepSizeController | None = None,
    saveat: diffrax.SaveAt | Float[Array, " times"] | None = None,
    adjoint: diffrax.ForwardMode | None = None,
    throw: bool = True,
    t0: ArrayLike = 0.0,
    dt0: ArrayLike | None = None,
    max_steps: int = 16384,
    max_events: int = 64,
    jump_times: Sequence[float] | Float[ArrayLike, " jumps"] = (),
) -> Trajectory:
    """The motion of a mechanism from a state at `t0` to `t1`.

    ```
    trajectory = jdyn.simulate(model, q0, v0, 2.0, controller=jdyn.PD(model, target, kp=100.0, kd=20.0))
    ```

    Works under `jit`, `vmap` and `grad`. Under `vmap` no lane waits for another: finished lanes make room for the next
    ones. The whole solve runs in the dtype of the model and the state. A controller that is an `equinox.Module` is
    compiled once for each structure, a new lambda every time.

    >>> model = jdyn.load("pendulum")
    >>> motion = jdyn.simulate(model, jnp.array([1.0]), jnp.zeros(1), 1.0)
    >>> print(motion.q.shape, motion.q[-1].round(3))
    (101, 1) [-0.902]

    Args:
        model: The mechanism.
        q0: Configuration at `t0` [rad or m]; quaternions are scaled to unit length.
        v0: Velocity at `t0` [rad/s or m/s].
        t1: End [s].
        controller: `controller(t, q, v) -> tau`, or a `jdyn.DynamicController` with a memory; no torque if left out.
        events: Where the state jumps, or the simulation ends, see `jdyn.Event`.
        joint_limits: Springs, `jdyn.CompliantLimits()`, or impacts, `jdyn.ImpactLimits(restitution=0.5)`, that hold
            joints within their limits; none if left out. Impacts come after `events`; their entries are all upper ends,
            then all lower ends, of joints whose coordinates are single numbers.
        contact: How shapes of the model push each other where they touch, `jdyn.CompliantContact()` or
            `jdyn.ConvexContact()`; they pass through each other if left out.
        constraints: Beyond the tree of joints: `jdyn.Connect`, `jdyn.Weld`, `jdyn.Gear`, `jdyn.PrescribedJoint` and
            others. The start has to meet them, see `jdyn.assemble`; the end of every step and rows in between are moved
            to the nearest state that does. `Trajectory.multipliers` has their forces.
        method: Forward-dynamics method; `jdyn.ABA()` if left out, and with `"auto"` what `jdyn.diagnose` recommends.
        solver: `jdyn.ConvexEuler()` with convex contact, else `jdyn.Automatic()` if left out: an explicit method of
            order 6 (8 for relative tolerances of 3e-7 and less), and `jdyn.ROSJ43` while gains, dampers or friction on
            light links would hold the step, each lane of a batch as it needs; `stats["implicit_steps"]` says how often.
            Or a Runge-Kutta method of diffrax, which then works in local coordinates, see `jdyn.OnManifold`, or one of
            jdyn's own: `jdyn.Rodas5P()` for stiffness that couples joints; `jdyn.BulirschStoer()`, whose dense output
            has its full order, for small tolerances.
        stepsize_controller: A diffrax step controller; if left out, `PIDController(rtol=1e-6, atol=1e-8)`, and
            `rtol=1e-5, atol=1e-6` in float32, since rounding hides smaller errors, or with contact
            `rtol=1e-4, atol=1e-5`. With `jdyn.ConvexEuler`, which at small tolerances follows all vibrations of stiff
            shapes, it is `rtol=1e-4, atol=1e-5`, `atol=1e-4` in float32, and `safety=0.8, factormax=2`, which suit it
            at other tolerances as well.
        saveat: Times of the rows [s], or a `diffrax.SaveAt` of `t0`, `t1`, `ts` or `steps`; 101 evenly spaced times
            from `t0` to `t1` if left out.
        adjoint: `diffrax.ForwardMode()` for forward-mode derivatives. If left out, derivatives are those of reverse
            mode: the accepted steps are recorded, and replayed from the last to the first. If a coordinate rests for a
            twentieth of the time, a simulation that is differentiated, in either mode, begins again, with steps of
            `PIDController` that are short enough for its derivatives; `stats` counts these. Steps of `jdyn.ConvexEuler`
            stay as they are.
        throw: Whether failure raises. Otherwise it leaves its code in `result` and NaN in the rows not reached.
        t0: Start [s].
        dt0: Size of the first step [s], whatever its sign: required by `diffrax.ConstantStepSize()`, 0.01 s for step
            controllers that adapt it.
        max_steps: Most steps to try.
        max_events: Most events to let happen.
        jump_times: Times at which forces jump as functions of time [s], shape (jumps,), in any order; NaN and infinity
            are none. Steps end there exactly, and see the forces of their own side alone, so that no pulse is missed,
            however short. They may be traced and differentiated by; a row at a jump has the derivatives of the side
            before. Ticks of controllers are known without this.

    Returns:
        The trajectory.

    Raises:
        ValueError: at trace time, if a size disagrees with `model`, `saveat` does not give rows, `jump_times` are not
            an array of times, an option is something else, the controller takes other arguments or returns another
            shape, or a model of which no two collision shapes may touch is to touch something.
        SimulationError: if `throw` and the end is not reached. Compiled into a larger program, the error is a
            RuntimeError with the same explanation.
    """
    q0, v0 = checked(model, q=q0, v=v0)
    dtype = jnp.promote_types(model.dtype, jnp.promote_types(q0.dtype, v0.dtype))
    described = model = model.astype(dtype)
    if not isinstance(contact, Contact | None):
        raise ValueError(f"contact: expected jdyn.CompliantContact(), jdyn.ConvexContact() or None, got {contact!r}")
    shapes = None if contact is None else _touching(model, contact)
    model = model.without_shapes()
    q0, v0, t0, t1 = (jnp.asarray(x, dtype) for x in (q0, v0, t0, t1))
    if not (adjoint is None or isinstance(adjoint, diffrax.ForwardMode)):
        raise ValueError(
            f"adjoint: simulate differentiates by record and replay, or forwards with diffrax.ForwardMode(); "
            f"it does not take a {type(adjoint).__name__}"
        )
    if not isinstance(joint_limits, JointLimits | None):
        raise ValueError(
            f"joint_limits: expected jdyn.CompliantLimits(), jdyn.ImpactLimits() or None, got {joint_limits!r}"
        )
    jump_times = jnp.asarray(jump_times, dtype)
    if jump_times.ndim != 1:
        raise ValueError(f"jump_times: expected an array of shape (jumps,), got shape {jump_times.shape}")
    if not isinstance(solver, diffrax.AbstractSolver | None):
        raise ValueError(
            f"solver: expected a solver of jdyn or of diffrax, such as jdyn.ROSJ43() or diffrax.Tsit5(), got {solver!r}"
        )
    if not isinstance(stepsize_controller, diffrax.AbstractStepSizeController | None):
        raise ValueError(
            "stepsize_controller: expected one of diffrax, such as diffrax.PIDController(rtol=1e-6, atol=1e-8), got "
            f"{stepsize_controller!r}"
        )
    if t0.shape or t1.shape:
        raise ValueError(f"t0 and t1: expected scalars, got shapes {t0.shape} and {t1.shape}")
    solver = _default_solver(contact) if solver is None else solver
    of_solver = traits(solver)
    backwards = not any(isinstance(t, Tracer) for t in (t0, t1)) and t1 < t0
    if joint_limits is not None and not joint_limits.backwards and backwards:
        raise ValueError(f"joint_limits: impacts happen forwards in time, expected t1 after t0 = {t0}, got {t1}")
    if not of_solver.backwards and backwards:
        raise ValueError(
            f"{type(solver).__name__}: it steps forwards in time alone, expected t1 after t0 = {t0}, got {t1}; take "
            "another solver to go backwards, with convex contact jdyn.CompliantContact() as well"
        )
    if constraints and not of_solver.constraints:
        raise ValueError(
            f"{type(solver).__name__}: its Jacobians are those of a tree without constraints; leave the solver out, or "
            "take a Runge-Kutta method"
        )
    if of_solver.jacobians and contact is not None and contact.softens_derivatives:
        raise ValueError(
            f"{type(solver).__name__}: its steps need the derivatives of forces that gradient_reach changes; leave the "
            "solver or the reach out"
        )
    by_default = _default_controller(dtype, solver, touches=contact is not None)
    stepsize_controller = by_default if stepsize_controller is None else stepsize_controller
    trajectory = _simulate(
        field=VectorField(
            model, with_memory(controller), resolved(method, model), constraints=_in_type(constraints, dtype)
        ),
        start=(model.normalize(q0), v0),
        t0=t0,
        t1=t1,
        dt0=None if dt0 is None else jnp.abs(jnp.asarray(dt0, dtype)),
        solver=_with_tolerances(solver, stepsize_controller, by_default),
        stepsize_controller=stepsize_controller,
        rows=rows_to_save(saveat, t0, t1),
        adjoint=adjoint,
        events=tuple(events),
        joint_limits=jax.tree.map(lambda x: jnp.asarray(x, dtype), joint_limits),
        contact=jax.tree.map(lambda x: jnp.asarray(x, dtype), contact),
        shapes=shapes,
        max_steps=max_steps,
        max_events=max_events,
        jump_times=jump_times,
    )
    if contact is not None:
        _warn_of_overlaps(model.name, trajectory.stats)
    if not throw:
        return trajectory
    progress = (trajectory.stats["t_reached"] - t0) / (t1 - t0)
    constant = dt0 if isinstance(stepsize_controller, diffrax.ConstantStepSize) else None
    return raise_on_failure(
        trajectory, trajectory.result, progress, lambda: _failure(described, q0, contact, constant, trajectory, t1)
    )


def _touching(model, contact):
    """Its collision shapes, which may touch in this way."""
    shapes = colliders(model)
    if not shapes.pairs:
        raise ValueError(
            f"contact: no two collision shapes of {model.name!r} may touch, see jdyn.collision_pairs; put ground under "
            "it by jdyn.with_ground, or leave contact out"
        )
    contact.check(shapes)
    return shapes


def _default_solver(contact):
    return ConvexEuler() if contact is not None and contact.stepwise else Automatic()


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

    if stats["start_depth_by_size"] > DEEP:
        warn("start", "at the start", "springs will throw them apart")
    elif stats["greatest_depth_by_size"] > SUNK:
        warn("greatest", "in this motion", "may pass through each other: are they stiff enough for what they bear?")


def _default_controller(dtype, solver, touches):
    # Single precision rounds the places of shapes, and so the forces of stiff ones: at smaller tolerances than these,
    # steps wait for what rounding makes of speeds.
    single = is_single(dtype)
    own = traits(solver).stepsize_controller
    if own is not None:
        return own(single)
    if single:
        return diffrax.PIDController(rtol=1e-4, atol=1e-5) if touches else diffrax.PIDController(rtol=1e-5, atol=1e-6)
    return diffrax.PIDController(rtol=1e-6, atol=1e-8)


def _in_type(constraints, dtype):
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tuple(constraints))


def _with_tolerances(solver, stepsize_controller, by_default):
    """A solver with the step controller's tolerances, if it needs some and has none: an implicit one to solve its
    equations, an extrapolation method to choose its order."""
    if isinstance(solver, diffrax.AbstractWrappedSolver):
        inner = _with_tolerances(solver.solver, stepsize_controller, by_default)
        return eqx.tree_at(lambda wrapper: wrapper.solver, solver, inner)
    adaptive = isinstance(stepsize_controller, diffrax.AbstractAdaptiveStepSizeController)
    source = stepsize_controller if adaptive else by_default
    if hasattr(solver, "with_tolerances"):
        return solver.with_tolerances(source.rtol, source.atol, source.norm)
    if not hasattr(solver, "root_finder"):
        return solver
    unset = diffrax.Kvaerno5().root_finder.rtol
    for name in ("rtol", "atol", "norm"):
        if getattr(solver.root_finder, name) is unset:
            solver = eqx.tree_at(lambda s, name=name: getattr(s.root_finder, name), solver, getattr(source, name))
    return solver


@uncollected
@eqx.filter_jit
@precise
def _simulate(
    *, field, start, t0, t1, dt0, solver, stepsize_controller, rows, adjoint, events, joint_limits,
    contact, shapes, max_steps, max_events, jump_times,
) -> Trajectory:  # fmt: skip
    memory_maps.look()
    q0, v0 = start
    field = dataclasses.replace(field, model=with_links(field.model), controller=field.controller.with_links())
    controller = _closed_controller(field, solver, t0, q0, v0)
    energy = mechanical_energy(field.model, q0, v0) if traits(solver).supplied else None
    y0 = State(q0, v0, controller.start(t0, q0, v0), energy)
    field = dataclasses.replace(
        field, controller=controller, constraints=closed(field.model, field.constraints, t0, q0)
    )
    field = dataclasses.replace(field, iterates=iterates(field.model, field.constraints, t0, q0, v0))
    if joint_limits is not None:
        field = dataclasses.replace(field, stops=joint_limits.stops(field.model))
        events = (*events, *joint_limits.events(field))
    if contact is not None:
        forces = contact.between(shapes)
        field = dataclasses.replace(field, contact=forces)
        events = (*events, *contact_events(field.model, forces)) if contact.ends_steps else events
    watches = tuple(watch(event, t0, y0) for event in events)
    direction = jnp.where(t0 <= t1, 1, -1).astype(t0.dtype)
    met = _starts_well(field, t0, q0, v0)
    problem = Problem(
        equations=Equations(field, Clock(direction)),
        y0=y0,
        start=_start(field, shapes, t0, q0, v0, met),
        met=met,
        t0=direction * t0,
        t1=direction * t1,
        times=direction * rows.times,
        jump_times=direction * jump_times,
        dt0=dt0,
        solver=on_manifold(solver, field.model),
        stepsize_controller=stepsize_controller.wrap(direction),
        events=watches,
        max_steps=max_steps,
        max_events=max_events,
        every=rows.every,
        last=rows.last,
        within=rows.within,
    )
    run = solve(problem) if adjoint is None else solve_forwards(problem)
    stats = {
        "t_reached": direction * run.motion.at.t,
        "accepted_steps": run.accepted,
        "rejected_steps": run.rejected,
        "dynamics_calls": None if run.work is None else run.work.evaluations,
        "jacobians": None if run.work is None else run.work.jacobians,
        "implicit_steps": None if run.work is None else run.work.implicit,
    }
    if rows.every:
        stats |= {
            "row_tries": run.rows.tries,
            "row_dynamics_calls": run.rows.evaluations,
            "row_implicit_steps": run.rows.implicit,
        }
    for when, overlap in (("start", run.start_overlap), ("greatest", run.most_overlap)):
        if overlap is not None:
            stats |= {f"{when}_depth": overlap.depth, f"{when}_depth_by_size": overlap.share}
    ts = direction * run.rows.ts if rows.every else rows.times
    ys, log = run.rows.ys, run.log
    if rows.within and field.constraints:
        ys = _meeting_constraints(field, y0, ts, ys)
    which, entry = (jnp.append(jnp.asarray(column, jnp.int32), -1)[log.which] for column in numbers(watches))
    happened = Events(direction * log.ts, which, entry, log.ys.q, log.ys.v)
    stats = jax.lax.stop_gradient(stats)
    return Trajectory(ts, ys.q, ys.v, ys.memory, ys.energy, happened, run.result, stats, run.rows.forces)


def _start(field, shapes, t0, q0, v0, met):
    """Success, or why no simulation begins with these numbers."""
    result = jnp.asarray(Result.success)
    if met is not None:
        # From rest nothing says which way the motion goes.
        held = blocked(field.model, field.constraints, t0, q0, v0, along=jnp.any(v0 != 0))
        result = jnp.where(met & held, Result.singular, result)
    result = jnp.where(jnp.all(jnp.isfinite(q0)), result, Result.bad_configuration)
    return jnp.where(possible(field.model, shapes), result, Result.bad_model).astype(jnp.int32)


def _starts_well(field, t0, q0, v0):
    """Tell whether the start nearly meets the constraints; None where there are none."""
    if not field.constraints:
        return None
    missed = distance(field.model, field.constraints, q0, v0, t=t0)
    return jnp.maximum(*missed) <= jnp.finfo(t0.dtype).eps ** NEAR


def _meeting_constraints(field, y0, ts, ys):
    """Rows that lie within steps, as dense output has them, moved to states that meet the constraints; those that were
    not reached, or have no such state next to them, as they are. Their derivatives remain those of dense output, which
    are as near to those of the motion."""
    arrays, rest = eqx.partition((field, y0), eqx.is_array)
    field, y0 = eqx.combine(jax.lax.stop_gradient(arrays), rest)

    def moved(row):
        t, y = row
        reached = jnp.all(jnp.isfinite(jnp.append(y.q, y.v)))
        there, near, _ = field.met(t, where(reached, y, y0))
        return where(reached & near.met, there, y)

    still = jax.lax.stop_gradient((ts, ys))
    return jax.tree.map(lambda moved, y, at: moved + (y - at), jax.lax.map(moved, still), ys, still[1])


class _Closed(Controller):
    """A controller that closes over nothing."""

    command: Callable
    softening: Callable
    derivatives: Callable | None

    def __call__(self, t, q, v):
        return self.command(t, q, v)

    def slopes(self, model, t, q, v):
        return self.softening(model, t, q, v)

    def jacobians(self, model, t, q, v):
        if self.derivatives is None:
            return super().jacobians(model, t, q, v)
        return self.derivatives(model, t, q, v)


def _closed_controller(field, solver, t, q, v):
    """The controller with the values that its function closes over as leaves: loops may not close over values that are
    differentiated or batched."""
    if not isinstance(field.controller, Memoryless) or field.controller.controller is None:
        return field.controller
    controller = field.controller.controller
    command = eqx.filter_closure_convert(controller, t, q, v)
    if not isinstance(controller, Controller):
        return Memoryless(command)
    softening = eqx.filter_closure_convert(controller.slopes, field.model, t, q, v)
    # Most solvers do not ask for them, and they take a while to trace.
    asked = traits(solver).jacobians
    derivatives = eqx.filter_closure_convert(controller.jacobians, field.model, t, q, v) if asked else None
    return Memoryless(_Closed(command, softening, derivatives))


def _failure(model: Model, q0, contact: Contact | None, step, trajectory: Trajectory, t1) -> str:
    """Describe what happened, and what to do; `step` is the length of all steps, if they have one."""
    stats, code = trajectory.stats, Result(int(trajectory.result))
    reason = MESSAGES[code]
    if step is not None and code == Result.nonfinite:
        reason = f"a step of {abs(float(step)):.6g} s gives no finite state; take a shorter one, or let steps adapt"
    hint = "Do shapes overlap at the start (jdyn.distances)? "
    hint = "" if contact is None or int(stats["accepted_steps"]) else hint
    if code == Result.bad_model:
        hint = "".join(f"{problem}. " for problem in impossible(model))
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
