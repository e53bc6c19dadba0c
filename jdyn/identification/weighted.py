"""Least squares whose rows are weighted by the noise that each joint turns out to have."""

import dataclasses
import warnings

import numpy as np
import scipy.linalg
from jaxtyping import Float

from jdyn.tuning import TuneWarning

# Noise changes by less than this fraction from one iteration to the next in the end; it is itself known to about one
# over the square root of twice the number of samples.
NOISE_TOLERANCE = 1e-6
ITERATIONS = 100
# With fewer rows of a joint than this beyond the parameters that these tell, 95 % intervals held nine of ten true
# values or less, in trials.
FEW = 15


@dataclasses.dataclass(frozen=True)
class WeightedFit:
    """The minimum of Σ_j ‖(Y_j x − y_j) / σ_j‖² over joints j, where σ_j are the noises that its residuals show.

    Attributes:
        values: x, shape (unknowns,).
        covariance: Of x, shape (unknowns, unknowns).
        noise: σ, standard deviation of the rows of each joint, shape (joints,).
        freedom: Number of rows beyond that of unknowns.
        root: Upper triangular R with Rᵀ R the inverse of the covariance: the sum is ‖R (x' − x)‖² more at x'.
    """

    values: Float[np.ndarray, " unknowns"]
    covariance: Float[np.ndarray, "unknowns unknowns"]
    noise: Float[np.ndarray, " joints"]
    freedom: int
    root: Float[np.ndarray, "unknowns unknowns"]


def weighted_least_squares(
    Y: Float[np.ndarray, "samples joints unknowns"],
    y: Float[np.ndarray, "samples joints"],
    least_noise: float,
    start: Float[np.ndarray, " joints"] | None = None,
) -> WeightedFit:
    """Fit Y x = y with independent noise of one size for each joint, which is estimated with x, in turns.

    The variance of a joint is its sum of squared residuals divided by its share of the degrees of freedom, samples less
    the trace of its block of the hat matrix; so it is not biased.

    Args:
        Y: Independent columns.
        y: Measured.
        least_noise: Lower end of the noise: the rounding of y.
        start: Noise that the first turn weights with; ones if left out.

    Raises:
        ValueError: if there are no more rows than unknowns.

    Source: Gautier, Poignet, Extended Kalman filtering and weighted least squares dynamic identification of robot,
    Control Engineering Practice 2001; Rao, Estimation of heteroscedastic variances, JASA 1970.
    """
    samples, joints, unknowns = Y.shape
    freedom = samples * joints - unknowns
    if freedom <= 0:
        raise ValueError(
            f"samples: expected more rows than the {unknowns} base parameters, got {samples} samples of {joints} forces"
        )
    blocks = [_compressed(Y[:, j], y[:, j]) for j in range(joints)]
    noise = np.ones(joints) if start is None else start
    for _ in range(ITERATIONS):
        root, x, squares, shares = _solved(blocks, noise)
        before, noise = noise, np.sqrt(squares / (samples - shares))
        noise = np.maximum(noise, least_noise)
        if np.all(np.abs(noise - before) <= NOISE_TOLERANCE * noise):
            break
    else:
        warnings.warn("the noise of forces did not settle; measure more samples", TuneWarning, stacklevel=4)
    root, x, _, shares = _solved(blocks, noise)
    if np.min(samples - shares) < FEW:
        few = f"{np.min(samples - shares):.0f} forces of a joint are left over"
        text = f"{few}, which say little of its noise: intervals are too narrow; measure more samples"
        warnings.warn(text, TuneWarning, stacklevel=4)
    inverse = scipy.linalg.solve_triangular(root, np.eye(unknowns))
    return WeightedFit(x, inverse @ inverse.T, noise, freedom, root)


def _compressed(Y, y):
    """R of the QR factorization of [Y, y]: all that a sum of squares knows of its rows."""
    R = np.linalg.qr(np.concatenate([Y, y[:, None]], axis=1)).R
    return R[:, :-1], R[:, -1]


def _solved(blocks, noise):
    """The root of the information, the solution, and the sum of squares and the trace of the hat matrix by joint."""
    rows = [np.column_stack([R, z]) / size for (R, z), size in zip(blocks, noise, strict=True)]
    whole = np.linalg.qr(np.concatenate(rows)).R
    unknowns = whole.shape[1] - 1
    root = whole[:unknowns, :unknowns]
    x = scipy.linalg.solve_triangular(root, whole[:unknowns, unknowns])
    squares = np.array([np.sum((R @ x - z) ** 2) for R, z in blocks])
    leverages = [np.linalg.norm(scipy.linalg.solve_triangular(root, row[:, :-1].T, trans=1)) ** 2 for row in rows]
    return root, x, squares, np.array(leverages)
