"""Filters without phase, against closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from jdyn.identification.filters import ParallelFilter, band_edge, low_passed, slopes, unsettled

STEP = 1e-3
TIMES = np.arange(8000) * STEP


def _wave(frequency, phase=0.3):
    return np.sin(2 * np.pi * frequency * TIMES + phase)[:, None]


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0, 2.0])
def test_the_low_pass_shifts_nothing_and_has_the_gain_of_butterworth(share):
    cutoff, inner = 10.0, slice(unsettled(STEP, 10.0), -unsettled(STEP, 10.0))
    x = _wave(share * cutoff)
    found = low_passed(x, STEP, cutoff)[inner, 0]
    # Frequencies are warped by less than (pi f h)²/3 of themselves, which the eighth power makes eight times as much.
    gain = 1 / (1 + share**8)
    warped = 8 * (np.pi * 2 * cutoff * STEP) ** 2 / 3
    assert_allclose(found, gain * x[inner, 0], atol=max(warped * gain, 1e-4))


def test_slopes_are_of_fourth_order():
    rate = 2 * np.pi * 5
    first, second = slopes(_wave(5.0), STEP)
    exact = rate * np.cos(rate * TIMES[2:-2] + 0.3), -(rate**2) * np.sin(rate * TIMES[2:-2] + 0.3)
    # The next terms of the series, and rounding of positions.
    assert_allclose(first[:, 0], exact[0], atol=1.01 * rate**5 * STEP**4 / 30 + 1e-12)
    assert_allclose(second[:, 0], exact[1], atol=1.01 * rate**6 * STEP**4 / 90 + 1e-8)
    assert np.max(np.abs(second[:, 0] - exact[1])) > 0.5 * rate**6 * STEP**4 / 90


def test_a_motion_stands_out_of_noise_up_to_its_highest_frequency():
    rng = np.random.default_rng(0)
    noise = 1e-5 * rng.normal(size=(8000, 2))
    motion = np.concatenate([_wave(0.5) + 1e-3 * _wave(6.0), 0.3 * _wave(1.0)], axis=1)
    # The line is as wide as the main lobe of the window: sqrt(1 + (20/pi)²) bins of 1/8 Hz to each side.
    assert 6.0 <= band_edge(motion + noise, STEP) <= 6.0 + 6.5 / 8
    assert band_edge(noise, STEP) == 0


def test_the_parallel_filter_passes_its_band_and_nothing_beyond():
    parallel = ParallelFilter(STEP, 10.0)
    kernel = parallel.kernel
    assert_allclose(kernel, kernel[::-1], rtol=1e-12)

    def gain(frequency):
        return abs(np.sum(kernel * np.exp(-2j * np.pi * frequency * STEP * np.arange(len(kernel)))))

    # 60 dB is what Kaiser's formula aims at.
    assert_allclose([gain(0), gain(4), gain(10)], [1, 1, 0.5], atol=2e-3)
    assert max(gain(f) for f in np.linspace(12.6, 500, 200)) < 2e-3
    line = np.stack([TIMES, 3 * TIMES], axis=1)
    assert_allclose(parallel.everywhere(line), line[parallel.half : -parallel.half], atol=1e-12)


def test_noise_of_rows_that_are_kept_is_nearly_independent():
    parallel = ParallelFilter(STEP, 10.0)
    h, every = parallel.kernel, parallel.every
    assert every == 50
    correlations = [np.sum(h[k * every :] * h[: -k * every]) / np.sum(h**2) for k in (1, 2, 3)]
    assert np.max(np.abs(correlations)) < 0.06


def test_a_band_as_wide_as_the_log_leaves_it_alone():
    parallel = ParallelFilter(0.01, 45.0)
    assert parallel.every == 1 and parallel.half == 0
    x = np.random.default_rng(0).normal(size=(20, 2))
    assert_allclose(parallel.everywhere(x), x)
