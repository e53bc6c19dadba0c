"""A step of a given length, to first order."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Scalar

from jdyn.actuators import Actuators
from jdyn.execution.compiled import precise, uncollected
from jdyn.simulation.action import checked_action
from jdyn.simulation.deviation import deviating, deviation, deviation_names, deviation_size, entry_names
from jdyn.simulation.fixed_step import fixed_step
from jdyn.simulation.parts import Parts
from jdyn.simulation.sensing import Values, sense
from jdyn.simulation.state import State


class LinearizedStep(eqx.Module):
    """Result of `jdyn.System.linearize_step`: x₁ = A x + B u and y = C x + D u for small deviations.

    >>> step = jdyn.System(jdyn.load("pendulum")).linearize_step(jdyn.State(jnp.zeros(1), jnp.zeros(1)), dt=0.1)
    >>> print(step.state_names, step.action_names, step.C.shape)
    ('q.joint1', 'v.joint1') ('joint1',) (0, 2)

    Attributes:
        A, B: Derivatives of the state at the end of the step by the state at its start, and by the action.
        C, D: Derivatives of the sensors' values at the start of the step by the state there, and by the action.
        end: State at the end of the step.
        sensors: Values of the sensors at its start, by name.
        result: `jdyn.Result.success`, or what went wrong in the step, as an integer, see `jdyn.System.step`.
        state_names: Names of the entries of x = [e; w; z]: of the tangent vector e that leads to the deviating
            configuration, such as `"q.joint1"`; of the deviation w of the velocity, `"v.joint1"`; and of the deviation
            z of all else, by its place in `State.parts`, `"controller.actuators.servo"`.
        action_names: Names of the entries of u: actuators, or coordinates of a system without actuators.
        sensor_names: Names of the entries of y: sensors in the order of the system, `"imu[0]"` for entries of arrays.
    """

    A: Float[Array, "nx nx"]
    B: Float[Array, "nx nu"]
    C: Float[Array, "ny nx"]
    D: Float[Array, "ny nu"]
    end: State
    sensors: Values
    result: Int[Array, ""]
    state_names: tuple[str, ...] = eqx.field(static=True)
    action_names: tuple[str, ...] = eqx.field(static=True)
    sensor_names: tuple[str, ...] = eqx.field(static=True)


@uncollected
@eqx.filter_jit
@precise
def linearized_step(
    system: Parts,
    state: State,
    action: Array | None,
    h: Scalar,
    t: Scalar,
    solver: diffrax.AbstractSolver | None,
) -> LinearizedStep:
    """See `System.linearize_step`."""
    whole = system.state(state.q, state.v, t=t)
    dtype, model = whole.q.dtype, system.model.astype(whole.q.dtype)
    state = dataclasses.replace(whole, parts=whole.parts | state.parts)
    action_names = Actuators(system.actuators).command_names if system.actuators else model.topology.v_names
    u = jnp.zeros(len(action_names), dtype) if action is None else checked_action(system, action.astype(dtype))
    nx = deviation_size(state)

    def outcome(z):
        near, acting = deviating(model, state, z[:nx]), u + z[nx:]
        end, info = fixed_step(system, near, acting, h, t, solver)
        seen = sense(system, near, acting, t) if system.sensors else {}
        values = [jnp.ravel(seen[sensor.name]).astype(dtype) for sensor in system.sensors]
        return (end, jnp.concatenate([jnp.zeros(0, dtype), *values])), (end, seen, info.result)

    columns, (end, seen, result) = jax.jacfwd(outcome, has_aux=True)(jnp.zeros(nx + len(u), dtype))
    ends, values = columns

    def along(moved):
        """Deviation at the end, by the change of the state there."""
        return jax.jvp(lambda near: deviation(model, end, near), (end,), (moved,))[1]

    both = jax.vmap(along, in_axes=-1, out_axes=-1)(ends)
    sensor_names = [name for sensor in system.sensors for name in entry_names(sensor.name, seen[sensor.name].shape)]
    return LinearizedStep(
        A=both[:, :nx], B=both[:, nx:], C=values[:, :nx], D=values[:, nx:], end=end, sensors=seen, result=result,
        state_names=deviation_names(model, state), action_names=action_names, sensor_names=tuple(sensor_names),
    )  # fmt: skip
