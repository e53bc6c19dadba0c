"""Results that were frozen hold."""

import numpy as np
import pytest

from tests.oracles import frozen
from tests.oracles.case import CASES, moved

# Tolerances leave room for another order of operations.
pytestmark = pytest.mark.fast_compile


@pytest.fixture(scope="module")
def kept():
    return frozen.frozen()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * case.slow) for name, case in CASES.items()]
)
def test_holds(name, kept):
    found = list(frozen.compared(name, CASES[name].arrays(), kept[name]))
    assert found and all(each.held for each in found), [each for each in found if not each.held]


def test_what_is_frozen_are_the_cases(kept):
    assert set(kept) == set(CASES)
    assert frozen.FILE.stat().st_size < 300e3


@pytest.mark.parametrize("name", CASES)
def test_no_case_would_hold_whatever_it_gave(name, kept):
    """An array that moves by more than it may is told, also where it is one of many; and nothing is frozen as zero or
    as no number."""
    case = CASES[name]
    assert all(case.of(array).share < 0.05 for array in kept[name])
    for array, x in kept[name].items():
        assert x.size and (not np.issubdtype(x.dtype, np.floating) or np.nanmax(np.abs(x)) > 0), array
        other = x.copy()
        last = np.unravel_index(np.nanargmax(np.abs(np.asarray(x, float))), x.shape)
        if np.issubdtype(x.dtype, np.floating):
            other[last] *= 1 + 1.1 * case.of(array).share
        else:
            other[last] = not x[last]
        found = [each.array for each in frozen.compared(name, kept[name] | {array: other}, kept[name]) if not each.held]
        assert found == [array]
        assert not all(each.held for each in frozen.compared(name, {}, kept[name]))


def test_how_far_arrays_moved():
    x = np.array([[1.0, -2.0], [np.nan, 0.0]])
    assert moved(x, x) == 0
    assert moved(x + 0.1, x) == pytest.approx(0.05)
    holes = (np.where(x == 0, bad, x) for bad in (np.nan, np.inf))
    for other in (x[0], x.astype(np.float32), np.nan_to_num(x), *holes):
        assert moved(other, x) == np.inf
    assert moved(np.array([3]), np.array([3])) == 0 and moved(np.array([3]), np.array([4])) == np.inf
