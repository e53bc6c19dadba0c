"""Solvers that move configurations on their manifold, and a wrapper that makes one of any solver."""

import dataclasses
from typing import ClassVar, Self

import diffrax
import equinox as eqx

from jdyn.model import Model
from jdyn.simulation.manifold import OnManifold
from jdyn.simulation.solvers.halved import Halved
from jdyn.simulation.traits import Traits


class ManifoldSolver(diffrax.AbstractSolver):
    """A solver that moves the configurations of a model along their manifold.

    Leaves of a `State` other than `q` are numbers that add.
    """

    # None until `simulate` sets it.
    model: eqx.AbstractVar[Model | None]

    traits: ClassVar[Traits] = Traits()

    term_structure: ClassVar = diffrax.AbstractTerm

    def on(self, model: Model) -> Self:
        """This solver for a model."""
        return dataclasses.replace(self, model=model)

    @property
    def mechanism(self) -> Model:
        """The model.

        Raises:
            ValueError: at trace time, if there is none.
        """
        if self.model is None:
            name = type(self).__name__
            raise ValueError(f"{name}: expected a model, got none; outside of jdyn.simulate make it with {name}(model)")
        return self.model

    def func(self, terms, t0, y0, args):
        return terms.vf(t0, y0, args)


def on_manifold(solver: diffrax.AbstractSolver, model: Model) -> diffrax.AbstractSolver:
    """Any solver, made to follow the rotations of a model."""
    # Diffrax treats a wrapped solver as an instance of the inner solver's class.
    if type(solver) is OnManifold:
        return OnManifold(solver.solver, model)
    if type(solver) is diffrax.HalfSolver:
        return Halved(on_manifold(solver.solver, model))
    if isinstance(solver, diffrax.AbstractWrappedSolver):
        return eqx.tree_at(lambda wrapper: wrapper.solver, solver, on_manifold(solver.solver, model))
    return solver.on(model) if isinstance(solver, ManifoldSolver) else OnManifold(solver, model)
