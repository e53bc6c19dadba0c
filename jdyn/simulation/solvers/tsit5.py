"""Tsitouras' method of order 5(4) as a table, with its dense output."""

import math

import diffrax
import numpy as np
from numpy.polynomial import Polynomial

from jdyn.simulation.solvers.tableau import Tableau

# b_i(θ) of dense output: factors of polynomials in θ, as the source has them.
_FACTORS = [
    (-1.0530884977290216, [0, 1], [-1.3299890189751412, 1], [0.7139816917074209, -1.4364028541716351, 1]),
    (0.1017, [0, 0, 1], [1.2949852507374631, -2.1966568338249754, 1]),
    (2.490627285651252793, [0, 0, 1], [1.57803468208092486, -2.38535645472061657, 1]),
    (-16.54810288924490272, [0, 0, 1], [-1.21712927295533244, 1], [-0.61620406037800089, 1]),
    (47.37952196281928122, [0, 0, 1], [-1.203071208372362603, 1], [-0.658047292653547382, 1]),
    (-34.87065786149660974, [0, 0, 1], [-1.2, 1], [-0.666666666666666667, 1]),
    (2.5, [0, 0, 1], [-1, 1], [-0.6, 1]),
]


def _weights() -> np.ndarray:
    products = [math.prod(map(Polynomial, factors), start=scale) for scale, *factors in _FACTORS]
    return np.array([polynomial.coef[1:] for polynomial in products]).T


def _alpha(tableau: diffrax.ButcherTableau) -> np.ndarray:
    alpha = np.zeros((tableau.num_stages, tableau.num_stages))
    for i, row in enumerate(tableau.a_lower, start=1):
        alpha[i, : len(row)] = row
    return alpha


_PAIR = diffrax.Tsit5.tableau
TABLEAU = Tableau(
    alpha=_alpha(_PAIR),
    below=np.zeros((_PAIR.num_stages, _PAIR.num_stages)),
    gamma=0.0,
    b=_PAIR.b_sol,
    error=_PAIR.b_error,
    dense=_weights(),
)
