"""The explicit Runge-Kutta pair of Cash and Karp."""

from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

import diffrax
import numpy as np


def _row(*coefficients: str) -> np.ndarray:
    return np.array([float(Fraction(c)) for c in coefficients])


_LOWER = (
    _row("1/5"),
    _row("3/40", "9/40"),
    _row("3/10", "-9/10", "6/5"),
    _row("-11/54", "5/2", "-70/27", "35/27"),
    _row("1631/55296", "175/512", "575/13824", "44275/110592", "253/4096"),
    _row("37/378", "0", "250/621", "125/594", "0", "512/1771"),
)
_SOLUTION = np.append(_LOWER[-1], 0)
_EMBEDDED = _row("2825/27648", "0", "18575/48384", "13525/55296", "277/14336", "1/4", "0")

# The seventh stage, at the end of a step, is the first one of the next: it is free, and dense output needs it.
CASH_KARP = diffrax.ButcherTableau(
    c=np.array([sum(row) for row in _LOWER]), a_lower=_LOWER, b_sol=_SOLUTION, b_error=_SOLUTION - _EMBEDDED
)

# Weights of the state half-way, of order 4. The order conditions leave one weight free; with none for the sixth stage,
# the error of order 5 is within 1 % of the smallest possible one.
HALF_WAY = _row("89/864", "0", "575/1512", "25/1728", "-13/448", "0", "1/32")


class _Interpolation(diffrax.FourthOrderPolynomialInterpolation):
    c_mid: ClassVar[np.ndarray] = HALF_WAY


class CashKarp(diffrax.AbstractERK):
    """Cash and Karp's method of order 5 with an embedded one of order 4: six evaluations a step.

    Dense output is of order 4, the quartic through the state half-way and both ends with their slopes.

    >>> model, q, v = jdyn.load("pendulum"), jnp.array([1.0]), jnp.zeros(1)
    >>> motion = jdyn.simulate(model, q, v, 1.0, solver=jdyn.solvers.CashKarp())
    >>> print(motion.q[-1].round(3))
    [-0.902]

    Source: Cash and Karp, A variable order Runge-Kutta method for initial value problems with rapidly varying
    right-hand sides, ACM Transactions on Mathematical Software 16, 1990. Dense output follows from the conditions of
    order 4.
    """

    tableau: ClassVar[diffrax.ButcherTableau] = CASH_KARP
    interpolation_cls: ClassVar[Callable[..., diffrax.AbstractLocalInterpolation]] = _Interpolation

    def order(self, terms):
        return 5
