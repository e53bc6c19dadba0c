"""Keeping quaternions on the unit sphere."""

import diffrax

from jdyn.model import Model


class Projected(diffrax.AbstractWrappedSolver):
    """A solver whose every step ends with quaternions of unit length.

    The order stays that of the wrapped solver (Hairer, Lubich, Wanner 2006, section IV.4). The last stage of a
    first-same-as-last method stays valid because `VectorField` depends on the direction of a quaternion only. Dense
    output runs to the end of the step before the projection; scaled to unit length it is continuous.

    Attributes:
        solver: The wrapped solver.
        model: Says which coordinates are quaternions.
    """

    solver: diffrax.AbstractSolver
    model: Model

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        (q, v), *rest = self.solver.step(terms, t0, t1, y0, args, solver_state, made_jump)
        return (self.model.normalize(q), v), *rest

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0, args)

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
    def term_compatible_contr_kwargs(self):
        return self.solver.term_compatible_contr_kwargs

    # Diffrax reads and replaces these fields on whatever passes `isinstance` for the wrapped solver's class.

    @property
    def root_finder(self):
        return self.solver.root_finder  # type: ignore[attr-defined]

    @property
    def root_find_max_steps(self):
        return self.solver.root_find_max_steps  # type: ignore[attr-defined]

    @property
    def scan_kind(self):
        return self.solver.scan_kind  # type: ignore[attr-defined]
