"""Delegation of a solver that wraps another one."""

import diffrax
import equinox as eqx

from jdyn.simulation.traits import Traits, traits


class Delegating(diffrax.AbstractWrappedSolver):
    """A solver that changes the steps of the one it wraps, and is like it in everything else."""

    solver: eqx.AbstractVar[diffrax.AbstractSolver]

    def func(self, terms, t0, y0, args):
        return self.solver.func(terms, t0, y0, args)

    def order(self, terms):
        return self.solver.order(terms)

    def strong_order(self, terms):
        return self.solver.strong_order(terms)

    def error_order(self, terms):
        return self.solver.error_order(terms)

    @property
    def term_structure(self):
        return self.solver.term_structure

    @property
    def interpolation_cls(self):
        return self.solver.interpolation_cls

    @property
    def traits(self) -> Traits:
        """Traits of the inner solver."""
        return traits(self.solver)

    @property
    def forces_like(self):
        """Shapes of contact forces in dense output, of a solver that says them."""
        return getattr(self.solver, "forces_like", None)

    @property
    def term_compatible_contr_kwargs(self):
        return self.solver.term_compatible_contr_kwargs

    # Diffrax reads and replaces these fields on whatever passes `isinstance` for the wrapped solver's class, which has
    # them then.

    @property
    def root_finder(self):
        return self.solver.root_finder  # type: ignore[attr-defined]

    @property
    def root_find_max_steps(self):
        return self.solver.root_find_max_steps  # type: ignore[attr-defined]

    @property
    def scan_kind(self):
        return self.solver.scan_kind  # type: ignore[attr-defined]
