"""Rates of change that are implicit in what is stiff about the equations of motion."""

from typing import Any

from jaxtyping import Scalar

from jdyn.simulation.solvers.coupled_implicit import CoupledImplicit, Coupling
from jdyn.simulation.solvers.joint_implicit import JointImplicit, equations_of_motion
from jdyn.simulation.state import State

ImplicitRates = JointImplicit | CoupledImplicit


def coupling(terms: Any, t: Any, y: State) -> Coupling | None:
    """Coupling of joints at `t` in `y`, on the configuration manifold, by contact and force elements that say their
    slopes; None where forces are those of each joint alone."""
    field = equations_of_motion(terms)
    return Coupling.at(terms, t, y) if field.couples or field.contact is not None else None


def implicit_rates(terms: Any, t: Any, y: State, coupled: Coupling | None, c: Scalar) -> ImplicitRates:
    """Rates of a step that begins at `t` in `y`, on the configuration manifold, with `c`, by the `coupling` there."""
    return JointImplicit.of(terms, t, y, c) if coupled is None else CoupledImplicit.of(terms, coupled, c)
