"""Helpers for simple mechanisms: inertias of uniform shapes, and parameters per link."""

from collections.abc import Sequence

import numpy as np

# An ideal slender rod has no inertia about its own axis, so its pseudo-inertia lacks full rank. Rods therefore get this
# fraction of their transverse inertia there, as with a square section whose side is a tenth of the length.
_AXIAL_FRACTION = 0.02


def box_inertia(mass: float, sides: Sequence[float]) -> np.ndarray:
    """Diagonal inertia of a uniform box about its centre [kg m²], from its mass [kg] and its x, y, z sides [m]."""
    square = np.square(np.asarray(sides, dtype=float))
    return mass / 12 * (np.sum(square) - square)


def rod_inertia(mass: float, length: float, axis: Sequence[float]) -> np.ndarray:
    """Diagonal inertia of a slender uniform rod about its centre [kg m²]: m l²/12 across the coordinate `axis`.

    Args:
        mass: Mass [kg].
        length: Length [m].
        axis: The coordinate axis along the rod, such as `(0, 0, 1)`.
    """
    across = mass * length**2 / 12
    return np.where(np.asarray(axis) == 0, across, _AXIAL_FRACTION * across)


def per_link(n: int, **values: float | Sequence[float]) -> list[np.ndarray]:
    """Each value as an array of `n` entries; a number applies to all links.

    Raises:
        ValueError: if `n` is not a positive integer, or a value is neither one nor `n` finite positive numbers.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n: expected a positive number of links, got {n!r}")
    return [_per_link(n, name, np.asarray(value, dtype=float)) for name, value in values.items()]


def _per_link(n: int, name: str, value: np.ndarray) -> np.ndarray:
    if value.shape not in ((), (n,)):
        raise ValueError(f"{name}: expected one number or {n} of them, one per link, got shape {value.shape}")
    if not np.all(np.isfinite(value) & (value > 0)):
        raise ValueError(f"{name}: expected finite positive numbers, got {value}")
    return np.broadcast_to(value, (n,))
