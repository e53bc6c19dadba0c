"""A method of order 3 for stiff joints, where a few digits are enough."""

import numpy as np

from jdyn.simulation.solvers.tableau import Tableau, triangle

GAMMA = 0.5705232226253449
# α and γ below the diagonal, row by row from the second.
_ALPHA = [
    [-0.154975502701501],
    [1.1719279070197448, -0.6136742498750823],
    [0.7858642677937008, -0.46093968327635265, 0.47715163462646987],
]
_BELOW = [
    [0.5235460897864673],
    [-0.614834857656652, 0.04081693073966548],
    [0.20337956343814126, 0.1829031762558041, -1.0962362160864088],
]
_B = [0.6746981260826754, -0.29471816484628216, 0.17626516547464716, 0.4437548732889595]
# The difference to the embedded method is known but for its length: the weights are orthogonal to the conditions of
# order 2, and to the stiff limit. At this length errors are at most about as large as tolerances ask for.
_ERROR = [0.0863930116603469, -0.03243553772954642, -0.15688167906327757, 0.10292420513247709]
# Of the powers of the share of the step: the smallest weights of order 2 for any W at every share, that end with
# those of the step.
_DENSE = [
    [2.33865877180713, -1.3177080191204655, 0.7686260067044318, -0.789576759391098],
    [-1.6639606457244558, 1.0229898542741833, -0.5923608412297849, 1.2333316326800579],
]


def _tableau() -> Tableau:
    """Four stages, of order 3 for any W, with an embedded method of order 2.

    The conditions are those of `rosj43`, at order 3 these: b·1 = 1, b·c = 1/2, b·c² = 1/3, b·αc = 1/6, and zero for
    b·g, b·cg, b·αg, b·γc and b·γg, with c = α·1 and g = γ·1. Both methods forget stiff motion within a step,
    R(∞) = 1 − b·(α + γ)⁻¹·1 = 0, so that their difference does, too: a stiff start or a joint that comes to rest is no
    reason to reject a step. The method is A-stable. With three stages a search found explicit methods of order 3 alone.
    What conditions leave free was chosen for small errors on robots with stiff controllers and friction.

    From relative tolerances of about 1e-3 down, methods of higher order take less.

    Source: as for `jdyn.solvers.ROSJ43`; the weights are ours.
    """
    alpha, below, b = triangle(_ALPHA), triangle(_BELOW), np.array(_B)
    return Tableau(alpha, below, np.full(len(b), GAMMA), b, np.array(_ERROR), np.array(_DENSE))


TABLEAU = _tableau()
