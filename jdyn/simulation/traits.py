"""Traits that solvers declare to those that run them. No other file asks for the class of a solver."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import diffrax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Scalar

from jdyn.simulation.state import Owner


class Traits(NamedTuple):
    """Capabilities and needs of a solver, as its attribute `traits`. Solvers without it, such as those of diffrax, have
    the defaults.

    Attributes:
        backwards: Whether it goes backwards in time.
        charts: Whether steps are taken in charts about their starts, which tell no turn of more than π.
        constraints: Whether it knows what constraints do to its stages.
        jacobians: Whether it asks controllers and contact for derivatives of their forces.
        held: Function from its state after a step and the length of that [s] to whether stability held the step, not
            accuracy; None for solvers that cannot tell.
        owners: Owners of parts of the state that it needs.
        resumes: Whether a step follows from the state at its start, so that replays may begin with any.
        stages: Kind of the stages of a Runge-Kutta method of diffrax; None for other methods.
        vibrations: Whether steps may become as short as vibrations that derivatives alone have.
        stepsize_controller: From whether numbers are in single precision, the step controller to take by default; None
            for that of all.
    """

    backwards: bool = True
    charts: bool = False
    constraints: bool = True
    jacobians: bool = False
    held: Callable[[Any, Scalar], Bool[Array, ""]] | None = None
    owners: tuple[Owner, ...] = ()
    resumes: bool = True
    stages: Literal["explicit", "diagonal", "other"] | None = None
    vibrations: bool = True
    stepsize_controller: Callable[[bool], diffrax.AbstractStepSizeController] | None = None


def traits(solver: diffrax.AbstractSolver) -> Traits:
    """Traits of any solver: those of what it wraps, unless it has its own."""
    inner = wrapped(solver)
    return getattr(solver, "traits", _of_diffrax(solver) if inner is None else traits(inner))


def wrapped(solver: diffrax.AbstractSolver) -> diffrax.AbstractSolver | None:
    """Solver that a solver wraps, if it wraps one."""
    return solver.solver if isinstance(solver, diffrax.AbstractWrappedSolver) else None


def is_solver(x: Any) -> bool:
    """Tell whether something is a solver."""
    return isinstance(x, diffrax.AbstractSolver)


def _of_diffrax(solver: diffrax.AbstractSolver) -> Traits:
    kinds = {"explicit": diffrax.AbstractERK, "diagonal": diffrax.AbstractDIRK, "other": diffrax.AbstractRungeKutta}
    stages: Any = next((name for name, kind in kinds.items() if isinstance(solver, kind)), None)
    return Traits(stages=stages, held=never_held if isinstance(solver, diffrax.AbstractImplicitSolver) else None)


def never_held(state: Any, length: Scalar) -> Bool[Array, ""]:
    """Tell that stability holds no step: of methods that are implicit, or shorten steps by themselves."""
    return jnp.array(False)
