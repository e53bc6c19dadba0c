"""A system as its simulation takes it: what holds for all steps is computed once."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import diffrax
import equinox as eqx
from jaxtyping import Scalar

from jdyn.constraints import closed, iterates
from jdyn.contact.colliders import Colliders
from jdyn.control.controller import Controller
from jdyn.control.dynamic import Memoryless, with_memory
from jdyn.dynamics.recursion.joint_frames import with_links
from jdyn.elements import Elements
from jdyn.simulation.contact_events import contact_events
from jdyn.simulation.events import Event
from jdyn.simulation.parts import Parts
from jdyn.simulation.state import State, starting
from jdyn.simulation.traits import traits
from jdyn.simulation.vector_field import VectorField


class Prepared(NamedTuple):
    """A system at the start of a simulation.

    Attributes:
        field: Its equations of motion.
        y0: State at the start.
        events: What its joints' limits and its contact watch for.
    """

    field: VectorField
    y0: State
    events: tuple[Event, ...]


def prepared(
    system: Parts, shapes: Colliders | None, solver: diffrax.AbstractSolver, t0: Scalar, start: State
) -> Prepared:
    """Prepare a system for steps of a solver from a state at `t0`; `shapes` are those that may touch. Parts
    that the state does not have start anew."""
    q0, v0 = start.q, start.v
    model, controller = with_links(system.model), with_memory(system.controller).with_links()
    field = VectorField(model, controller, system.method, constraints=system.constraints)
    controller = _closed_controller(field, solver, t0, q0, v0)
    field = dataclasses.replace(field, elements=Elements(system.elements).closed(model, t0, q0, v0))
    field = dataclasses.replace(field, controller=controller, others=traits(solver).owners)
    y0 = starting(field.owners, model, t0, q0, v0, start.parts)
    field = dataclasses.replace(field, constraints=closed(model, system.constraints, t0, q0))
    field = dataclasses.replace(field, iterates=iterates(model, field.constraints, t0, q0, v0))
    events: tuple[Event, ...] = ()
    if system.joint_limits is not None:
        field = dataclasses.replace(field, stops=system.joint_limits.stops(model))
        events = (*events, *system.joint_limits.events(field))
    if system.contact is not None and shapes is not None:
        forces = system.contact.between(shapes)
        field = dataclasses.replace(field, contact=forces)
        events = (*events, *contact_events(model, forces)) if system.contact.ends_steps else events
    return Prepared(field, y0, events)


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
