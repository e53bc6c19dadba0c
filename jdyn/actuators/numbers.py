"""Numbers of actuators, which are refused by name where they are known and nothing can have them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from jdyn.array import as_numbers
from jdyn.model.values import FINITE, KNOWN, NOT_NEGATIVE, POSITIVE, Requirement


def number(what: str, requirement: Requirement = FINITE) -> Callable[[Any], Array]:
    """Converter of a field, called by name in errors, whose numbers meet a requirement."""

    def convert(x):
        x = as_numbers(x)
        if not (isinstance(x, Tracer) or np.all(requirement.holds(np.asarray(x)))):
            raise ValueError(f"{what}: expected {requirement.words}, got {x}")
        return x

    return convert


def positive(what: str) -> Callable[[Any], Array]:
    """Converter of a field whose numbers are positive."""
    return number(what, POSITIVE)


def not_negative(what: str) -> Callable[[Any], Array]:
    """Converter of a field whose numbers are not negative."""
    return number(what, NOT_NEGATIVE)


def limits(what: str, *, rows: bool = False) -> Callable[[Any], Array | None]:
    """Converter of a field for a lower and an upper limit, or where it may have `rows` one of these for each; None for
    none."""

    def convert(x):
        if x is None:
            return None
        x = number(what, KNOWN)(x)
        fits = x.shape == (2,) or (rows and x.ndim == 2 and x.shape[1] == 2)
        if not fits or not (isinstance(x, Tracer) or np.all(x[..., 0] <= x[..., 1])):
            raise ValueError(f"{what}: expected a lower limit and an upper one, which is not less, got {x}")
        return x

    return convert
