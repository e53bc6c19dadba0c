"""Growth of a gradient with the simulated time."""

import dataclasses

import numpy as np
from jaxtyping import Float

# Less growth or decay does no harm.
HARMLESS = 100.0

# A higher power of the time is an exponential that reached its bounds.
HIGHEST_POWER = 6.0


@dataclasses.dataclass(frozen=True)
class Growth:
    """Size of a gradient over the horizon.

    Attributes:
        horizons: Simulated times [s].
        norms: Euclidean norm of the gradient for each.
        rate: Exponent λ of the fitted c exp(λ t) [1/s]; NaN where fewer than three gradients are finite and not zero.
        power: Exponent n of the fitted c tⁿ.
        exponential: Whether the first of these fits better, or the second would need too high a power.
    """

    horizons: Float[np.ndarray, " horizons"]
    norms: Float[np.ndarray, " horizons"]
    rate: float
    power: float
    exponential: bool

    @property
    def doubling_time(self) -> float:
        """Time in which the gradient doubles [s]; negative if it halves."""
        return float(np.log(2) / self.rate)

    def __str__(self):
        sizes = ", ".join(f"{norm:.3g} at {t:.4g} s" for t, norm in zip(self.horizons, self.norms, strict=True))
        return f"growth with the horizon: |gradient| is {sizes}\n{self._sentence()}"

    def _sentence(self):
        usable = self.norms[_usable(self.norms)]
        if len(usable) < 3:
            return "No law can be fitted: fewer than three of these are finite and not zero."
        change = usable[-1] / usable[0]
        if not self.exponential:
            return f"It goes like t^{self.power:.2g}, not exponentially."
        law = f"exp({self.rate:.3g} t)"
        if change > HARMLESS:
            return (
                f"It explodes like {law}, twofold every {self.doubling_time:.3g} s: the motion is unstable or chaotic. "
                "Shorten the horizon, split it, or stabilise the motion."
            )
        if change < 1 / HARMLESS:
            return (
                f"It vanishes like {law}, by half every {-self.doubling_time:.3g} s: the end hardly knows the "
                "parameters. Let the loss look at the way there as well."
            )
        return f"It goes like {law}."


def fitted_growth(horizons, norms) -> Growth:
    """Both laws, by least squares on the logarithms."""
    horizons, norms = np.asarray(horizons, float), np.asarray(norms, float)
    usable = _usable(norms)
    if np.sum(usable) < 3:
        return Growth(horizons, norms, np.nan, np.nan, False)
    t, logarithms = horizons[usable], np.log(norms[usable])
    rate, exponential_misfit = _line(t, logarithms)
    power, power_misfit = _line(np.log(t), logarithms)
    exponential = exponential_misfit < power_misfit or abs(power) > HIGHEST_POWER
    return Growth(horizons, norms, rate, power, bool(exponential))


def _usable(norms):
    return np.isfinite(norms) & (norms > 0)


def _line(x, y):
    """Slope of a straight line fit, and its residual sum of squares."""
    dx, dy = x - x.mean(), y - y.mean()
    slope = float(dx @ dy / (dx @ dx))
    return slope, float(np.sum((dy - slope * dx) ** 2))
