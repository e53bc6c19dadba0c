"""Solvers that move configurations on their manifold, and a wrapper that makes one of any solver."""

import dataclasses
from typing import ClassVar, Self

import diffrax
import equinox as eqx

from jdyn.model import Model
from jdyn.simulation.manifold import OnManifold
from jdyn.simulation.solvers.halved import Halved
from jdyn.simulation.traits import Traits, wrapped


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
    if hasattr(solver, "on"):
        return solver.on(model)  # type: ignore[attr-defined]
    if (inner := wrapped(solver)) is None:
        return OnManifold(solver, model)
    inner = on_manifold(inner, model)
    # Diffrax has no other solver whose steps do not count their work.
    return Halved(inner) if type(solver) is diffrax.HalfSolver else eqx.tree_at(lambda x: x.solver, solver, inner)
