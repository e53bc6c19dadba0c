"""Labels and scales of axes."""

import numpy as np

# Ratio of largest to smallest value from which a logarithmic scale is easier to read.
DECADES = 10.0


def spans_decades(values) -> bool:
    """Tell whether a logarithmic scale is easier to read: values spread over it, and not only down to a few small
    ones."""
    values = np.asarray(values, float)[np.isfinite(values)]
    if not values.size or values.min() <= 0 or values.max() <= DECADES * values.min():
        return False
    low, middle, high = np.quantile(values, [0, 0.5, 1])
    return bool(middle / np.sqrt(low * high) < (low + high) / 2 / middle)


def label(array) -> str:
    """Name and unit of a dataset's variable."""
    return _with_unit(array.attrs.get("long_name", array.name), array)


def short_label(array) -> str:
    """Name and unit of a dataset's variable, without more words."""
    return _with_unit(array.name, array)


def _with_unit(name, array):
    return f"{name} [{array.attrs['units']}]" if "units" in array.attrs else str(name)
