"""Steps compared with two of half their length."""

import dataclasses

import diffrax
import jax
import jax.numpy as jnp

from jdyn.simulation.work import work_of
from jdyn.simulation.wrapped_solver import Delegating


class Halved(Delegating, diffrax.AbstractAdaptiveSolver):
    """`diffrax.HalfSolver` with a count of evaluations in all three of its steps; it drops the state of the third.

    Attributes:
        solver: The wrapped solver, which counts if its state is a `Counted`.
    """

    solver: diffrax.AbstractSolver

    def error_order(self, terms):
        order = self.order(terms)
        return None if order is None else order + 1

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        middle = t0 + 0.5 * (t1 - t0)
        _, _, _, first, result = half = self.solver.step(terms, t0, middle, y0, args, solver_state, made_jump)
        y1, _, _, second, later = self.solver.step(terms, middle, t1, half[0], args, first, jnp.array(False))
        whole = self.solver.step(terms, t0, t1, y0, args, solver_state, made_jump)
        for other in (later, whole[4]):
            result = diffrax.RESULTS.where(result == diffrax.RESULTS.successful, other, result)
        error = jax.tree.map(lambda fine, coarse: jnp.abs(fine - coarse), y1, whole[0])
        if work_of(second) is not None:
            work = first.work + second.work + whole[3].work
            second = dataclasses.replace(second, work=work, overlap=first.overlap)
        return y1, error, whole[2], second, result
