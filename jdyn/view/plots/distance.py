"""Distance of motions from a target."""

from collections.abc import Mapping

import jax
import numpy as np
from jaxtyping import Array, Float
from matplotlib.axes import Axes

from jdyn.model.model import compiled
from jdyn.simulation import Trajectory
from jdyn.view.plots import styles
from jdyn.view.plots.one_motion import one_motion
from jdyn.view.plots.picture import axes_or_new


def distance(motions: Mapping[str, Trajectory], target: Float[Array, " nq"], *, axes: Axes | None = None) -> Axes:
    """Distance to a target configuration over time, a line for each motion: the norm of `model.difference(q, target)`
    [rad or m].

    ```
    jdyn.plots.distance({"before": motion(gains), "after": motion(result.params)}, target)
    ```

    >>> model = jdyn.load("pendulum")
    >>> motion = jdyn.simulate(model, jnp.array([1.0]), jnp.zeros(1), 1.0)
    >>> axes = jdyn.plots.distance({"free fall": motion}, jnp.zeros(1))
    >>> len(axes.lines)
    1

    Args:
        motions: Single motions by name.
        target: Configuration that they should reach, of shape (nq,).
        axes: Where to draw; a new figure if left out.

    Raises:
        ValueError: if one of the motions is a batch.
    """
    axes = axes_or_new(axes)
    for number, (name, motion) in enumerate(motions.items()):
        one_motion(f"motions[{name!r}]", motion)
        apart = np.linalg.norm(_differences(motion.system.model, motion.q, target), axis=1)
        axes.plot(motion.ts, apart, label=name, **styles.line(number, len(apart)))
    return styles.finished(axes, xlabel="time [s]", ylabel="distance to the target [rad or m]")


@compiled
def _differences(model, qs, target):
    return jax.vmap(lambda q: model.difference(q, target))(qs)
