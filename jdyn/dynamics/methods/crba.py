"""Forward dynamics by the composite-rigid-body algorithm."""

from typing import Literal

import equinox as eqx

from jdyn.array import CHOLESKY, GAUSS_JORDAN, LU, SVD
from jdyn.dynamics.joint_space import joint_space
from jdyn.dynamics.mass_matrix import mass_matrix
from jdyn.dynamics.methods import branch_sparse
from jdyn.dynamics.methods.method import BiasFirst
from jdyn.terminal.messages import one_of

_DENSE = {"cholesky": CHOLESKY, "lu": LU, "gauss-jordan": GAUSS_JORDAN, "svd": SVD}


class CRBA(BiasFirst):
    """Form the mass matrix and factor it: O(n³), or O(n d²) by `"ltl"` on a tree of depth d.

    For few degrees of freedom, or as a second opinion. Its error grows with the condition number of the mass
    matrix, whatever the solver, which makes it the wrong choice in float32 for long chains and large mass ratios.

    >>> model, q, zero = jdyn.load("double_pendulum"), jnp.array([0.5, 0.0]), jnp.zeros(2)
    >>> print(jdyn.forward_dynamics(model, q, zero, zero, method=jdyn.CRBA("ltl")).round(3))
    [-6.047  8.063]

    Attributes:
        solver: `"cholesky"`; `"lu"` with partial pivoting; `"gauss-jordan"` with full pivoting; `"svd"`, which leaves
            out what rounding has made singular; `"ltl"`, which does not touch the zeros that branches cause.

    Source: Walker and Orin 1982, method 3; Featherstone 2008, sections 6.2 and 6.5; Cloutier 1995, section 5.1.5
    for the choice of solvers.
    """

    solver: Literal["cholesky", "lu", "gauss-jordan", "svd", "ltl"] = eqx.field(static=True, default="cholesky")

    def __check_init__(self):
        one_of("solver", self.solver, (*_DENSE, "ltl"))

    def factor(self, model, q):
        return self._factored(model, mass_matrix(model, q))

    def accelerations_and_factors(self, model, q, v, tau, f_ext):
        M, h = joint_space(model, q, v, f_ext)
        factors = self._factored(model, M)
        return self.solve(model, factors, tau - h), factors

    def _factored(self, model, M):
        if self.solver != "ltl":
            return _DENSE[self.solver].factor(M)
        if model.topology.mimics:
            raise ValueError(
                f"CRBA(solver='ltl') needs the zeros of a tree, and joints of {model.name!r} that follow others fill "
                "them: use solver='cholesky' or ABA()"
            )
        return branch_sparse.factor(model.topology, M)

    def solve(self, model, factors, tau):
        if self.solver != "ltl":
            return _DENSE[self.solver].solve(factors, tau)
        return branch_sparse.solve(model.topology, factors, tau)
