"""Preparation of a simulation: what holds for all steps is computed once, and solver and step controller are chosen
where they are left open."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import diffrax
import equinox as eqx
from jaxtyping import Scalar

from jdyn.array import is_single
from jdyn.constraints import closed, iterates
from jdyn.contact import Contact, RigidForces
from jdyn.contact.colliders import Colliders
from jdyn.control.controller import Controller, Function, Memoryless
from jdyn.dynamics.recursion.joint_frames import with_links
from jdyn.elements import Elements
from jdyn.simulation.contact_events import contact_events
from jdyn.simulation.events import Event
from jdyn.simulation.parts import Parts
from jdyn.simulation.rigid_events import rigid_events
from jdyn.simulation.solver import is_solver, tolerances, traits, wrapped
from jdyn.simulation.solvers import Automatic, ConvexEuler, MoreauEuler
from jdyn.simulation.state import State, starting
from jdyn.simulation.vector_field import VectorField


class Prepared(NamedTuple):
    """A system at the start of a simulation.

    Attributes:
        field: Its equations of motion.
        y0: State at the start.
        events: Events of its joints' limits and of its contact.
    """

    field: VectorField
    y0: State
    events: tuple[Event, ...]


def prepared(
    system: Parts, shapes: Colliders | None, solver: diffrax.AbstractSolver, t0: Scalar, start: State
) -> Prepared:
    """Prepare a system for steps of a solver from a state at `t0`; `shapes` are those that may touch. Parts that the
    state does not have start anew."""
    q0, v0 = start.q, start.v
    model, controller = with_links(system.model), system.driver(shapes).with_links()
    field = VectorField(model, controller, system.method, constraints=system.constraints)
    controller = _closed_controller(field, solver, t0, q0, v0)
    field = dataclasses.replace(field, elements=Elements(system.elements).closed(model, t0, q0, v0))
    field = dataclasses.replace(field, controller=controller, other_owners=traits(solver).owners)
    y0 = starting(field.owners, model, t0, q0, v0, start.parts)
    if system.constraints:
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
        if forces.reacts and not traits(solver).impacts:
            events = (*events, rigid_events(field, cast(RigidForces, forces)))
    return Prepared(field, y0, events)


class _ClosedController(Controller):
    """A controller whose functions close over no values."""

    force: Callable
    force_slopes: Callable
    force_jacobians: Callable | None

    def __call__(self, t, q, v):
        return self.force(t, q, v)

    def slopes(self, model, t, q, v):
        return self.force_slopes(model, t, q, v)

    def jacobians(self, model, t, q, v):
        if self.force_jacobians is None:
            return super().jacobians(model, t, q, v)
        return self.force_jacobians(model, t, q, v)


def _closed_controller(field, solver, t, q, v):
    """The controller with the values that its functions, and methods of users, close over as leaves."""
    controller = field.controller
    if not isinstance(controller, Memoryless) or isinstance(controller.controller, Function | None):
        return controller.closed(t, q, v)
    controller = controller.controller
    force = eqx.filter_closure_convert(controller, t, q, v)
    slopes = eqx.filter_closure_convert(controller.slopes, field.model, t, q, v)
    # Most solvers do not ask for Jacobians, which take a while to trace.
    wanted = traits(solver).jacobians
    jacobians = eqx.filter_closure_convert(controller.jacobians, field.model, t, q, v) if wanted else None
    return Memoryless(_ClosedController(force, slopes, jacobians))


def suitable_solver(
    solver: diffrax.AbstractSolver | None, system: Parts, backwards: str | None = None, *, constant: bool = False
) -> diffrax.AbstractSolver:
    """The solver of a simulation: a given one that can simulate the system, or the default.

    Args:
        solver: The given solver, if any.
        system: The system to simulate.
        backwards: Reason why time runs backwards, for messages; None where it does not.
        constant: Whether steps are constant, and errors not judged.

    Raises:
        ValueError: if the given solver cannot simulate the system.
    """
    if not (solver is None or is_solver(solver)):
        raise ValueError(
            f"solver: expected a solver of jdyn or of diffrax, such as jdyn.solvers.ROSJ43() or diffrax.Tsit5(), got "
            f"{solver!r}"
        )
    contact, limits = system.contact, system.joint_limits
    solver = _default_solver(contact, constant) if solver is None else solver
    name, of_solver = type(solver).__name__, traits(solver)
    if limits is not None and not limits.backwards and backwards:
        raise ValueError(f"joint_limits: impacts happen forwards in time, {backwards}")
    if contact is not None and not contact.backwards and backwards:
        raise ValueError(f"contact: impacts of rigid shapes happen forwards in time, {backwards}")
    if not of_solver.backwards and backwards:
        raise ValueError(
            f"{name}: it steps forwards in time alone, {backwards}; take another solver to go backwards, with convex "
            "contact jdyn.CompliantContact() as well"
        )
    if system.constraints and not of_solver.constraints:
        raise ValueError(
            f"{name}: its Jacobians are those of a tree without constraints; leave the solver out, or take a "
            "Runge-Kutta method"
        )
    if of_solver.jacobians and contact is not None and contact.softens_derivatives:
        raise ValueError(
            f"{name}: it needs exact Jacobians of contact, but gradient_reach smooths them; leave out the solver or "
            "gradient_reach"
        )
    return solver


def _default_solver(contact, constant):
    if contact is not None and contact.reacts and constant:
        return MoreauEuler()
    if contact is None or not contact.stepwise:
        return Automatic()
    # Extrapolation goes wrong where contact begins within a step. Only its error estimate shows that, and constant
    # steps ignore it.
    return ConvexEuler(rows=1) if constant else ConvexEuler()


def default_controller(dtype: Any, solver: diffrax.AbstractSolver, touches: bool) -> diffrax.AbstractStepSizeController:
    """Step controller for a solver and a floating type, where shapes touch or not."""
    # Single precision rounds the places of shapes, and so the forces of stiff ones: at smaller tolerances than these,
    # rounding of speeds limits the steps.
    single = is_single(dtype)
    own = traits(solver).stepsize_controller
    if own is not None:
        return own(single)
    if single:
        return diffrax.PIDController(rtol=1e-4, atol=1e-5) if touches else diffrax.PIDController(rtol=1e-5, atol=1e-6)
    return diffrax.PIDController(rtol=1e-6, atol=1e-8)


def judged_contact(contact: Contact | None, stepsize_controller: Any, by_default: Any) -> Contact | None:
    """Contact with what follows from the tolerances of a step controller, or of the default one."""
    judged = tolerances(stepsize_controller) or tolerances(by_default)
    return contact if contact is None or judged is None else contact.within(*judged)


def with_tolerances(solver: Any, stepsize_controller: Any, by_default: Any) -> Any:
    """A solver with the tolerances of the step controller, if it needs tolerances and has none: an implicit method to
    solve its equations, an extrapolation method to choose its order."""
    if (inner := wrapped(solver)) is not None:
        inner = with_tolerances(inner, stepsize_controller, by_default)
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
