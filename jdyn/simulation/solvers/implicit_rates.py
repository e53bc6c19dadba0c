"""Rates of change that are implicit in what is stiff about the equations of motion."""

from typing import Any

from jaxtyping import Scalar

from jdyn.contact import SmoothForces
from jdyn.simulation.solvers.coupled_implicit import CoupledImplicit
from jdyn.simulation.solvers.joint_implicit import JointImplicit, equations_of_motion
from jdyn.simulation.vector_field import State

ImplicitRates = JointImplicit | CoupledImplicit


def implicit_rates(terms: Any, t: Any, y: State, c: Scalar) -> ImplicitRates:
    """Those of a step that begins at `t` in `y`, on the configuration manifold, for rates with `c`. Contact couples
    joints; without it forces are those of each joint alone."""
    contact = equations_of_motion(terms).contact
    if isinstance(contact, SmoothForces):
        return CoupledImplicit.of(terms, contact, t, y, c)
    return JointImplicit.of(terms, t, y, c)
