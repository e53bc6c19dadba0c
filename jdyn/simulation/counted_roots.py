"""Implicit Runge-Kutta methods of diffrax with a count of their evaluations.

Only the root finder knows how many iterations a stage took, and the method keeps nothing but the solution. So the state
gets one more number, whose rate at a stage is the number of evaluations of that stage.
"""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Int, PyTree

from jdyn.simulation.solver import Counted, Work


def counted_step(solver: diffrax.AbstractDIRK, terms, t0, t1, y0, args, memory, made_jump):
    """Take a step like `solver.step`, with a `Counted` state.

    Diffrax begins each step with a derivative whose weight is zero, which is not counted. If a root finder takes a new
    Jacobian in every iteration, only evaluations are counted.
    """
    none = jnp.zeros((), jax.tree.leaves(y0)[0].dtype)
    if memory is not None:
        missing, rate = memory
        needed, memory = missing | made_jump, (missing, (rate, none))
    finder = solver.root_finder
    counting = _Counting(rtol=finder.rtol, atol=finder.atol, norm=finder.norm, finder=finder)
    counting = eqx.tree_at(lambda solver: solver.root_finder, solver, counting)
    y1, error, dense, memory, result = counting.step(_CountingTerm(terms), t0, t1, (y0, none), args, memory, made_jump)
    first, *others = jnp.round(dense["k"][1]).astype(jnp.int32)
    evaluations = sum(others, start=first)
    if memory is None:
        # Diffrax evaluates the rate at the start to guess the first stage.
        evaluations = evaluations + 1
    else:
        # The rate that the previous step left is not evaluated again.
        evaluations = evaluations - jnp.where(needed, 0, first)
        missing, (rate, _) = memory
        memory = missing, rate
    state = Counted(memory, Work.of(evaluations, _jacobians(solver)))
    return y1[0], error[0], {name: pair[0] for name, pair in dense.items()}, state, result


def _jacobians(solver) -> int:
    tableau: Any = solver.tableau
    each = solver.calculate_jacobian == diffrax.CalculateJacobian.every_stage
    return int(np.count_nonzero(tableau.a_diagonal)) if each else 1


class _CountingTerm(diffrax.AbstractTerm):
    """Equations of motion of a pair of a state and a count."""

    term: diffrax.AbstractTerm

    def vf(self, t, y, args):
        return self.term.vf(t, y[0], args), jnp.ones_like(y[1])

    def contr(self, t0, t1, **kwargs):
        return self.term.contr(t0, t1, **kwargs)

    def prod(self, vf, control):
        return self.term.prod(vf[0], control), vf[1]


class _State(eqx.Module):
    finder: PyTree
    evaluations: Int[Array, ""]


class _Counting(optx.AbstractRootFinder):
    """A root finder for pairs of a solution and a count, which sees the solutions and counts its iterations."""

    rtol: Any
    atol: Any
    norm: Callable[[PyTree], Array]
    finder: Any

    def init(self, fn, y, args, options, f_struct, aux_struct, tags):
        if "init_state" in options:
            options = {**options, "init_state": options["init_state"].finder}
        state = self.finder.init(_first(fn), y[0], args, options, f_struct[0], aux_struct, tags)
        return _State(state, jnp.array(0))

    def step(self, fn, y, args, options, state, tags):
        x, finder, aux = self.finder.step(_first(fn), y[0], args, options, state.finder, tags)
        return (x, y[1]), _State(finder, state.evaluations + 1), aux

    def terminate(self, fn, y, args, options, state, tags):
        return self.finder.terminate(_first(fn), y[0], args, options, state.finder, tags)

    def postprocess(self, fn, y, aux, args, options, state, tags, result):
        x, aux, stats = self.finder.postprocess(_first(fn), y[0], aux, args, options, state.finder, tags, result)
        return (x, state.evaluations.astype(y[1].dtype)), aux, stats


def _first(fn):
    """The residual of the solution alone."""

    def residual(x, args):
        (out, _), aux = fn((x, jnp.zeros((), jax.tree.leaves(x)[0].dtype)), args)
        return out, aux

    return residual
