"""Traits that solvers declare to those that run them."""

from collections.abc import Callable
from typing import NamedTuple

import diffrax


class Traits(NamedTuple):
    """Capabilities and needs of a solver, as its attribute `traits`. Solvers without it, such as those of diffrax, have
    the defaults.

    Attributes:
        backwards: Whether it goes backwards in time.
        charts: Whether steps are taken in charts about their starts, which tell no turn of more than π.
        constraints: Whether it knows what constraints do to its stages.
        jacobians: Whether it asks controllers and contact for derivatives of their forces.
        looks_ahead: Whether steps say what contact can see at their ends.
        resumes: Whether a step follows from the state at its start, so that replays may begin with any.
        supplied: Whether states carry the energy that the mechanism receives.
        vibrations: Whether steps may become as short as vibrations that derivatives alone have.
        stepsize_controller: From whether numbers are in single precision, the step controller to take by default; None
            for that of all.
    """

    backwards: bool = True
    charts: bool = False
    constraints: bool = True
    jacobians: bool = False
    looks_ahead: bool = False
    resumes: bool = True
    supplied: bool = False
    vibrations: bool = True
    stepsize_controller: Callable[[bool], diffrax.AbstractStepSizeController] | None = None


def traits(solver: diffrax.AbstractSolver) -> Traits:
    """Traits of any solver: those of what it wraps, unless it has its own."""
    inner = traits(solver.solver) if isinstance(solver, diffrax.AbstractWrappedSolver) else Traits()
    return getattr(solver, "traits", inner)
