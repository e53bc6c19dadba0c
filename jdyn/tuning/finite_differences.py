"""Central differences with an error estimate."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

# A longer step contradicts the chosen one if its error would have to be this many times larger than estimated.
CONTRADICTION = 10.0

# The size of a kink is the same at every step length, to within this fraction; noise is not.
CONSTANT = 0.2


@dataclasses.dataclass(frozen=True)
class Difference:
    """A derivative from values of the function alone.

    Attributes:
        derivative: Of the function with respect to the step; NaN if there are too few finite values.
        error: Its error, estimated from truncation, rounding, noise and kinks.
        noise: Upper bound of the noise in values of the function.
        jump: Slope ahead less slope behind; 0 where there is no kink.
        steepest: Largest slope that is compatible with the shortest steps.
        size: Largest magnitude of the function that was met.
        moved: Whether the function changed at all.
    """

    derivative: float
    error: float
    noise: float
    jump: float
    steepest: float
    size: float
    moved: bool


def step_lengths(dtype) -> Float[np.ndarray, " rungs"]:
    """Step lengths from 1/8 of a parameter down to where rounding leaves half of the digits: 12 in float64, 9 in
    float32. Each is a power of two, so that adding it rounds little."""
    digits = jnp.finfo(dtype).nmant
    return 2.0 ** -np.arange(3, digits / 2, 2 if digits > 30 else 1)


def central_difference(
    steps: Float[np.ndarray, " rungs"],
    here: float,
    ahead: Float[np.ndarray, " rungs"],
    behind: Float[np.ndarray, " rungs"],
    epsilon: float,
) -> Difference:
    """The derivative at the step length with the smallest estimated error.

    Two neighbours on the ladder of steps give an extrapolated slope, with an error of O(h⁴), and the jump of the slope
    between the two sides, which is O(h³) for a smooth function. The error is the change of the slope to the next step
    plus the jump, which contains noise and kinks. The estimate of noise is at least that of shorter steps, and steps
    that contradict each other widen the error until they agree.

    Args:
        steps: Lengths in a constant ratio, longest first.
        here: f(x).
        ahead: f(x + h) for each step.
        behind: f(x - h).
        epsilon: Lower bound of the relative rounding error of f.

    Source: Ridders, Accurate computation of F'(x) and F'(x)F''(x), Advances in Engineering Software 1982 (step ladder
    with extrapolation); Moré and Wild, Estimating derivatives of noisy simulations, ACM TOMS 2012 (noise).
    """
    with np.errstate(invalid="ignore", over="ignore"):
        size = float(np.max(np.abs(np.array([here, *ahead, *behind])), initial=0, where=_finite(here, ahead, behind)))
        ratio = steps[0] / steps[1]
        slope = _extrapolated((ahead - behind) / (2 * steps), ratio**2)
        jump = _extrapolated((ahead - 2 * here + behind) / steps, ratio)
        noise = np.fmax(np.abs(jump) * steps[:-1], 4 * epsilon * size)
        noise = np.fmax.accumulate(noise[::-1])[::-1]
        error = np.abs(np.diff(slope)) + (noise / steps[:-1])[:-1]
    error = np.where(np.isfinite(error), error, np.inf)
    best = int(np.argmin(error))
    if np.isinf(error[best]):
        return Difference(np.nan, np.inf, np.inf, 0.0, np.inf, size, True)
    usable = np.isfinite(error)
    contradiction = np.abs(slope[:-1][usable] - slope[best]) - CONTRADICTION * error[usable]
    return Difference(
        derivative=float(slope[best]),
        error=float(max(error[best], np.max(contradiction))),
        noise=float(noise[best]),
        jump=_kink(jump[best : best + 3], error[best]),
        steepest=float(np.nan_to_num(np.abs(slope[-2]), nan=np.inf) + error[-1]),
        size=size,
        moved=bool(np.any(ahead != here) or np.any(behind != here)),
    )


def _finite(*values):
    return np.isfinite(np.hstack(values))


def _extrapolated(x, factor):
    """The limit at step 0 of a quantity that changes by `factor` from one step to the next."""
    return (factor * x[1:] - x[:-1]) / (factor - 1)


def _kink(jumps, error) -> float:
    first = jumps[0]
    constant = np.all(np.abs(jumps - first) <= CONSTANT * np.abs(first))
    return float(first) if constant and 2 * abs(first) > error else 0.0
