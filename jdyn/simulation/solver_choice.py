"""Choice of solver and step controller, as far as they are left open."""

from typing import Any

import diffrax
import equinox as eqx

from jdyn.array import is_single
from jdyn.simulation.parts import Parts
from jdyn.simulation.solvers import Automatic, ConvexEuler
from jdyn.simulation.traits import is_solver, traits, wrapped


def suitable_solver(
    solver: diffrax.AbstractSolver | None, system: Parts, backwards: str | None = None, *, constant: bool = False
) -> diffrax.AbstractSolver:
    """A solver that can simulate a system: the one that is asked for, or the default, with `constant` for constant
    steps.

    Args:
        solver: The one that is asked for, if any.
        system: What is simulated.
        backwards: What is wrong where time must run forwards, in words; None where it does.
        constant: Whether no one judges the errors of steps.

    Raises:
        ValueError: if it cannot.
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
            f"{name}: its steps need the derivatives of forces that gradient_reach changes; leave the solver or the "
            "reach out"
        )
    return solver


def _default_solver(contact, constant):
    if contact is None or not contact.stepwise:
        return Automatic()
    # Extrapolation goes wrong where contact begins within a step, which none but its estimate of the error tells.
    return ConvexEuler(rows=1) if constant else ConvexEuler()


def default_controller(dtype: Any, solver: diffrax.AbstractSolver, touches: bool) -> diffrax.AbstractStepSizeController:
    """Step controller for a solver and a floating type, where shapes touch or not."""
    # Single precision rounds the places of shapes, and so the forces of stiff ones: at smaller tolerances than these,
    # steps wait for what rounding makes of speeds.
    single = is_single(dtype)
    own = traits(solver).stepsize_controller
    if own is not None:
        return own(single)
    if single:
        return diffrax.PIDController(rtol=1e-4, atol=1e-5) if touches else diffrax.PIDController(rtol=1e-5, atol=1e-6)
    return diffrax.PIDController(rtol=1e-6, atol=1e-8)


def with_tolerances(solver: Any, stepsize_controller: Any, by_default: Any) -> Any:
    """A solver with the step controller's tolerances, if it needs some and has none: an implicit one to solve its
    equations, an extrapolation method to choose its order."""
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
