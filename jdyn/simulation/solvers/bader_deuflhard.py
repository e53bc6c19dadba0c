"""Bader's and Deuflhard's extrapolation method."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import PyTree, Scalar

from jdyn.simulation.manifold import local_term
from jdyn.simulation.solver import Traits, Work, never_limited
from jdyn.simulation.solvers.extrapolation import Extrapolation, System, Tables
from jdyn.simulation.solvers.implicit_motion import ImplicitMotion
from jdyn.simulation.solvers.shifted import shifted_solution

SEQUENCE = (2, 6, 10, 14, 22, 34, 50, 70)


class BaderDeuflhard(Extrapolation):
    """The semi-implicit midpoint rule, extrapolated in h², with control of order and step: for stiff motions.

    Numerical Recipes' `stifbs`. A step takes one Jacobian in closed form and two evaluations at its start, and for each
    substep one evaluation and one linear system; rows have 2, 6, 10, 14, 22, 34, 50, 70 substeps and one matrix each.
    Column k has order 2k − 1, since the first substep leaves an error from the start; see `Extrapolation`.

    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> motion = jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.BaderDeuflhard())
    >>> print(motion.q[-1].round(3))
    [-0.902]

    Source: Bader, Deuflhard, A semi-implicit mid-point rule for stiff systems of ordinary differential equations,
    Numerische Mathematik 41, 1983; Press, Teukolsky, Vetterling, Flannery, Numerical Recipes in C, 2nd edition,
    section 16.6.

    Attributes:
        columns: Number of columns of every step, 2 to 8; chosen step by step if None.
        rtol, atol, norm: Tolerances for choosing the order; `simulate` takes them from the step controller.
    """

    columns: int | None = None
    rtol: Any = None
    atol: Any = None
    norm: Callable[[PyTree], Scalar] = optx.rms_norm

    traits: ClassVar[Traits] = Traits(constraints=False, jacobians=True, limited_by_stability=never_limited)
    tables: ClassVar[Tables] = Tables.of(SEQUENCE)
    smoothing: ClassVar[float] = 1.0
    loss: ClassVar[int] = 1

    def system(self, rate):
        terms = local_term(self, rate.terms)
        a = terms.vf(rate.t0, rate.y0, rate.args).v
        motion = ImplicitMotion.of(terms, rate.t0, rate.t1, rate.y0, a)
        shares = jnp.asarray(1 / np.array(SEQUENCE), motion.h.dtype)
        systems = jax.vmap(motion.eliminated)(shares)

        def solve(row, after, b):
            return shifted_solution(rate, shares[row], jax.tree.map(lambda x: x[row], systems), after, b)

        # Beside the Jacobian, the acceleration that it is taken at.
        return System(solve, Work.of(1, 1))

    def overhead(self, size):
        # The cost that Numerical Recipes assumes for a Jacobian.
        return size
