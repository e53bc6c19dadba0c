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
# Of the powers of the share of the step: weights of order 4 at every share, with the smallest errors of order 5 and 6
# along the step, that leave and reach its ends at their rates; from rational arithmetic.
_DENSE = [
    [1, 0, 0, 0, 0, 0, 0, 0, 0],
    [
        -3.8853623438103644,
        0,
        0,
        5.453432564431769,
        -1.0995590060788036,
        -1.536556416391268,
        13.739376942250814,
        -10.985539565763343,
        -1.6857921746388052,
    ],
    [
        5.97315879444051,
        0,
        0,
        -12.012073039522654,
        4.424150614235706,
        6.231023181314293,
        -60.486354338176106,
        48.338486822593445,
        7.5316079651148105,
    ],
    [
        -3.5558548513213806,
        0,
        0,
        8.315158342767837,
        -3.98578306671338,
        -5.786570359751755,
        68.78379333930926,
        -54.912630343991985,
        -8.858113060298587,
    ],
    [
        0.13248631829624025,
        0,
        0,
        -0.3266804236108471,
        -0.2693528879854815,
        0.9000793805691577,
        -6.748975416484405,
        5.447872105407373,
        0.8645709238079622,
    ],
    [
        0.40203935301725363,
        0,
        0,
        -1.0829795438854486,
        1.0360938127052362,
        0.5043213041668149,
        -14.568331190798048,
        11.561129918779573,
        2.147726346014619,
    ],
]


def _tableau() -> Tableau:
    count = len(_APART)
    alpha = triangle(_ALPHA)
    b = alpha[-1]
    return Tableau(alpha, np.zeros((count, count)), np.zeros(count), b, _SHARE * np.array(_APART), np.array(_DENSE))


TABLEAU = _tableau()
