"""Designs of experiments: the parameters of every lane of a sweep."""

from __future__ import annotations

import abc
import math

import numpy as np


class Design(abc.ABC):
    """Values of named parameters for every lane.

    Attributes:
        values: Values of each parameter, as given.
    """

    values: dict[str, np.ndarray]

    @property
    @abc.abstractmethod
    def dims(self) -> dict[str, int]:
        """Names and sizes of the axes that the lanes fill, the last one fastest."""

    @abc.abstractmethod
    def lanes(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters of the lanes of these numbers."""

    @abc.abstractmethod
    def coordinates(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Coordinates of the dataset: dimensions and values by name."""

    @property
    def size(self) -> int:
        """Number of lanes."""
        return math.prod(self.dims.values())

    def __mul__(self, other: Design) -> Product:
        """Every lane of this design with every lane of another one."""
        return Product(self, other)


class Grid(Design):
    """Every combination of the given values: `jdyn.Grid(mass=[1.0, 2.0], kp=np.geomspace(10, 1000, 32))`.

    Args:
        **axes: Values along each axis, by its name, shape (n,), n > 0; they also label it.

    Raises:
        ValueError: if there is no axis, or one is empty, not one-dimensional, or not made of numbers.
    """

    def __init__(self, **axes):
        self.values = {name: _numeric("Grid", name, values) for name, values in axes.items()}
        _check_not_empty("Grid", self.values)
        for name, values in self.values.items():
            if values.ndim != 1:
                raise ValueError(
                    f"Grid axis {name!r}: expected numbers of shape (n,), got shape {values.shape}; "
                    "jdyn.Samples takes arrays for a parameter"
                )

    @property
    def dims(self):
        return {name: len(values) for name, values in self.values.items()}

    def lanes(self, numbers):
        places = np.unravel_index(numbers, tuple(self.dims.values()))
        return {name: values[place] for (name, values), place in zip(self.values.items(), places, strict=True)}

    def coordinates(self):
        return {name: ((name,), values) for name, values in self.values.items()}


class Samples(Design):
    """Lanes given one by one: `jdyn.Samples(mass=masses, q0=configurations)` along the axis `sample`.

    Args:
        **parameters: Values of each parameter, shape (samples, ...), with the same number of samples.

    Raises:
        ValueError: if there is no parameter or no sample, if the lengths differ, or if some are not numbers.
    """

    def __init__(self, **parameters):
        if "sample" in parameters:
            raise ValueError("Samples: 'sample' is the name of the axis, call the parameter something else")
        self.values = {name: _numeric("Samples", name, values) for name, values in parameters.items()}
        _check_not_empty("Samples", self.values)
        lengths = {name: len(values) for name, values in self.values.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise ValueError(f"Samples: every parameter needs the same number of samples, but {listed}")

    @property
    def dims(self):
        return {"sample": len(next(iter(self.values.values())))}

    def lanes(self, numbers):
        return {name: values[numbers] for name, values in self.values.items()}

    def coordinates(self):
        return {name: (("sample", *extra_dims(name, values.shape[1:])), values) for name, values in self.values.items()}


class Product(Design):
    """Every lane of one design with every lane of another one, the latter's fastest: `jdyn.Grid(kp=[10.0, 100.0]) *
    jdyn.Samples(mass=masses, q0=configurations)`, along the axes of both.

    Args:
        slow, fast: The designs.

    Raises:
        ValueError: if both have a parameter or an axis of the same name.
    """

    def __init__(self, slow: Design, fast: Design):
        for what, names in {"parameters": (slow.values, fast.values), "axes": (slow.dims, fast.dims)}.items():
            if shared := sorted(set(names[0]) & set(names[1])):
                raise ValueError(f"Product: both designs have {what} called {', '.join(map(repr, shared))}")
        self.slow, self.fast = slow, fast
        self.values = slow.values | fast.values

    @property
    def dims(self):
        return self.slow.dims | self.fast.dims

    def lanes(self, numbers):
        slow, fast = np.divmod(numbers, self.fast.size)
        return self.slow.lanes(slow) | self.fast.lanes(fast)

    def coordinates(self):
        return self.slow.coordinates() | self.fast.coordinates()


def extra_dims(name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the dimensions of a variable besides those of the lanes."""
    return tuple(f"{name}_{i}" for i in range(len(shape)))


def _numeric(design, name, values):
    values = np.asarray(values)
    if not (np.issubdtype(values.dtype, np.number) or values.dtype == bool) or np.iscomplexobj(values):
        raise ValueError(f"{design} parameter {name!r}: expected real numbers, got {values.dtype}")
    return values


def _check_not_empty(design, values):
    if not values:
        raise ValueError(f"{design}: no parameter is given, as in {design}(mass=[1.0, 2.0])")
    for name, array in values.items():
        if array.ndim == 0 or len(array) == 0:
            raise ValueError(f"{design} parameter {name!r}: expected at least one value along an axis, got {array!r}")
