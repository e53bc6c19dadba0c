"""Traits that solvers declare to those that run them."""

from collections.abc import Callable
from typing import Any, NamedTuple

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
        looks_ahead: Whether steps say what contact can see at their ends.
        held: Function from its state after a step and the length of that [s] to whether stability held the step, not
            accuracy; None for solvers that cannot tell.
        owners: Owners of parts of the state that it needs.
        resumes: Whether a step follows from the state at its start, so that replays may begin with any.
        vibrations: Whether steps may become as short as vibrations that derivatives alone have.
        stepsize_controller: From whether numbers are in single precision, the step controller to take by default; None
            for that of all.
    """

    backwards: bool = True
    charts: bool = False
    constraints: bool = True
    jacobians: bool = False
    looks_ahead: bool = False
    held: Callable[[Any, Scalar], Bool[Array, ""]] | None = None
    owners: tuple[Owner, ...] = ()
    resumes: bool = True
    vibrations: bool = True
    stepsize_controller: Callable[[bool], diffrax.AbstractStepSizeController] | None = None


def traits(solver: diffrax.AbstractSolver) -> Traits:
    """Traits of any solver: those of what it wraps, unless it has its own."""
    if isinstance(solver, diffrax.AbstractWrappedSolver):
        inner = traits(solver.solver)
    else:
        inner = Traits(held=never_held if isinstance(solver, diffrax.AbstractImplicitSolver) else None)
    return getattr(solver, "traits", inner)


def never_held(state: Any, length: Scalar) -> Bool[Array, ""]:
    """Tell that stability holds no step: of methods that are implicit, or shorten steps by themselves."""
    return jnp.array(False)
