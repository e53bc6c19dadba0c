"""A method of order 6(5) of Verner's kind as a table, with dense output from its own stages.

Eight evaluations a step, as the last stage is the first of the next step; the last two are at its end. Verner's most
efficient pair has weights of 200 that cancel, so that little is left of single precision; here, none is above 3.

Source: Verner, Strategies for deriving new explicit Runge-Kutta pairs, Annals of Numerical Mathematics 1, 1994, whose
family of pairs follows from the times of the stages. These times are ours. Errors of order 7 and 8 are near those of
Tsitouras, Famelis, Phase-fitted modified Runge-Kutta pairs of orders 6(5), ICNAAM 2006, but weights are small.
"""

import numpy as np

from jdyn.simulation.solvers.tableau import Tableau, triangle

# α, row by row from the second; the last row is the end of the step.
_ALPHA = [
    [9 / 100],
    [1 / 40, 1 / 8],
    [9 / 160, 0, 27 / 160],
    [7981 / 12960, 0, -10051 / 4320, 3703 / 1620],
    [-127565047 / 1124700000, 0, 10818671 / 16300000, -3772433 / 24450000, 46673361 / 187450000],
    [
        7423687835821 / 22329826191360,
        0,
        -12198544919 / 7526062080,
        2333585709901 / 1106331125760,
        -667175211123 / 314143406080,
        412626875 / 180156928,
    ],
    [
        9340447101989 / 23187486443454,
        0,
        -205865275 / 98925678,
        2322734045855 / 887066554626,
        -369980321015 / 136264625574,
        81498903125 / 29198146509,
        -3999128960 / 244860710061,
    ],
    [
        841291 / 12657222,
        0,
        0,
        371900 / 1072197,
        2600 / 24633,
        24687500 / 79051329,
        4275200 / 5941827,
        -123629 / 224502,
    ],
]
# What the end differs by from methods of order 5, all of which lie on a line. This share of it makes estimates of the
# error about as large as what `Tsit5` errs by.
_APART = [
    64783642 / 2651688009,
    0,
    0,
    -46274030 / 449250543,
    8413460 / 10321227,
    -28921268750 / 33122506851,
    3769230080 / 2489625513,
    -111816811 / 47033169,
    1,
]
_SHARE = 1 / 40
_DEGREE = 6


def _tableau() -> Tableau:
    count = len(_APART)
    alpha = triangle(_ALPHA)
    b = alpha[-1]
    return Tableau(alpha, np.zeros((count, count)), np.zeros(count), b, _SHARE * np.array(_APART), _dense(alpha, b))


def _dense(alpha: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Weights of order 4 at every share of the step, with the smallest errors of order 5 and 6 along it, that leave and
    reach the ends of the step at their rates."""
    one = np.ones(len(b))
    c = alpha @ one
    # Stages but the second and third have α c = c² / 2 and α c² = c³ / 3, and order 4 leaves those two no weight. So
    # these stand for all conditions of order 5 and 6.
    third, squares, cubes = alpha @ c**2, alpha @ (alpha @ c**2), alpha @ c**3
    wanted = [(one, 1, 1), (c, 2, 2), (c**2, 3, 3), (alpha @ c, 3, 6)]
    wanted += [(c**3, 4, 4), (c * (alpha @ c), 4, 8), (third, 4, 12), (alpha @ (alpha @ c), 4, 24)]
    close = [(c**4, 5, 5), (cubes, 5, 20), (squares, 5, 60), (c**5, 6, 6), (c * cubes, 6, 24), (c * squares, 6, 72)]
    close += [(alpha @ c**4, 6, 30), (alpha @ cubes, 6, 120), (alpha @ squares, 6, 360)]

    def conditions(which: list, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ_i b_i(θ) φ_i = θ^order / density, for the coefficients of the powers, or for sums of them."""
        values = [rows[:, order - 1] / density for _, order, density in which]
        return np.kron(rows, [phi for phi, _, _ in which]), np.stack(values, 1).ravel()

    powers, stage = np.arange(1, _DEGREE + 1), np.eye(len(b))
    ends = np.array([np.ones(_DEGREE), powers == 1, powers])
    exact, values = conditions(wanted, np.eye(_DEGREE))
    exact = np.vstack([exact, np.kron(ends, stage)])
    values = np.concatenate([values, b, stage[0], stage[-1]])
    # Sums whose squares add up to the mean of a polynomial's square along the step.
    along = np.linalg.cholesky(1 / (np.add.outer(powers, powers) + 1)).T
    left, right = conditions(close, along)
    some = np.linalg.lstsq(exact, values, rcond=1e-10)[0]
    _, sizes, directions = np.linalg.svd(exact)
    free = directions[np.count_nonzero(sizes > 1e-10 * sizes[0]) :].T
    found = some + free @ np.linalg.lstsq(left @ free, right - left @ some, rcond=1e-10)[0]
    return found.reshape(_DEGREE, -1)


TABLEAU = _tableau()
