"""The size of a gradient over the simulated time."""

import numpy as np
from matplotlib.axes import Axes

from jdyn.tuning import GradientHealth
from jdyn.view.plots import styles
from jdyn.view.plots.picture import axes_or_new


def gradient_growth(health: GradientHealth, *, axes: Axes | None = None) -> Axes:
    """Norm of the gradient over the horizon, and the law that fits it: exponential, or a power of the time. Crosses at
    the top are horizons whose gradient is not finite.

    >>> horizons = (1.0, 2.0, 3.0)
    >>> health = jdyn.gradient_health(lambda p, t: jnp.exp(p["rate"] * t), {"rate": 1.0}, horizons=horizons)
    >>> axes = jdyn.plots.gradient_growth(health)

    Args:
        health: What `jdyn.gradient_health` returned for some `horizons`.
        axes: Where to draw; a new figure if left out.

    Raises:
        ValueError: if there were no horizons.
    """
    growth = health.growth
    if growth is None:
        raise ValueError("health: expected one with a growth, got none; give jdyn.gradient_health horizons=")
    axes = axes_or_new(axes)
    t, norms = np.asarray(growth.horizons, float), np.asarray(growth.norms, float)
    good = np.isfinite(norms) & (norms > 0)
    axes.plot(t[good], norms[good], "o", color="black", label="|gradient|")
    bad = t[~np.isfinite(norms)]
    if len(bad):
        axes.plot(
            bad, np.full(len(bad), 0.97), "x", color="black", label="not finite", transform=axes.get_xaxis_transform()
        )
    if np.isfinite(growth.rate):
        name, law = _law(growth)
        # The fit is of logarithms, and goes through their mean.
        middle = np.exp(np.mean(np.log(norms[good]) - np.log(law(t[good]))))
        along = np.linspace(t[good][0], t[good][-1], 100)
        axes.plot(along, middle * law(along), "--", color="black", label=name)
    return styles.finished(axes, xlabel="horizon [s]", ylabel="|gradient| [loss per parameter]", yscale="log")


def _law(growth):
    if growth.exponential:
        return f"exp({growth.rate:.3g} t)", lambda t: np.exp(growth.rate * t)
    return f"t^{growth.power:.2g}", lambda t: t**growth.power
