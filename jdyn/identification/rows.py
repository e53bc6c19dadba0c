"""Rows of the equations of motion of a log: regressors, forces of a nominal model, and measured efforts."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jdyn.dynamics import inverse_dynamics
from jdyn.identification.filters import ParallelFilter
from jdyn.identification.measurement import Measurement
from jdyn.identification.recording import Recording
from jdyn.identification.standard import standard_names, standard_regressor
from jdyn.model import Model

# Longest delay that is looked for, either way [s].
LONGEST_DELAY = 0.1
# Entries of regressors that are computed at once, and fewest and most samples of a piece.
ENTRIES, SHORTEST_AND_LONGEST = 4_000_000, (64, 8192)


@dataclasses.dataclass(frozen=True)
class Rows:
    """Equations K e(t + δ) = Y (π − π0) + s of a log, with gains K and a delay δ of efforts e, through one filter.

    Attributes:
        times: t [s], shape (rows,).
        v: Velocities [rad/s or m/s], shape (rows, nv).
        regressor: Y, shape (rows, nv, parameters).
        nominal: s, forces of the nominal model, with parameters π0, shape (rows, nv).
        efforts: e and its rate, as functions of times and the delay, each of shape (rows, nv).
    """

    times: Float[np.ndarray, " rows"]
    v: Float[np.ndarray, "rows nv"]
    regressor: Float[np.ndarray, "rows nv parameters"]
    nominal: Float[np.ndarray, "rows nv"]
    efforts: Callable[[Float[np.ndarray, " rows"], float], tuple[np.ndarray, np.ndarray]]

    def __getitem__(self, which) -> "Rows":
        """Some of the rows."""
        return Rows(self.times[which], self.v[which], self.regressor[which], self.nominal[which], self.efforts)

    def at(self, delay: float) -> tuple[Float[np.ndarray, "rows nv"], Float[np.ndarray, "rows nv"]]:
        """Efforts that came so much later [s] than the motion, and their rates."""
        return self.efforts(self.times, delay)


def measured_rows(model: Model, times: Float[np.ndarray, " samples"], motion: Measurement) -> Rows:
    """Rows of a motion whose rates are known, one a sample; its forces are known there alone, whatever the delay."""
    Y, nominal = _equations(model, motion.q, motion.v, motion.a)

    def of_samples(chosen, delay):
        tau = motion.tau[np.searchsorted(times, chosen)]
        return tau, np.zeros_like(tau)

    return Rows(times, motion.v, Y, nominal, of_samples)


def filtered_rows(model: Model, log: Recording, band: float) -> Rows:
    """Rows of a recording, after a filter that regressors and efforts go through.

    Raises:
        ValueError: if the recording is shorter than the filter.
    """
    from scipy.interpolate import CubicSpline  # it takes long to import, and few need it

    parallel = ParallelFilter(log.step, band)
    middles = parallel.rows(len(log.times))
    # Efforts of a delay are looked up within the recording.
    spare = LONGEST_DELAY + log.step * parallel.half
    inside = (log.times[middles] > log.times[0] + spare) & (log.times[middles] < log.times[-1] - spare)
    middles = middles[inside]
    if not len(middles):
        raise ValueError(f"dataset: expected more than {2 * spare:.3g} s, got {log.times[-1] - log.times[0]:.3g} s")
    inner = slice(parallel.half, len(log.times) - parallel.half)
    smooth = CubicSpline(log.times[inner], parallel.everywhere(log.efforts))
    rates = smooth.derivative()
    Y, nominal = _through(model, log, parallel, middles)
    return Rows(
        log.times[middles],
        log.v[middles],
        Y,
        nominal,
        lambda times, delay: (smooth(times + delay), rates(times + delay)),
    )


def _through(model, log, parallel, middles):
    """Filtered regressors and nominal forces at some rows: sums over samples, a piece of these at a time, since all of
    a log would fill the memory."""
    kernel, starts = parallel.kernel, middles - parallel.half
    parameters = len(standard_names(model))
    sums = np.zeros((len(middles), model.nv, parameters)), np.zeros((len(middles), model.nv))
    # All pieces have one length, for one program.
    piece = np.arange(int(np.clip(ENTRIES // (model.nv * parameters), *SHORTEST_AND_LONGEST)))
    for begin in range(starts[0], middles[-1] + parallel.half + 1, len(piece)):
        samples = np.minimum(begin + piece, len(log.times) - 1)
        first, last = np.searchsorted(starts, (begin - len(kernel) + 1, begin + len(piece)))
        place = begin + piece - starts[first:last, None]
        weights = np.where((place >= 0) & (place < len(kernel)), kernel[np.clip(place, 0, len(kernel) - 1)], 0)
        for total, x in zip(sums, _equations(model, log.q[samples], log.v[samples], log.a[samples]), strict=True):
            total[first:last] += np.tensordot(weights, x, axes=1)
    return sums


def _equations(model, q, v, a):
    """Regressors of states, and inverse dynamics of the model as it is."""
    arrays = (jnp.asarray(x, model.dtype) for x in (q, v, a))
    return [np.asarray(x, float) for x in _stacked(model.without_shapes(), *arrays)]


@jax.jit
def _stacked(model, q, v, a):
    return jax.vmap(standard_regressor, (None, 0, 0, 0))(model, q, v, a), jax.vmap(inverse_dynamics, (None, 0, 0, 0))(
        model, q, v, a
    )
