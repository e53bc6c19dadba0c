"""A step of a given length, without judging its error."""

import dataclasses
from typing import NamedTuple

import diffrax
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Scalar

from jdyn.contact import PointForces
from jdyn.execution.compiled import precise, uncollected
from jdyn.model import checked
from jdyn.simulation.action import checked_action, with_action
from jdyn.simulation.loop import (
    DelassusPivot,
    Equations,
    Motion,
    Problem,
    StepSpan,
    TakenStep,
    after_event_and_tick,
    forces_like,
    forces_within,
    step,
)
from jdyn.simulation.manifold import on_manifold
from jdyn.simulation.parts import Parts
from jdyn.simulation.prepared import default_controller, prepared, suitable_solver, with_tolerances
from jdyn.simulation.result import Result
from jdyn.simulation.sensing import Values, values
from jdyn.simulation.sensor_memory import SENSOR_MEMORY, first_memory, next_memory, sampled, shown, without_memory
from jdyn.simulation.solver import traits
from jdyn.simulation.state import Clock, Instant, State


class StepInfo(NamedTuple):
    """Results of a step beside its end.

    Attributes:
        accelerations: Mean accelerations of the step [rad/s² or m/s²].
        contact_forces: Forces at all points where shapes may touch, in world axes, at the end of the step; None for
            solvers that do not report them.
        sensors: Values of the sensors of the system at the end of the step, by name, with accelerations there.
        result: `jdyn.Result.success`, or what went wrong, as an integer: the end is not finite, constraints are not
            met there, or the solver did not find it.
    """

    accelerations: Float[Array, " nv"]
    contact_forces: PointForces | None
    sensors: Values
    result: Int[Array, ""]


@uncollected
@eqx.filter_jit
@precise
def fixed_step(
    system: Parts,
    state: State,
    action: Array | None,
    h: Scalar,
    t: Scalar,
    solver: diffrax.AbstractSolver | None,
) -> tuple[State, StepInfo]:
    """See `System.step`."""
    state, remembered = without_memory(state), state.parts.get(SENSOR_MEMORY)
    q, v = checked(system.model, q=state.q, v=state.v)
    dtype = jnp.result_type(system.model.dtype, q.dtype, v.dtype)
    t, h, system = t.astype(dtype), h.astype(dtype), system.astype(dtype)
    action = None if action is None else checked_action(system, action.astype(dtype))
    shapes, around = system.touching(), system.around()
    system = system.but(model=system.model.without_shapes(), configurations={})
    method = suitable_solver(solver, system, constant=True)
    if traits(method).owners:
        raise ValueError(f"{type(method).__name__}: states of a step have no parts of the solver; simulate has them")
    by_default = default_controller(dtype, method, touches=shapes is not None)
    method = with_tolerances(method, by_default, by_default)
    y0 = dataclasses.replace(state, q=system.model.normalize(q.astype(dtype)), v=v.astype(dtype))
    field, y0, events = prepared(system, shapes, method, t, y0)
    if events:
        raise ValueError(
            "step: joint_limits or contact look for instants, at which steps of a given length do not end; take "
            "jdyn.CompliantLimits(), contact without located=True, and for rigid contact jdyn.solvers.MoreauEuler()"
        )
    if action is not None:
        field = dataclasses.replace(field, controller=with_action(field.controller, action))
    zero = jnp.zeros_like(t)
    on_constraints = jnp.array(True) if field.constraints else None
    problem = Problem(
        equations=Equations(field, Clock()),
        y0=y0,
        start_result=jnp.array(Result.success, jnp.int32),
        on_constraints=on_constraints,
        t0=t,
        t1=t + h,
        row_times=jnp.zeros(0, dtype),
        jump_times=jnp.zeros(0, dtype),
        dt0=h,
        solver=on_manifold(method, field.model),
        stepsize_controller=diffrax.ConstantStepSize(),
        events=(),
        max_steps=1,
        max_events=0,
        steps_per_row=0,
        row_at_end=False,
        rows_within_steps=False,
    )
    memory = problem.solver.init(problem.equations, t, t + h, y0, None)
    pivot = None if on_constraints is None else DelassusPivot(zero, zero)
    motion, span = Motion(Instant.at(t), y0, memory, jnp.array(True), on_constraints, pivot), StepSpan.of_length(h)
    equations = problem.equations_of_step(motion)
    arrived, _, dense, result = step(problem, equations, motion, span)
    after = after_event_and_tick(problem, equations, arrived, span, jnp.array(-1, jnp.int32)).y
    forces = None
    if forces_like(problem) is not None:
        forces = forces_within(problem, TakenStep(motion.instant, h, arrived.instant, arrived.y, dense), h)
    a = (arrived.y.v - y0.v) / h
    seen = values(system.sensors, field, t + h, after, forces, around) if system.sensors else {}
    if sampled(system.sensors):
        if remembered is None:
            remembered = first_memory(system.sensors, values(system.sensors, field, t, y0, None, around))
        remembered = next_memory(system.sensors, remembered, h, seen)
        after = dataclasses.replace(after, parts=after.parts | {SENSOR_MEMORY: remembered})
        seen = shown(system.sensors, remembered, seen)
    code = jnp.where(result == diffrax.RESULTS.successful, Result.success, Result.solver_failed)
    code = code if arrived.on_constraints is None else jnp.where(arrived.on_constraints, code, Result.constraints)
    finite = jnp.all(jnp.isfinite(jnp.append(after.q, after.v)))
    return after, StepInfo(a, forces, seen, jnp.where(finite, code, Result.nonfinite).astype(jnp.int32))
