"""Logs whose samples are not at equal steps."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from jdyn.identification.sampling import LogWarning, even_samples

NAMES = {"q": ("hip", "knee")}
TIMES = np.arange(1000) * 0.002


def _motion(t):
    return np.stack([np.sin(3 * t), np.cos(2 * t)], axis=1)


def test_even_samples_stay_as_they_are():
    """Also where a file has rounded their times."""
    rounded = np.round(TIMES + 1e-6 * np.sin(TIMES), 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = even_samples(rounded, {"q": _motion(TIMES)}, NAMES)
    assert not found.notes
    assert_allclose(found.times, TIMES, atol=1e-5)
    assert np.array_equal(found.columns["q"], _motion(TIMES))


def test_steps_that_jitter_are_resampled():
    jittered = TIMES + 2e-4 * np.random.default_rng(0).uniform(-1, 1, size=TIMES.shape)
    # Each by a tenth of a step, the first and the last one, too.
    with pytest.warns(LogWarning, match=r"samples are up to 1\d\.\d% of 0.002 s away from equal steps"):
        found = even_samples(jittered, {"q": _motion(jittered)}, NAMES)
    # A cubic spline is wrong by 5/384 h⁴ times a fourth derivative of up to 81, and a little more at the ends.
    assert_allclose(found.columns["q"], _motion(found.times), atol=20 * 81 * 0.0025**4)
    assert_allclose(np.diff(found.times), found.times[1] - found.times[0], rtol=1e-9)


def test_missing_samples_are_named_and_filled_in():
    kept = np.delete(np.arange(1000), [300, 301, 700])
    x = _motion(TIMES[kept])
    x[50, 1] = np.nan
    with pytest.warns(LogWarning) as caught:
        found = even_samples(TIMES[kept], {"q": x}, NAMES)
    messages = [str(warning.message) for warning in caught]
    assert messages == [
        "dataset: 3 samples are missing after 0.598, 1.398 s, filled in by splines",
        "dataset: 1 numbers of q_knee are missing at 0.1 s, filled in by splines",
    ]
    assert len(found.times) == 1000
    assert_allclose(found.columns["q"], _motion(TIMES), atol=1e-7)


def test_what_is_missing_at_the_ends_is_cut():
    x = _motion(TIMES)
    x[:3, 0], x[-2:, 1] = np.nan, np.nan
    found = even_samples(TIMES, {"q": x}, NAMES)
    assert_allclose(found.times, TIMES[3:-2], rtol=1e-12)


def test_long_gaps_and_wrong_times_are_refused():
    x = _motion(TIMES)
    with pytest.raises(ValueError, match=r"expected samples every 0.002 s, got none between 0.998 and 1.1 s"):
        even_samples(np.delete(TIMES, np.arange(500, 550)), {"q": np.delete(x, np.arange(500, 550), axis=0)}, NAMES)
    x[100:120, 1] = np.nan
    with pytest.raises(ValueError, match=r"expected q_knee every 0.002 s, got none between 0.198 and 0.24 s"):
        even_samples(TIMES, {"q": x}, NAMES)
    with pytest.raises(ValueError, match="times: expected increasing numbers, got"):
        even_samples(TIMES[::-1], {"q": _motion(TIMES)}, NAMES)
    with pytest.raises(ValueError, match="expected samples of q at the same times, got 0"):
        even_samples(TIMES, {"q": np.full((1000, 2), np.nan)}, NAMES)
