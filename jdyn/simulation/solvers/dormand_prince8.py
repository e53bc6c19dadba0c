"""The method of order 8 of Dormand and Prince as a table, with its dense output.

Source: Prince, Dormand, High order embedded Runge-Kutta formulae, Journal of Computational and Applied Mathematics 7,
1981; the numbers, and the weights of dense output, are those of `diffrax.Dopri8`.
"""

import diffrax
import numpy as np

from jdyn.simulation.solvers.tableau import Tableau, triangle


def _tableau() -> Tableau:
    table = diffrax.Dopri8.tableau
    count = table.num_stages
    alpha = triangle(table.a_lower)
    # From the highest power down to the first.
    dense = np.asarray(diffrax.Dopri8.interpolation_cls.eval_coeffs).T[::-1]
    return Tableau(alpha, np.zeros((count, count)), np.zeros(count), alpha[-1], np.asarray(table.b_error), dense)


TABLEAU = _tableau()
