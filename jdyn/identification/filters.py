"""Filters without phase: a low pass and slopes of positions, and one filter for both sides of the equations of motion.

Filters of SciPy are imported where they are needed: they take long to import, and few need them.
"""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float

# Order of the Butterworth filter, which runs forth and back.
ORDER = 4
# A Kaiser window with sidelobes of -150 dB: the strong lines of a motion do not hide noise elsewhere.
SIDELOBES = 20.0
# Chance that noise alone stands out in one of all spectra.
CHANCE = 1e-3
# Of the parallel filter: width of the transition by the band, and what it lets through beyond [dB].
TRANSITION, REJECTION = 0.5, 60.0
# Ends at which the low pass is not yet settled, in periods of its cut-off: its slowest poles decay to 1e-3.
UNSETTLED = 3.0


def band_edge(x: Float[np.ndarray, "samples coordinates"], step: float) -> float:
    """Highest frequency [Hz] at which the spectrum of one of the columns stands out of its noise; 0 if none does.

    The noise of a column is white, and its power the mean over the upper half of frequencies.
    """
    import scipy.signal

    window = np.kaiser(len(x), SIDELOBES)[:, None]
    power = np.abs(np.fft.rfft(scipy.signal.detrend(x, axis=0) * window, axis=0)) ** 2
    floor = np.mean(power[len(power) // 2 :], axis=0)
    # Powers of noise are exponentially distributed.
    out = np.flatnonzero(np.any(power > floor * np.log(power.size / CHANCE), axis=1))
    return float(np.fft.rfftfreq(len(x), step)[out[-1]]) if len(out) else 0.0


def low_passed(
    x: Float[np.ndarray, "samples coordinates"], step: float, cutoff: float
) -> Float[np.ndarray, "samples coordinates"]:
    """Columns through a Butterworth filter of order 4, forth and back: gain 1 / (1 + (f / cutoff)⁸), no phase."""
    import scipy.signal

    sections = scipy.signal.butter(ORDER, cutoff, fs=1 / step, output="sos")
    return scipy.signal.sosfiltfilt(sections, x, axis=0, padlen=min(len(x) - 1, unsettled(step, cutoff)))


def unsettled(step: float, cutoff: float) -> int:
    """Number of samples at each end at which `low_passed` is not yet settled."""
    return int(np.ceil(UNSETTLED / (cutoff * step)))


def slopes(
    x: Float[np.ndarray, "samples coordinates"], step: float
) -> tuple[Float[np.ndarray, "inner coordinates"], Float[np.ndarray, "inner coordinates"]]:
    """First and second derivatives by central differences of fourth order, without two samples at each end."""
    first = (8 * (x[3:-1] - x[1:-3]) - (x[4:] - x[:-4])) / (12 * step)
    second = (16 * (x[3:-1] + x[1:-3]) - (x[4:] + x[:-4]) - 30 * x[2:-2]) / (12 * step**2)
    return first, second


@dataclasses.dataclass(frozen=True)
class ParallelFilter:
    """A low pass that both sides of an equation go through, which leaves its solution as it is, and fewer rows of them.

    Source: Gautier, Dynamic identification of robots with power model, ICRA 1997 (parallel filtering, decimation).

    Attributes:
        step: Of the samples [s].
        band: Frequency of half amplitude [Hz].
    """

    step: float
    band: float

    @property
    def every(self) -> int:
        """Number of samples from one row that is kept to the next, so that noise of rows is nearly independent."""
        return max(1, int(1 / (2 * self.band * self.step)))

    @functools.cached_property
    def kernel(self) -> Float[np.ndarray, " odd"]:
        """Weights of samples around a row, a Kaiser window times a sinc; symmetric, so that it has no phase."""
        import scipy.signal

        nyquist = 0.5 / self.step
        if self.band >= nyquist / (1 + TRANSITION / 2):
            return np.ones(1)
        taps, beta = scipy.signal.kaiserord(REJECTION, TRANSITION * self.band / nyquist)
        half, share = int(taps) // 2, 2 * self.band * self.step
        weights = np.sinc(share * np.arange(-half, half + 1)) * np.kaiser(2 * half + 1, beta)
        return weights / np.sum(weights)

    @property
    def half(self) -> int:
        """Number of samples before the first row, and after the last one."""
        return len(self.kernel) // 2

    def everywhere(self, x: Float[np.ndarray, "samples n"]) -> Float[np.ndarray, "inner n"]:
        """Columns at all samples but the `half` at each end."""
        import scipy.signal

        return scipy.signal.oaconvolve(x, self.kernel[:, None], mode="valid", axes=0)

    def rows(self, samples: int) -> np.ndarray:
        """Indices of the samples at the middle of rows that are kept."""
        return np.arange(self.half, samples - self.half, self.every)
