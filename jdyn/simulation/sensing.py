"""Values of a system's sensors at one instant."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Scalar

from jdyn.array import in_type
from jdyn.constraints import constrained_dynamics, forces_on_bodies
from jdyn.contact import PointForces
from jdyn.control import Driven
from jdyn.control.controller import with_memory
from jdyn.dynamics import Kinematics
from jdyn.execution.compiled import precise, uncollected
from jdyn.model import checked
from jdyn.sensors import ActuatorReadings, PointLoads, Reading, Sensor, Surroundings
from jdyn.simulation.action import checked_action, with_action
from jdyn.simulation.parts import Parts
from jdyn.simulation.prepared import prepared, suitable_solver
from jdyn.simulation.sensor_memory import SENSOR_MEMORY, shown, without_memory
from jdyn.simulation.state import ElementStates, State, controller_memory
from jdyn.simulation.vector_field import VectorField

Values = dict[str, Float[Array, "..."]]


@uncollected
@eqx.filter_jit
@precise
def sense(system: Parts, state: State, action: Array | None, t: Scalar) -> Values:
    """See `System.sense`."""
    state, memory = without_memory(state), state.parts.get(SENSOR_MEMORY)
    q, v = checked(system.model, q=state.q, v=state.v)
    dtype = jnp.result_type(system.model.dtype, q.dtype, v.dtype)
    t, system, shapes = t.astype(dtype), system.astype(dtype), system.touching()
    around = system.around()
    system = system.but(model=system.model.without_shapes(), configurations={})
    y = dataclasses.replace(state, q=system.model.normalize(q.astype(dtype)), v=v.astype(dtype))
    field, y, _ = prepared(system, shapes, suitable_solver(None, system), t, y)
    if action is not None:
        action = checked_action(system, action.astype(dtype))
        field = dataclasses.replace(field, controller=with_action(field.controller, action))
    measured = values(system.sensors, field, t, y, None, around)
    return measured if memory is None else shown(in_type(system.sensors, dtype), memory, measured)


def values(
    sensors: Sequence[Sensor],
    field: VectorField,
    t: Scalar,
    y: State,
    known: PointForces | None,
    around: Surroundings | None,
) -> Values:
    """Measurements of sensors in one state, with the contact forces of the step in which it lies, as far as they are
    known; `shown` is what they show.

    Args:
        sensors: Those to read.
        field: All that acts.
        t: Time [s].
        y: The state.
        known: Contact forces at points.
        around: Collision shapes; None where no sensor looks at them.
    """
    field = dataclasses.replace(field, contact=of_all_pairs(field.contact))
    reading = Reading(t, Kinematics.of(field.model, y.q, y.v), parts=y.parts, surroundings=around)
    outputs = None
    if isinstance(field.controller, Driven) and (use_actuators(sensors) or use_forces(sensors)):
        outputs = _outputs(field.controller, t, y)
    if outputs is not None and use_actuators(sensors):
        reading = dataclasses.replace(reading, actuators=outputs)
    if use_forces(sensors):
        reading = _with_forces(reading, field, y, known, outputs)
    return {sensor.name: sensor.value(reading) for sensor in in_type(tuple(sensors), y.q.dtype)}


def use_forces(sensors: Sequence[Sensor]) -> bool:
    """Tell whether any sensor looks at accelerations or forces."""
    return any(sensor.uses_forces for sensor in sensors)


def use_actuators(sensors: Sequence[Sensor]) -> bool:
    """Tell whether any sensor looks at actuators."""
    return any(sensor.uses_actuators for sensor in sensors)


def _outputs(driven: Driven, t: Scalar, y: State) -> ActuatorReadings:
    """Lengths, speeds and forces of actuators."""
    travels, forces = driven.outputs(t, y.q, y.v, controller_memory(y))
    names, counts = driven.actuators.names, driven.actuators.counts
    return ActuatorReadings(names, travels.lengths, travels.velocities, forces, travels.generalized(forces), counts)


def _with_forces(reading, field, y, known, outputs):
    """The reading with accelerations and forces, those of actuators among them."""
    model, t, kinematics = field.model, reading.t, reading.kinematics
    loads, contact = None, field.contact
    on_bodies = field.elements.on_bodies(t, kinematics, y.parts.get(ElementStates.part))
    others = dataclasses.replace(field, contact=None)
    if outputs is None:
        tau = others.force(t, y)
    else:
        tau = outputs.generalized + dataclasses.replace(others, controller=with_memory(None)).force(t, y)
        on_bodies = on_bodies + field.controller.on_bodies(kinematics, outputs.forces)
    if contact is not None and not contact.reacts:
        # Points are found once, for their forces and for what these do together.
        loads = _loads(contact, model, y, known)
        tau = tau + kinematics.generalized(loads.on_bodies(kinematics.poses))
    if field.constraints:
        total = tau + field.reacting_force(model, t, y, tau)
        found = constrained_dynamics(model, field.constraints, y.q, y.v, total, t=t, method=field.method)
        a = found.a
        on_bodies = on_bodies + forces_on_bodies(model, field.constraints, t, y.q, y.v, found.multipliers)
    else:
        a, _ = field.accelerations(model, t, y, tau)
    if contact is not None and contact.reacts:
        loads = _loads(contact, model, y, field.contact_reaction(model, t, y, tau).points)
    return dataclasses.replace(reading, a=a, tau=tau, on_bodies=on_bodies, contacts=loads)


def of_all_pairs(contact):
    """Contact whose points are those of all pairs, as recorded forces are, so that their names are known."""
    if contact is None or contact.colliders.nearest is None:
        return contact
    shapes = dataclasses.replace(contact.colliders, nearest=None)
    return eqx.tree_at(lambda contact: contact.colliders, contact, shapes)


def _loads(contact, model, y, known):
    """Forces at all points where shapes may touch."""
    shapes = contact.colliders
    points, pairs = contact.points(model, y.q, y.v) if known is None else contact.recorded(model, y.q, y.v, known)
    bodies = np.stack([shapes.bodies(side) for side in (0, 1)], axis=1)[pairs]
    names = tuple(shapes.names[pair] for pair in pairs)
    bodies = tuple(map(tuple, bodies.tolist()))
    return PointLoads(names, bodies, points.position, points.normal, points.force, points.torque)
