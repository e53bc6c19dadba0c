"""Weights of dense output, derived anew. The solvers have them as numbers, since the last bits of least squares depend
on a machine, and programs with them: a sweep could not go on elsewhere."""

import numpy as np

from jdyn.simulation.solvers import rosj32, rosj43, verner6


def smallest(conditions, wanted, b):
    """The smallest weights, a row a power of the share of the step, that have these sums over the stages by
    `conditions`, a row a condition, and end with those of the step."""
    powers, stages = len(wanted), len(b)
    equations = np.vstack([np.kron(np.eye(powers), conditions), np.kron(np.ones((1, powers)), np.eye(stages))])
    return np.linalg.lstsq(equations, np.append(wanted, b), rcond=1e-12)[0].reshape(powers, -1)


def test_rosj43_has_the_smallest_ones_of_order_3_for_any_jacobian():
    table = rosj43.TABLEAU
    alpha, gamma, one = table.alpha, table.below + np.diag(table.diagonal), np.ones(len(table.b))
    c, g = alpha @ one, gamma @ one
    conditions = np.array([one, c, g, c**2, c * g, alpha @ c, alpha @ g, gamma @ c, gamma @ g])
    wanted = np.zeros((4, len(conditions)))
    wanted[0, 0], wanted[1, 1], wanted[2, 3], wanted[2, 5] = 1, 1 / 2, 1 / 3, 1 / 6
    np.testing.assert_allclose(table.dense, smallest(conditions, wanted, table.b), atol=1e-13)


def test_rosj32_has_the_smallest_ones_of_order_2_for_any_jacobian():
    table = rosj32.TABLEAU
    one = np.ones(len(table.b))
    conditions = np.array([one, table.alpha @ one, (table.below + np.diag(table.diagonal)) @ one])
    wanted = np.zeros((2, len(conditions)))
    wanted[0, 0], wanted[1, 1] = 1, 1 / 2
    np.testing.assert_allclose(table.dense, smallest(conditions, wanted, table.b), atol=1e-13)


def test_verner6_has_those_of_order_4_with_the_smallest_errors_along_the_step():
    """That leave and reach the ends of the step at their rates."""
    alpha, b, degree = verner6.TABLEAU.alpha, verner6.TABLEAU.b, 6
    one = np.ones(len(b))
    c = alpha @ one
    # Stages but the second and third have α c = c² / 2 and α c² = c³ / 3, and order 4 leaves those two no weight. So
    # these stand for all conditions of order 5 and 6.
    third, squares, cubes = alpha @ c**2, alpha @ (alpha @ c**2), alpha @ c**3
    wanted = [(one, 1, 1), (c, 2, 2), (c**2, 3, 3), (alpha @ c, 3, 6)]
    wanted += [(c**3, 4, 4), (c * (alpha @ c), 4, 8), (third, 4, 12), (alpha @ (alpha @ c), 4, 24)]
    close = [(c**4, 5, 5), (cubes, 5, 20), (squares, 5, 60), (c**5, 6, 6), (c * cubes, 6, 24), (c * squares, 6, 72)]
    close += [(alpha @ c**4, 6, 30), (alpha @ cubes, 6, 120), (alpha @ squares, 6, 360)]

    def conditions(which, rows):
        """Σ_i b_i(θ) φ_i = θ^order / density, for the coefficients of the powers, or for sums of them."""
        values = [rows[:, order - 1] / density for _, order, density in which]
        return np.kron(rows, [phi for phi, _, _ in which]), np.stack(values, 1).ravel()

    powers, stage = np.arange(1, degree + 1), np.eye(len(b))
    ends = np.array([np.ones(degree), powers == 1, powers])
    exact, values = conditions(wanted, np.eye(degree))
    exact = np.vstack([exact, np.kron(ends, stage)])
    values = np.concatenate([values, b, stage[0], stage[-1]])
    # Sums whose squares add up to the mean of a polynomial's square along the step.
    along = np.linalg.cholesky(1 / (np.add.outer(powers, powers) + 1)).T
    left, right = conditions(close, along)
    some = np.linalg.lstsq(exact, values, rcond=1e-10)[0]
    _, sizes, directions = np.linalg.svd(exact)
    free = directions[np.count_nonzero(sizes > 1e-10 * sizes[0]) :].T
    found = some + free @ np.linalg.lstsq(left @ free, right - left @ some, rcond=1e-10)[0]
    # Errors near the smallest are flat: they know weights to the root of rounding.
    np.testing.assert_allclose(verner6.TABLEAU.dense, found.reshape(degree, -1), atol=3e-8)
