"""Rates of change that are implicit in what is stiff about the equations of motion."""

from typing import Any

import diffrax
from jaxtyping import Scalar

from jdyn.simulation.manifold import LocalTerm
from jdyn.simulation.solvers.coupled_implicit import CoupledImplicit
from jdyn.simulation.solvers.joint_implicit import JointImplicit
from jdyn.simulation.vector_field import State, VectorField

ImplicitRates = JointImplicit | CoupledImplicit


def implicit_rates(terms: Any, t: Any, y: State, c: Scalar) -> ImplicitRates:
    """Those of a step that begins at `t` in `y`, on the configuration manifold, for rates with `c`. Contact couples
    joints; without it forces are those of each joint alone."""
    field, direction = equations_of_motion(terms), getattr(terms, "direction", 1)
    kind = JointImplicit if field.contact is None else CoupledImplicit
    return kind.of(field, direction, direction * t, y, c)


def local_term(solver: diffrax.AbstractSolver, terms: diffrax.AbstractTerm) -> LocalTerm:
    """The terms, if they are in local coordinates."""
    if not isinstance(terms, LocalTerm):
        name = type(solver).__name__
        raise ValueError(f"{name}: it works in local coordinates; use jdyn.simulate, or jdyn.OnManifold")
    return terms


def equations_of_motion(terms: Any) -> VectorField:
    """Those behind a term."""
    field = getattr(terms, "field", getattr(terms, "vector_field", None))
    if not isinstance(field, VectorField):
        raise ValueError(
            "a method that is implicit in joint forces must know them: use it in jdyn.simulate, or with "
            f"diffrax.ODETerm of a VectorField, not of a {type(field).__name__}"
        )
    return field
